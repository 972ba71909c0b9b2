"""`regard classify`: labels texts, line by line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli.shared.options import DeviceOption, JsonOption, OwnModelsOption, with_flags
from regard.cli.shared.reporting import print_lines, unseen_characters_warning
from regard.cli.shared.writing import needed
from regard.errors import RequestError

if TYPE_CHECKING:  # the verb's help must not wait for torch
    from regard.engine.results import Classification
    from regard.engine.translator import OutputLine
    from regard.tasks.loaded import LoadedModel
    from regard.text.files.lines import InputLine


def classify(
    texts: Annotated[
        list[str] | None,
        typer.Argument(metavar="TEXT", help="Text to label; by default, lines of standard input."),
    ] = None,
    *,
    models: OwnModelsOption = None,
    too_long: Annotated[
        str,
        typer.Option(metavar="WAY", help="For texts that are too long: error, or cut."),
    ] = "error",
    threshold: Annotated[
        float,
        typer.Option(help="With several labels per text: minimum probability of a label."),
    ] = 0.5,
    device: DeviceOption = "auto",
    as_json: JsonOption = False,
) -> None:
    """Label texts, with the probability of each label.

    A line of output is a label, a tab and its probability, or several of each. A line that cannot be labelled
    gives an empty line and a message on stderr, and the exit status is 2.
    """
    from regard.cli.shared.input_lines import input_blocks
    from regard.engine.options import ClassifyOptions
    from regard.loaded import load

    options: dict[str, Any] = {"too_long": too_long, "threshold": threshold}
    ClassifyOptions(**options)  # checked before the model is loaded
    loaded = load(needed("classify", models), device=device)
    loaded.require("classify")
    lines = (
        [_labelled(loaded, line, options, as_json=as_json) for line in block] for block in input_blocks(texts)
    )
    print_lines(lines, progress=texts is None)


def _labelled(loaded: LoadedModel, line: InputLine, options: dict[str, Any], *, as_json: bool) -> OutputLine:
    from regard.engine.translator import OutputLine

    found, problem = None, line.problem
    if problem is None:
        try:
            (found,) = loaded.classify([line.text], **options)
        except RequestError as error:
            problem = line.where + with_flags(error).replace("text 1 ", "the text ")
    between = loaded.task.label_separator or ""
    text = _as_json(found, problem) if as_json else _as_columns(found, between)
    return OutputLine(text, notes=tuple(_notes(line, found, problem)), failed=found is None)


def _notes(line: InputLine, found: Classification | None, problem: str | None) -> Iterator[str]:
    """Warnings about a text."""
    if problem is not None:
        yield problem
    if found is not None and found.cut:
        yield f"{line.where}the last {found.cut:,} tokens were not read"
    if found is not None and found.unseen:
        yield line.where + unseen_characters_warning(found.unseen)


def _as_columns(found: Classification | None, between: str) -> str:
    if found is None:
        return ""
    probabilities = (f"{found.probabilities[label]:.4f}" for label in found.labels)
    return f"{between.join(found.labels)}\t{between.join(probabilities)}"


def _as_json(found: Classification | None, problem: str | None) -> str:
    if found is None:
        return json.dumps({"label": None, "error": problem}, ensure_ascii=False)
    return json.dumps(asdict(found), ensure_ascii=False)
