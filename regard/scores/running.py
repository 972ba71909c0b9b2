"""A test set through a model folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from regard.engine.loading import EngineName, load


@dataclass(frozen=True, slots=True)
class Translations:
    """What a model made of some lines, and how."""

    lines: list[str]
    how: str
    """The engine and its search, for a report."""


def translations(
    folder: Path,
    lines: Sequence[str],
    *,
    to: str | None = None,
    beam_size: int | None = None,
    engine: EngineName = "auto",
) -> Translations:
    """Translate lines with a model folder, searching as it says unless told otherwise.

    A line that is too long for the model is translated in parts, and counted: test sets have such lines.

    Which language is wanted matters to a model that knows both directions; another knows its own.

    Raises:
        BundleError: the folder is no model, damaged, or has no subword model.
        ConfigError: the engine cannot run the model, or the model does not translate.
        RequestError: the language is none of its two.
    """
    model = load(folder, engine=engine)
    results = model.translate(
        list(lines),
        to=to if model.task.both_directions else None,
        beam_size=beam_size,
        whole_lines=True,
    )
    ran = sorted({result.engine for result in results if result.engine})
    search = f"beam {beam_size or model.decoding.beam_size}, length penalty {model.decoding.length_penalty:g}"
    too_long = sum(result.split > 1 for result in results)
    parted = [f"{too_long} of the lines too long and translated in parts"] if too_long else []
    how = ", ".join([*(f"{name}, {_precision(name)}" for name in ran), search, *parted])
    return Translations([result.text for result in results], how)


def _precision(engine: str) -> str:
    """What an engine computes in as `load` opens it: scores differ a little with it, so reports say it."""
    if engine == "ctranslate2":
        return "int8"
    import torch

    return "bfloat16" if torch.cuda.is_available() else "float32"
