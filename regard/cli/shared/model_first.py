"""The model before the text: `regard generate runs/poems 'a prompt'` for `--model runs/poems 'a prompt'`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from typer.core import TyperCommand


class ModelFirstCommand(TyperCommand):
    """A command with `--model`, which may do without that word where a model is the first thing named."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        (model,) = (each for each in self.params if "--model" in each.opts)
        model.help += " It may also stand first, without --model."  # type: ignore[attr-defined]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse what `model_named` makes of the words."""
        return super().parse_args(ctx, model_named(args))


def model_named(words: list[str]) -> list[str]:
    """`RUN TEXT` as `--model RUN TEXT`.

    A folder of another kind is left alone: a text may be a word that is also the name of a folder.
    """
    named = any(word.partition("=")[0] == "--model" for word in words)
    if named or not words or not Path(words[0]).is_dir():
        return words
    from regard.bundle.manifest import MANIFEST
    from regard.engine.loading import model_folder

    return ["--model", *words] if (model_folder(words[0]) / MANIFEST).exists() else words
