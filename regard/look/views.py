"""Every view of a trace by name: as a picture, and as numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, assert_never

import numpy as np

from regard.errors import RequestError
from regard.look.choice import Choice, aligned
from regard.look.export.numbers import Labelled, Numbers, Records
from regard.look.figures.captions import changes_of, place_name, title_of
from regard.look.figures.pictures.alignment import alignment_svg
from regard.look.figures.pictures.beam import beam_svg
from regard.look.figures.pictures.influence import influence_svg
from regard.look.figures.pictures.lines import lines_svg
from regard.look.figures.pictures.matrix import matrix_svg
from regard.look.figures.pictures.overview import overview_svg
from regard.look.figures.pictures.positions import positions_svg
from regard.look.figures.pictures.steps import steps_svg
from regard.look.figures.pictures.walk import walk_svg
from regard.look.influence.measured import measured_of
from regard.look.trace.blocks import Kind, layers_of
from regard.look.trace.candidates import said_steps
from regard.look.trace.positions import encoding_of

if TYPE_CHECKING:
    from regard.look.trace.trace import Trace


def picture(trace: Trace, choice: Choice) -> str:
    """The view as SVG.

    Raises:
        RequestError: this trace has nothing of the kind to show.
    """
    match choice.view:
        case "heads":
            return overview_svg(trace, choice.kind)
        case "matrix":
            return matrix_svg(trace, choice.kind, choice.layer, choice.heads)
        case "lines":
            return lines_svg(trace, choice.kind, choice.layer, choice.heads)
        case "alignment":
            return alignment_svg(aligned(trace, choice), title_of(trace), aligning_name(choice))
        case "beam":
            return beam_svg(tree_of(trace), title_of(trace))
        case "positions":
            return positions_svg(encoding_of(trace))
        case "walk":
            return walk_svg(trace.walk(*walked(choice)), walk_title(trace, choice))
        case "steps":
            return steps_svg(trace)
        case "influence":
            return influence_svg(measured_of(trace), title_of(trace), changes_of(trace))
        case other:
            assert_never(other)


def numbers(trace: Trace, choice: Choice) -> Numbers:
    """The numbers of the view, all of them.

    Raises:
        RequestError: this trace has nothing of the kind to tell.
    """
    match choice.view:
        case "heads":
            return _all_weights(trace, choice.kind)
        case "matrix" | "lines":
            return _weights(trace, choice)
        case "alignment":
            found = aligned(trace, choice)
            sides = {"output": found.outputs, "input": found.inputs}
            return Labelled(
                found.shares, {name: [word.text for word in side] for name, side in sides.items()}
            )
        case "beam":
            return _nodes(tree_of(trace))
        case "positions":
            values = encoding_of(trace).values
            return Labelled(
                values, {"position": _counted(len(values)), "dimension": _counted(values.shape[1])}
            )
        case "walk":
            return _walk(trace, choice)
        case "steps":
            return _steps(trace)
        case "influence":
            measured = measured_of(trace)
            return Labelled(measured.values, {"method": measured.methods, "token": measured.tokens})
        case other:
            assert_never(other)


def tree_of(trace: Trace) -> dict[str, Any]:
    """The tree of the search, as plain values.

    Raises:
        RequestError: the outputs were given, or the search was not observed.
    """
    if trace.beam is None:
        if trace.config.architecture != "encoder-decoder":
            raise RequestError("only an encoder-decoder model searches for what it writes")
        raise RequestError(
            "this trace has no beam search: look without a target, and with a beam size (--beam 4)"
        )
    return trace.beam.to_json()


def walked(choice: Choice) -> tuple[Kind, int, int, int]:
    """The place of a walk: one head, the first where several are chosen."""
    return choice.kind, choice.layer, choice.heads[0], choice.query


def walk_title(trace: Trace, choice: Choice) -> str:
    """Whose numbers a walk shows, and where."""
    queries, where = trace.queries(choice.kind), place_name(choice.kind, choice.layer, choice.heads[:1])
    if not 0 <= choice.query < len(queries):
        raise RequestError(f"no query {choice.query}; the tokens go from 0 to {len(queries) - 1}")
    return f"“{queries[choice.query].text}” (token {choice.query}): {where}"


def aligning_name(choice: Choice) -> str:
    """By which heads words are aligned, and how well these do."""
    of_layer: dict[int, list[int]] = {}
    for layer, head in sorted(choice.aligning.heads):
        of_layer.setdefault(layer, []).append(head)
    named = " and ".join(place_name("cross", layer, heads) for layer, heads in of_layer.items())
    if choice.aligning.accuracy is None:
        return f"by {named}"
    return f"by {named} · {choice.aligning.accuracy:.0%} of known links are found so"


def _all_weights(trace: Trace, kind: Kind) -> Labelled:
    layers, heads = range(layers_of(trace.config, kind)), range(trace.config.n_heads)
    values = np.stack([[trace.attention(kind, layer, head) for head in heads] for layer in layers])
    return Labelled(
        values,
        {
            "layer": _counted(len(layers)),
            "head": _counted(len(heads)),
            "query": trace.queries(kind).texts,
            "key": trace.keys(kind).texts,
        },
    )


def _weights(trace: Trace, choice: Choice) -> Labelled:
    values = np.stack([trace.attention(choice.kind, choice.layer, head) for head in choice.heads])
    queries, keys = trace.queries(choice.kind).texts, trace.keys(choice.kind).texts
    return Labelled(values, {"head": [str(head) for head in choice.heads], "query": queries, "key": keys})


def _nodes(tree: dict[str, Any]) -> Records:
    fields = ("id", "parent", "step", "rank", "token", "text", "log_prob", "total", "score", "fate")
    rows = [
        (*("" if node[name] is None else node[name] for name in fields), node["reason"]["en"])
        for node in tree["nodes"]
    ]
    return Records((*fields, "reason"), rows)


def _walk(trace: Trace, choice: Choice) -> Records:
    rows: list[tuple[Any, ...]] = []
    for step in trace.walk(*walked(choice)):
        values = np.atleast_1d(step.values)
        for place in np.ndindex(values.shape):
            row = step.rows[place[0]] if step.rows else ""
            rows.append((step.name, step.formula, row, place[-1], float(values[place])))
    return Records(("step", "formula", "row", "index", "value"), rows)


def _steps(trace: Trace) -> Records:
    rows = [
        (
            row,
            step.after,
            rank,
            candidate.id,
            candidate.text,
            candidate.probability,
            candidate.id == step.came,
        )
        for row, step in enumerate(said_steps(trace))
        for rank, candidate in enumerate(step.candidates)
    ]
    return Records(("step", "after", "rank", "id", "candidate", "probability", "came"), rows)


def _counted(n: int) -> list[str]:
    return [str(i) for i in range(n)]
