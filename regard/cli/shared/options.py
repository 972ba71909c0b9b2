"""Options that several verbs share, their names in error messages, and a model before the text."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from regard.bundled import DEFAULT
from regard.config import settings
from regard.errors import RegardError, with_options

PresetOption = Annotated[
    str | None,
    typer.Option(
        "--preset", metavar="NAME", help="Settings to start from; `regard config --list` lists them."
    ),
]
ConfigOption = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", help="A TOML file of settings; overrides the preset."),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="A.B=C", help="One setting; overrides the file; may be repeated."),
]

ModelOption = Annotated[
    list[Path],
    typer.Option(
        "--model",
        metavar="MODEL",
        show_default=False,
        help="A model folder or a run folder; several form an ensemble. Default: the bundled translator.",
    ),
]
BUNDLED = [Path(DEFAULT)]
"""The default of `--model`."""
EngineOption = Annotated[
    str,
    typer.Option(metavar="NAME", help="torch, ctranslate2, or auto: the fastest that supports the options."),
]
DeviceOption = Annotated[str, typer.Option(metavar="NAME", help="cpu, cuda or auto.")]
ThreadsOption = Annotated[int | None, typer.Option(min=1, help="CPU cores to use. Default: all.")]
RayOption = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS", help="Run on a Ray cluster: local starts one here, auto finds one, or HOST:PORT."
    ),
]
TopKOption = Annotated[int, typer.Option(min=0, help="Sample among this many most likely tokens; 0 for all.")]
TopPOption = Annotated[
    float,
    typer.Option(min=0, max=1, help="Sample among the most likely tokens with this total probability."),
]
MinPOption = Annotated[
    float,
    typer.Option(min=0, max=1, help="Sample among tokens at least this fraction as likely as the best."),
]
SeedOption = Annotated[int, typer.Option(help="The same seed gives the same text.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")]


def settings_help() -> str:
    """Every setting with its description, for the end of a verb's help."""
    width = max(map(len, settings()))
    # "\b" keeps the help formatter from joining the lines of a paragraph.
    return "\b\nSettings:\n" + "\n".join(f"  {name:{width}}  {text}" for name, text in settings().items())


_SAME_NAME = (
    *("device", "glossary", "keep", "max_tokens", "min_p", "n_best", "past_length", "prefix", "quantisation"),
    *("sample", "seed", "temperature", "threshold", "to", "too_long", "top_k", "top_p"),
    *("both_directions", "builtin", "columns", "out", "pretrain", "shard", "test", "valid"),
)
FLAGS = {name: f"--{name.replace('_', '-')}" for name in _SAME_NAME} | {
    "beam_size": "--beam",
    "source": "--from",
    "target": "--to",
}
"""Flags by Python keyword. What has no flag, such as `extra_length`, is a setting of the model folder."""


def with_flags(error: RegardError | str) -> str:
    """The message of an error, with flags in place of Python keywords."""
    return with_options(str(error), lambda name, value: f"{FLAGS.get(name, name)} {value}".strip())


class ModelFirstCommand(TyperCommand):
    """A command whose `--model` may be left out before a model that comes first.

    `regard generate runs/poems 'a prompt'` is `regard generate --model runs/poems 'a prompt'`.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        (model,) = (param for param in self.params if "--model" in param.opts)
        model.help += " It may also come first, without --model."  # type: ignore[attr-defined]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words, with `--model` inserted."""
        return super().parse_args(ctx, insert_model_flag(args))


def insert_model_flag(words: list[str]) -> list[str]:
    """`RUN TEXT` as `--model RUN TEXT`.

    Only a model folder counts: a text may be a word that is also the name of another folder.
    """
    named = any(word.partition("=")[0] == "--model" for word in words)
    if named or not words or not Path(words[0]).is_dir():
        return words
    from regard.bundle.manifest import MANIFEST
    from regard.engine.loading import model_folder

    return ["--model", *words] if (model_folder(words[0]) / MANIFEST).exists() else words
