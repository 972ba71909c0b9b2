"""What one wants to see of a trace: a view, and where in the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Literal, TypeVar, get_args

from regard.errors import RequestError
from regard.look.alignment.alignment import Alignment, align
from regard.look.alignment.heads import AligningHeads, usual_heads
from regard.look.trace.blocks import KINDS, Kind, layers_of

if TYPE_CHECKING:
    from regard.look.trace.trace import Trace

View = Literal["heads", "matrix", "lines", "alignment", "beam", "positions", "walk", "steps", "influence"]
"""All heads at once; some heads of a layer as heat maps, or as lines; which word comes from which; the tree
of the search; positions; the formula with one token's numbers; what the model said after each token; what
one of them hangs on."""
VIEWS: tuple[View, ...] = get_args(View)
Name = TypeVar("Name", bound=str)


@dataclass(frozen=True, slots=True)
class Choice:
    """A view of one trace, with a place for every question that a view may ask."""

    view: View
    kind: Kind
    layer: int
    heads: tuple[int, ...]
    query: int
    aligning: AligningHeads
    """The heads that words are aligned by."""


def choose(
    trace: Trace,
    view: str = "heads",
    *,
    kind: str | None = None,
    layer: int | None = None,
    head: int | Sequence[int] | None = None,
    query: int | None = None,
    aligning: AligningHeads | None = None,
) -> Choice:
    """Check what is wanted, and fill in the rest.

    Args:
        trace: what is looked at.
        view: one of `VIEWS`.
        kind: of attention; by default cross-attention, or the only one that there is.
        layer: by default the last.
        head: one or several; by default all of the layer.
        query: the token of a walk; by default the first that is a word.
        aligning: the heads that words are aligned by, unless a layer or heads are named; by default those
            that are taken where nothing was measured.

    Raises:
        RequestError: there is no such view, or the model has no such place.
    """
    chosen = _named("view", view, VIEWS)
    usual = "cross" if "cross" in trace.kinds else trace.kinds[0]
    where: Kind = usual if kind is None else _named("kind", kind, KINDS)
    heads = range(trace.config.n_heads) if head is None else [head] if isinstance(head, int) else head
    if not heads:
        raise RequestError("no head is chosen: name one, or leave the choice out for all of them")
    in_layer = layers_of(trace.config, where) - 1 if layer is None else layer
    for each in heads:
        trace.q(where, in_layer, each)  # which refuses a place that there is not
    if layer is not None or head is not None:
        aligning = AligningHeads(heads=tuple((in_layer, each) for each in heads))
    return Choice(
        view=chosen,
        kind=where,
        layer=in_layer,
        heads=tuple(heads),
        query=_first_word(trace, where) if query is None else query,
        aligning=aligning or usual_heads(trace.config),
    )


def aligned(trace: Trace, choice: Choice) -> Alignment:
    """Words by the heads that are chosen for it."""
    return align(trace, choice.aligning.heads, choice.aligning.rows)


def _first_word(trace: Trace, kind: Kind) -> int:
    return next((i for i, token in enumerate(trace.queries(kind).tokens) if not token.special), 0)


def _named(what: str, name: str, names: Sequence[Name]) -> Name:
    for each in names:
        if each == name:
            return each
    near = get_close_matches(name, names, 1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(names)}"
    raise RequestError(f"there is no {what} {name!r}; {hint}")
