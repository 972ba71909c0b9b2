"""`regard generate`: texts continued, as they are written."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.shared.options import (
    DeviceOption,
    JsonOption,
    MinPOption,
    SeedOption,
    TopKOption,
    TopPOption,
    with_flags,
)
from regard.cli.shared.reporting import UNREADABLE_INPUT, LineReporter, unseen_characters_warning
from regard.errors import RequestError

if TYPE_CHECKING:  # the verb's help must not wait for torch
    from regard.engine.generation import Generation
    from regard.engine.generator import Generator
    from regard.text.files.lines import InputLine


def generate(
    prompts: Annotated[
        list[str] | None,
        typer.Argument(metavar="PROMPT", help="How the text begins; by default, lines of standard input."),
    ] = None,
    *,
    model: Annotated[Path, typer.Option("--model", metavar="MODEL", help="A model folder, or a run's.")],
    max_tokens: Annotated[
        int | None,
        typer.Option(
            min=1, help="Most tokens to add; else as many as the model was trained on, or 256 with slide."
        ),
    ] = None,
    temperature: Annotated[
        float,
        typer.Option(min=0, help="Below 1 the likely get likelier; 0 takes the likeliest token each time."),
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
            metavar="WAY", help="Past the trained length: error, or slide, forgetting how it began."
        ),
    ] = "error",
    device: DeviceOption = "auto",
    as_json: JsonOption = False,
) -> None:
    """Continue texts, each printed as it is written.

    A prompt that cannot be continued becomes an empty line, is told on stderr, and makes the exit status 2.
    """
    from regard.cli.shared.input_lines import input_blocks
    from regard.engine.generation import Generation
    from regard.engine.line_by_line import Written
    from regard.loaded import load

    options = Generation(
        max_tokens=max_tokens,
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        min_p=min_p,
        seed=seed,
        stop=[each.replace("\\n", "\n") for each in stop or ()],
        past_length=past_length,  # type: ignore[arg-type]
    )
    generator = load(model, device=device).generator
    reporter = LineReporter(progress=False, engines=False)  # what is written is the progress
    for line in (line for block in input_blocks(prompts) for line in block):
        problem = line.problem
        try:
            if problem is None and as_json:
                print(json.dumps(asdict(generator.generate(line.text, options)), ensure_ascii=False))
            elif problem is None:
                _write(generator, line, options, reporter)
        except RequestError as error:
            problem = f"{line.where}{with_flags(error)}"
        if problem is not None:
            reporter.add(Written("", notes=(problem,), spoilt=True))
            print(json.dumps({"text": "", "error": problem}, ensure_ascii=False) if as_json else "")
        sys.stdout.flush()
    reporter.close()
    if reporter.n_unreadable:
        raise typer.Exit(UNREADABLE_INPUT)


def _write(generator: Generator, line: InputLine, options: Generation, reporter: LineReporter) -> None:
    """A text with its prompt, as it is found."""
    from regard.engine.generation import unseen_characters
    from regard.engine.line_by_line import Written

    pieces = generator.stream(line.text, options)
    if unseen := unseen_characters(generator.subwords, line.text):
        reporter.add(Written("", notes=(line.where + unseen_characters_warning(unseen),)))
    print(line.text, end="", flush=True)
    for piece in pieces:
        print(piece, end="", flush=True)
    print()
