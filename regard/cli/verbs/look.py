"""`regard look`: what a model did with one text, on the terminal or in a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli.shared.options import BUNDLED, DeviceOption, model_option
from regard.look.influence import MOST_STEPS, STEPS
from regard.look.views import MODULES

if TYPE_CHECKING:
    from regard.look.interventions.interventions import Intervention


def look(
    source: Annotated[str, typer.Argument(metavar="TEXT", help="The text that the model reads.")],
    *,
    model: Annotated[Path, model_option(". Default: the bundled translator")] = BUNDLED[0],
    output: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="The output, or a label; default: what the model predicts."),
    ] = None,
    target: Annotated[
        str | None, typer.Option(metavar="CODE", help="Target language; default: detected.")
    ] = None,
    view: Annotated[str, typer.Option(metavar="NAME", help=f"{', '.join(MODULES)}.")] = "heads",
    kind: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Of attention: encoder, decoder or cross; default: cross, if any."),
    ] = None,
    layer: Annotated[int | None, typer.Option(metavar="N", help="From 0; default: the last.")] = None,
    head: Annotated[
        list[int] | None,
        typer.Option(metavar="N", help="From 0; may be repeated; default: all of the layer."),
    ] = None,
    query: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="The token of a walk, from 0; default: the first word. Of influence, the output token.",
        ),
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Of influence: attention, norms, rollout, gradient-x-input, integrated-gradients,"
            " value-zeroing or leave-one-out; default: all.",
        ),
    ] = None,
    steps: Annotated[
        int,
        typer.Option(
            metavar="N", min=2, max=MOST_STEPS, help="Most points at which integrated gradients are taken."
        ),
    ] = STEPS,
    gold: Annotated[
        str | None,
        typer.Option(
            metavar="LINKS",
            help="Reference links to score --view alignment, such as '0-0 1-2 2p1'; p: possible.",
        ),
    ] = None,
    intervene: Annotated[
        str | None,
        typer.Option(
            metavar="JSON",
            help="Changes inside the model: a JSON list, or a file with one, such as"
            ' \'[{"op": "head-off", "kind": "cross", "layer": 1, "head": 3}]\'.',
        ),
    ] = None,
    beam: Annotated[int | None, typer.Option(help="Beam size of the search; 1 is greedy.")] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--out",
            metavar="FILE",
            help="Output file: .html for a page, .svg or .png for a picture, .csv or .npz for its numbers,"
            " .safetensors for everything; default: the terminal.",
        ),
    ] = None,
    device: DeviceOption = "auto",
) -> None:
    """Show what a model did with a text.

    A translator translates the text, a language model reads it, a classifier labels it. Views show the
    attention of its heads, its predictions, its search, and what influenced them.
    """
    from regard.errors import RequestError
    from regard.loaded import load
    from regard.look.alignment.alignment import Gold
    from regard.look.trace.trace import check_suffix
    from regard.look.views.alignment import aligned
    from regard.look.views.view import choose, printed, view_named

    for flag, given, only in (("--gold", gold, "alignment"), ("--method", method, "influence")):
        if given is not None and view != only:
            raise RequestError(f"{flag} needs the view {only}: add --view {only}", code="option_conflict")
    known = None if gold is None else Gold.read(gold)
    changes = () if intervene is None else _interventions(intervene)
    needs = {view_named(view).needs}
    if out is not None:
        check_suffix(out)  # before minutes of work
        needs |= {"search", "label-influence"} if out.suffix.lower() == ".html" else set()
    loaded = load(model, device=device)
    if target is not None and loaded.verb != "translate":
        raise RequestError(
            f"{model}: has no languages to choose from; --output TEXT is what it should write, or a label",
            code="wrong_task",
        )
    searches = output is None and loaded.verb == "translate"
    if beam is None and searches and "search" in needs:
        beam = loaded.decoding.beam_size  # a search is observed if its beam size is given
    trace = loaded.look(source, output, to=target, beam_size=beam, interventions=changes)
    if loaded.labels and "label-influence" in needs:
        trace = loaded.with_influence(trace, steps=steps)
    if "influence" in needs:
        trace = loaded.with_influences(trace, query or 0, method, steps=steps)
    place: dict[str, Any] = {"kind": kind, "layer": layer, "head": head, "query": query}
    place["aligning"] = loaded.aligning_heads
    if out is None:
        from rich.console import Console

        Console().print(printed(trace, choose(trace, view, **place)))
    else:
        trace.save(out, view, **place)
        typer.echo(out)
    if known is not None:
        score = aligned(trace, choose(trace, view, **place)).score(known)
        shares = f"precision {score.precision:.3f}, recall {score.recall:.3f}"
        typer.echo(f"alignment error rate {score.error_rate:.3f} ({shares})")


def _interventions(given: str) -> tuple[Intervention, ...]:
    """The list in a JSON text, or in a file; the traces that patches name are files."""
    import json

    from regard.errors import RequestError
    from regard.look.interventions.interventions import from_json
    from regard.look.trace.file import read_file
    from regard.look.trace.trace import Trace

    text = given if given.lstrip().startswith("[") else read_file(Path(given)).decode("utf-8", "replace")
    try:
        values = json.loads(text)
    except ValueError as error:
        what = f"--intervene is not JSON: {error}; give a list, or a file with one"
        raise RequestError(what, code="bad_intervention") from error
    return from_json(values, Trace.load)
