"""`regard generate`: continues texts."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli.shared.options import (
    DeviceOption,
    JsonOption,
    MinPOption,
    SeedOption,
    TopKOption,
    TopPOption,
    model_option,
    with_flags,
)
from regard.cli.shared.reporting import UNREADABLE_INPUT, LineReporter, unseen_characters_warning
from regard.cli.shared.writing import needed
from regard.errors import RequestError

if TYPE_CHECKING:  # the verb's help must not wait for torch
    from regard.tasks.loaded import LoadedModel
    from regard.text.files.lines import InputLine


def generate(
    prompts: Annotated[
        list[str] | None,
        typer.Argument(metavar="PROMPT", help="How the text begins; by default, lines of standard input."),
    ] = None,
    *,
    model: Annotated[Path | None, model_option()] = None,
    max_tokens: Annotated[
        int | None,
        typer.Option(min=1, help="Maximum new tokens; default up to the trained length, or 256 with slide."),
    ] = None,
    temperature: Annotated[
        float,
        typer.Option(min=0, help="Below 1 sharpens the distribution; 0 always takes the most likely token."),
    ] = 1.0,
    top_k: TopKOption = 0,
    top_p: TopPOption = 1.0,
    min_p: MinPOption = 0.0,
    seed: SeedOption = 1,
    stop: Annotated[
        list[str] | None,
        typer.Option(metavar="TEXT", help="End before this; may be repeated; \\n is a line break."),
    ] = None,
    past_length: Annotated[
        str,
        typer.Option(
            metavar="WAY", help="Past the trained length: error, or slide, which forgets the beginning."
        ),
    ] = "error",
    device: DeviceOption = "auto",
    as_json: JsonOption = False,
) -> None:
    """Continue texts; each is printed as it is generated.

    A prompt that cannot be continued gives an empty line and a message on stderr, and the exit status is 2.
    """
    from regard.cli.shared.input_lines import input_blocks
    from regard.engine.options import GenerateOptions
    from regard.engine.translator import OutputLine
    from regard.loaded import load

    options: dict[str, Any] = {
        "max_tokens": max_tokens,
        "temperature": temperature,
        "top_k": top_k,
        "top_p": top_p,
        "min_p": min_p,
        "seed": seed,
        "stop": [each.replace("\\n", "\n") for each in stop or ()],
        "past_length": past_length,
    }
    GenerateOptions(**options)  # checked before the model is loaded
    loaded = load(needed("generate", [model] if model else None), device=device)
    loaded.require("generate")
    reporter = LineReporter(progress=False, engines=False)  # the text itself shows the progress
    for line in (line for block in input_blocks(prompts) for line in block):
        problem = line.problem
        try:
            if problem is None and as_json:
                print(json.dumps(asdict(loaded.generate(line.text, **options)), ensure_ascii=False))
            elif problem is None:
                _print(loaded, line, options, reporter)
        except RequestError as error:
            problem = f"{line.where}{with_flags(error)}"
        if problem is not None:
            reporter.add(OutputLine("", notes=(problem,), failed=True))
            print(json.dumps({"text": "", "error": problem}, ensure_ascii=False) if as_json else "")
        sys.stdout.flush()
    reporter.close()
    if reporter.n_unreadable:
        raise typer.Exit(UNREADABLE_INPUT)


def _print(loaded: LoadedModel, line: InputLine, options: dict[str, Any], reporter: LineReporter) -> None:
    """Print a prompt and its continuation, as it is generated."""
    from regard.engine.translator import OutputLine
    from regard.text.vocabularies.vocabulary import unseen_characters

    pieces = loaded.continue_text(line.text, **options)
    if unseen := unseen_characters(loaded.subwords, line.text):
        reporter.add(OutputLine("", notes=(line.where + unseen_characters_warning(unseen),)))
    print(line.text, end="", flush=True)
    for piece in pieces:
        print(piece, end="", flush=True)
    print()
