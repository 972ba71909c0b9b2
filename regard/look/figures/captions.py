"""How pictures and tables call what they show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from regard.look.trace.blocks import Kind

if TYPE_CHECKING:
    from regard.look.trace.trace import Trace

KIND_NAMES: dict[Kind, str] = {
    "encoder": "encoder self-attention",
    "decoder": "masked decoder self-attention",
    "cross": "cross-attention",
}
LOOKS: dict[Kind, str] = {
    "encoder": "a row: a token that looks · a column: a token that it looks at",
    "decoder": "a row: a token that looks · a column: a token that it looks at",
    "cross": "a row: a token written · a column: a token read",
}


def title_of(trace: Trace) -> str:
    """What was read, and what was written or decided."""
    read = trace.inputs.text if trace.inputs is not None else ""
    if trace.config.architecture == "encoder":
        best, *others = trace.candidates(0)
        given = [best, *(each for each in others if trace.several and each.probability >= 0.5)]
        return f"{read} → {', '.join(each.text for each in given)}"
    assert trace.outputs is not None, "a decoder without outputs"
    return f"{read} → {trace.outputs.text}" if read else trace.outputs.text


def label_of(trace: Trace) -> str:
    """The label of a classifier that is looked at: the likeliest, or the one that was named."""
    return trace.pieces[trace.wanted[0]]


def place_name(kind: Kind, layer: int, heads: Sequence[int] = ()) -> str:
    """Where one looks: a kind, a layer and its heads."""
    named = f"{KIND_NAMES[kind]}, layer {layer}"
    if not heads:
        return named
    return f"{named}, head{'s' if len(heads) > 1 else ''} {', '.join(map(str, heads))}"


def changes_of(trace: Trace) -> str:
    """That something was changed inside of the model, for the note of a picture."""
    n = len(trace.interventions)
    return f" · {n} intervention{'s' if n > 1 else ''}" if n else ""
