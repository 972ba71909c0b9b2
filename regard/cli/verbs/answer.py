"""`regard answer`: answers to questions about a text."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from regard.cli.shared.options import OwnModelsOption, RunFlags, with_flags_of
from regard.cli.shared.reporting import print_lines
from regard.cli.shared.writing import load_models, written


@with_flags_of
def answer(
    texts: Annotated[
        list[str] | None,
        typer.Argument(metavar="QUESTION", help="A question; by default, lines of standard input."),
    ] = None,
    *,
    models: OwnModelsOption = None,
    context: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="The text that all questions are about."),
    ] = None,
    flags: RunFlags,
) -> None:
    """Answer questions, by a model trained for it.

    Each QUESTION, or each line of standard input, is a question about --context, or a JSON object with the
    fields that the model was trained on, such as question and context. Line i of the output belongs to
    question i; one that is too long gives an empty line and a message on stderr, and the exit status is 2.
    """
    from regard.cli.shared.input_lines import input_blocks

    loaded, blocks = load_models("answer", models, flags), input_blocks(texts)
    if context is not None:
        blocks = (
            [
                line._replace(
                    text=json.dumps({"question": line.text, "context": context}, ensure_ascii=False)
                )
                for line in block
            ]
            for block in blocks
        )
    lines = written(loaded, blocks, flags.search(), as_json=flags.as_json)
    print_lines(lines, progress=texts is None)
