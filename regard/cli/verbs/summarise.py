"""`regard summarise`: summaries of documents."""

from __future__ import annotations

from typing import Annotated

import typer

from regard.cli.shared.options import OwnModelsOption, RunFlags, with_flags_of
from regard.cli.shared.reporting import print_lines
from regard.cli.shared.writing import load_models, written


@with_flags_of
def summarise(
    texts: Annotated[
        list[str] | None,
        typer.Argument(metavar="TEXT", help="Document to summarise; by default, lines of standard input."),
    ] = None,
    *,
    models: OwnModelsOption = None,
    flags: RunFlags,
) -> None:
    """Summarise documents, by a model trained for it.

    Each TEXT, or each line of standard input, is a document: text, or a JSON object with the fields that the
    model was trained on. Line i of the output belongs to document i; one that is too long gives an empty line
    and a message on stderr, and the exit status is 2.
    """
    from regard.cli.shared.input_lines import input_blocks

    loaded = load_models("summarise", models, flags)
    lines = written(loaded, input_blocks(texts), flags.search(), as_json=flags.as_json)
    print_lines(lines, progress=texts is None)
