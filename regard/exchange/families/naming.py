"""Our weights under other people's names: a table for each family of models, read both ways.

A line of the table (`Entry`) names some of our weights and some of theirs, and how the ones are made from the
others (`Form`): mostly one is the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.errors import BundleError

Tensors = Sequence[Tensor]


@dataclass(frozen=True, slots=True)
class Form:
    """How our weights of one entry are made from theirs, and theirs from ours."""

    to_ours: Callable[[Tensors], Tensors]
    to_theirs: Callable[[Tensors], Tensors]


SAME = Form(lambda theirs: theirs, lambda ours: ours)
TRANSPOSED = Form(lambda theirs: [theirs[0].T], lambda ours: [ours[0].T])
THREE_IN_ONE = Form(lambda theirs: theirs[0].chunk(3), lambda ours: [torch.cat([*ours])])
"""W^Q, W^K and W^V above each other."""
THREE_TRANSPOSED = Form(lambda theirs: theirs[0].T.chunk(3), lambda ours: [torch.cat([*ours]).T])
ONE_ROW = Form(lambda theirs: [theirs[0][0]], lambda ours: [ours[0][None]])
"""A vector, kept as a matrix of one row."""


@dataclass(frozen=True, slots=True)
class Entry:
    """Some of our weights and some of theirs."""

    ours: tuple[str, ...]
    theirs: tuple[str, ...]
    form: Form = SAME


def entry(ours: str, theirs: str, form: Form = SAME) -> Entry:
    """One weight."""
    return Entry((ours,), (theirs,), form)


def both(ours: str, theirs: str, form: Form = SAME) -> Iterator[Entry]:
    """A weight, in some form, and its bias."""
    yield entry(f"{ours}.weight", f"{theirs}.weight", form)
    yield entry(f"{ours}.bias", f"{theirs}.bias")


def to_ours(entries: Iterable[Entry], theirs: Mapping[str, Tensor], where: str) -> dict[str, Tensor]:
    """Our weights from theirs, in float32.

    Raises:
        BundleError: with every weight that is missing, and every one that would be left over.
    """
    table = list(entries)
    known = {name for each in table for name in each.theirs}
    missing = [f"weight {name} is missing" for name in sorted(known - theirs.keys())]
    left_over = [
        f"weight {name} is not one that regard has a place for" for name in sorted(theirs.keys() - known)
    ]
    if missing or left_over:
        raise BundleError([*missing, *left_over], where)
    ours: dict[str, Tensor] = {}
    for each in table:
        made = each.form.to_ours([theirs[name].float() for name in each.theirs])
        ours |= zip(each.ours, made, strict=True)
    return ours


def to_theirs(entries: Iterable[Entry], ours: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Their weights from ours; a bias that ours have not is zero."""
    theirs: dict[str, Tensor] = {}
    for each in entries:
        given = [ours[name] if name in ours else _no_bias(name, ours) for name in each.ours]
        made = [weight.contiguous() for weight in each.form.to_theirs(given)]
        theirs |= zip(each.theirs, made, strict=True)
    return theirs


def _no_bias(name: str, ours: Mapping[str, Tensor]) -> Tensor:
    weight = name.removesuffix(".bias") + ".weight"
    assert name.endswith(".bias"), f"{name} is not among our weights"
    if weight in ours:
        return torch.zeros(len(ours[weight]))
    # An output layer that shares its weights has none under its own name.
    return torch.zeros(len(ours.get("output_embedding.weight", ours["input_embedding.weight"])))
