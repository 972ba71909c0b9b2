"""`regard generate`: texts continued, as they are written."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli.options import DeviceOption, JsonOption
from regard.cli.telling import SPOILT
from regard.errors import RequestError

if TYPE_CHECKING:  # the verb's help must not wait for torch
    from regard.loaded import LoadedModel


def generate(
    prompts: Annotated[
        list[str] | None,
        typer.Argument(metavar="PROMPT", help="How the text begins; by default, lines of standard input."),
    ] = None,
    *,
    model: Annotated[Path, typer.Option("--model", metavar="MODEL", help="A model folder, or a run's.")],
    max_tokens: Annotated[
        int | None,
        typer.Option(help="Most tokens to add; else as many as the model was trained on, or 256 with slide."),
    ] = None,
    temperature: Annotated[
        float, typer.Option(help="Below 1 the likely get likelier; 0 takes the likeliest token each time.")
    ] = 1.0,
    top_k: Annotated[int, typer.Option(help="Draw from so many of the likeliest tokens; 0 for all.")] = 0,
    top_p: Annotated[
        float, typer.Option(help="Draw from the likeliest tokens that together have this probability.")
    ] = 1.0,
    min_p: Annotated[
        float, typer.Option(help="Draw from tokens at least this share as likely as the likeliest.")
    ] = 0.0,
    seed: Annotated[int, typer.Option(help="The same seed gives the same text.")] = 1,
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
    """Continue texts, and print each with its prompt as it is written.

    A line that cannot be continued becomes an empty one, is told on stderr, and makes the exit status 2.
    """
    from regard.cli.arriving import Line, arriving
    from regard.engine.generation import Generation
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
    Generation(**options)
    loaded, spoilt = load(model, device=device), False
    _ = loaded.generator  # which refuses a model for another task, before any line does
    blocks = arriving(sys.stdin.buffer) if prompts is None else iter([[Line(0, text) for text in prompts]])
    for line in (line for block in blocks for line in block):
        problem = line.problem
        if problem is None:
            try:
                _write(loaded, line.text, options, as_json=as_json)
            except RequestError as error:
                problem = f"standard input:{line.number}: {error}" if line.number else str(error)
        if problem is not None:
            spoilt = True
            print(f"regard: {problem}", file=sys.stderr)
            print(json.dumps({"text": "", "error": problem}) if as_json else "")
        sys.stdout.flush()
    if spoilt:
        raise typer.Exit(SPOILT)


def _write(loaded: LoadedModel, prompt: str, options: dict[str, Any], *, as_json: bool) -> None:
    """A text with its prompt, as it is found; or all that is known of it.

    Raises:
        RequestError: before anything is written, that it cannot be.
    """
    from regard.engine.generation import unseen_characters

    if as_json:
        print(json.dumps(asdict(loaded.generate(prompt, **options)), ensure_ascii=False))
        return
    if unseen := unseen_characters(loaded.subwords, prompt):
        told = f"{len(unseen):,} characters of the prompt are in no subword, and were read as bytes"
        print(f"regard: {told}: {' '.join(unseen[:20])}", file=sys.stderr, flush=True)
    pieces = loaded.continue_text(prompt, **options)
    print(prompt, end="", flush=True)
    for piece in pieces:
        print(piece, end="", flush=True)
    print()
