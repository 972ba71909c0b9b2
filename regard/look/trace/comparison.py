"""Comparisons: two traces, of two checkpoints, texts or models; and tokens by embedding. Imports no torch.

Tokens are matched where both traces have the same ones in the same order. Attention is compared row by row
over the tokens that both have; the attention to all other tokens counts as one more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

import numpy as np

from regard.errors import RequestError
from regard.look.trace.blocks import Kind, layers_of
from regard.look.trace.data import Candidate, TraceData
from regard.look.trace.tokens import Tokens

Places = tuple[tuple[int, int], ...]
"""Pairs of matching indices of two sequences."""


@dataclass(frozen=True, slots=True)
class Matching:
    """The tokens that two sequences have in common."""

    both: Places
    only_in_one: tuple[int, ...]
    only_in_other: tuple[int, ...]

    @property
    def is_whole(self) -> bool:
        """Whether the sequences are equal."""
        return not self.only_in_one and not self.only_in_other


@dataclass(frozen=True, slots=True)
class TargetChange:
    """A target of both traces, and its log-probability in each."""

    id: int
    places: tuple[int, int]
    one: float
    other: float

    @property
    def change(self) -> float:
        """The increase of its log-probability."""
        return self.other - self.one


@dataclass(frozen=True, slots=True)
class CandidatesChange:
    """After a token of both traces: the candidates that only one of them has."""

    places: tuple[int, int]
    likeliest: tuple[Candidate, Candidate]
    only_in_one: tuple[Candidate, ...]
    only_in_other: tuple[Candidate, ...]


@dataclass(frozen=True, eq=False, slots=True)
class TraceComparison:
    """The differences of two traces."""

    one: TraceData
    other: TraceData
    inputs: Matching | None
    outputs: Matching | None
    log_probs: tuple[TargetChange, ...]
    """Of every target of both traces."""
    candidates: tuple[CandidatesChange, ...]
    """Of every row in which they differ."""

    def rows(self, kind: Kind, layer: int, head: int) -> np.ndarray:
        """The Jensen-Shannon distance (base 2) of the attention of each common query, 0 to 1."""
        queries, keys = self._sides(kind)
        one, other = (
            _lumped(trace.attention(kind, layer, head), [p[i] for p in queries], [p[i] for p in keys])
            for i, trace in enumerate((self.one, self.other))
        )
        return jensen_shannon(one, other)

    def heads(self, kind: Kind) -> np.ndarray:
        """(layers, heads): the mean of `rows`; NaN without a common query."""
        shape = (layers_of(self.one.config, kind), self.one.config.n_heads)
        found = np.full(shape, np.nan)
        if self._sides(kind)[0]:
            for layer, head in np.ndindex(shape):
                found[layer, head] = self.rows(kind, layer, head).mean()
        return found

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "inputs": _matching_to_json(self.inputs),
            "outputs": _matching_to_json(self.outputs),
            "heads": {kind: _numbers(self.heads(kind)) for kind in self.one.kinds},
            "log_probs": [
                {"id": each.id, "places": list(each.places), "one": each.one, "other": each.other}
                for each in self.log_probs
            ],
            "candidates": [
                {
                    "places": list(row.places),
                    "likeliest": [each.text for each in row.likeliest],
                    "only_in_one": [each.text for each in row.only_in_one],
                    "only_in_other": [each.text for each in row.only_in_other],
                }
                for row in self.candidates
            ],
        }

    def _sides(self, kind: Kind) -> tuple[Places, Places]:
        queries, keys = (
            self.inputs if side is self.one.inputs else self.outputs
            for side in (self.one.queries(kind), self.one.keys(kind))
        )
        assert queries is not None, "a kind of attention has its queries"
        assert keys is not None, "a kind of attention has its keys"
        return queries.both, keys.both


def compare(one: TraceData, other: TraceData) -> TraceComparison:
    """Compare two traces of models of one shape.

    Raises:
        RequestError: the models have different numbers of layers or heads.
    """
    shapes = [_shape(trace) for trace in (one, other)]
    if shapes[0] != shapes[1]:
        what = f"heads cannot be compared: one model has {shapes[0]}, the other {shapes[1]}"
        raise RequestError(what, code="trace_mismatch")
    outputs = _matched(one.outputs, other.outputs)
    after = ((0, 0),) if outputs is None else outputs.both  # a classifier has one row
    return TraceComparison(
        one=one,
        other=other,
        inputs=_matched(one.inputs, other.inputs),
        outputs=outputs,
        log_probs=tuple(
            TargetChange(one.targets[i], (i, j), float(one.log_probs[i]), float(other.log_probs[j]))
            for i, j in match(one.targets, other.targets).both
        ),
        candidates=tuple(row for i, j in after if (row := _candidates_change(one, other, i, j)) is not None),
    )


def match(one: tuple[int, ...], other: tuple[int, ...]) -> Matching:
    """Match two sequences of ids."""
    blocks = SequenceMatcher(None, one, other, autojunk=False).get_matching_blocks()
    both = tuple((block.a + i, block.b + i) for block in blocks for i in range(block.size))
    left, right = ({places[side] for places in both} for side in (0, 1))
    return Matching(
        both,
        tuple(i for i in range(len(one)) if i not in left),
        tuple(i for i in range(len(other)) if i not in right),
    )


def jensen_shannon(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The distance of each two rows, from 0 to 1; rows sum to 1.

    >>> jensen_shannon(np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])).tolist()
    [1.0]
    """
    middle = (one + other) / 2
    divergence = _entropy(middle) - (_entropy(one) + _entropy(other)) / 2
    distance: np.ndarray = np.sqrt(np.clip(divergence, 0, 1))  # rounding may make it negative
    return distance


def _entropy(rows: np.ndarray) -> np.ndarray:
    logs = np.log2(rows, out=np.zeros_like(rows), where=rows > 0)
    entropy: np.ndarray = -(rows * logs).sum(axis=-1)
    return entropy


def _lumped(weights_LM: np.ndarray, queries: list[int], keys: list[int]) -> np.ndarray:
    """Some rows and columns, and a last column with the sum of all others."""
    # In float64: distances are roots of small differences.
    rows = weights_LM[queries].astype(np.float64)
    rest = np.delete(rows, keys, axis=1).sum(axis=1, keepdims=True)
    return np.concatenate([rows[:, keys], rest], axis=1)


def _shape(trace: TraceData) -> str:
    layers = ", ".join(f"{layers_of(trace.config, kind)} {kind} layers" for kind in trace.kinds)
    return f"{layers} of {trace.config.n_heads} heads"


def _matched(one: Tokens | None, other: Tokens | None) -> Matching | None:
    return None if one is None or other is None else match(one.ids, other.ids)


def _candidates_change(one: TraceData, other: TraceData, i: int, j: int) -> CandidatesChange | None:
    """The changes of a row; None if the candidates and the most likely one are the same."""
    before, after = one.candidates(i), other.candidates(j)
    ids, ids_after = ({each.id for each in some} for some in (before, after))
    if ids == ids_after and before[0].id == after[0].id:
        return None
    return CandidatesChange(
        (i, j),
        (before[0], after[0]),
        tuple(each for each in before if each.id not in ids_after),
        tuple(each for each in after if each.id not in ids),
    )


def _matching_to_json(matching: Matching | None) -> dict[str, Any] | None:
    if matching is None:
        return None
    return {
        "both": [list(places) for places in matching.both],
        "only_in_one": list(matching.only_in_one),
        "only_in_other": list(matching.only_in_other),
    }


def _numbers(table: np.ndarray) -> list[list[float | None]]:
    """Rows of numbers; None for NaN."""
    return [[None if np.isnan(value) else value for value in row] for row in table.tolist()]


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A token whose embedding has nearly the direction of another's."""

    id: int
    piece: str
    """As the vocabulary writes it."""
    cosine: float
    """Of the angle between the two."""


@dataclass(frozen=True, eq=False, slots=True)
class Neighbours:
    """Tokens with their nearest neighbours, and all of them on one plane."""

    pieces: dict[int, str]
    """The given tokens, as the vocabulary writes them."""
    nearest: dict[int, tuple[Neighbour, ...]]
    """The neighbours of each, nearest first."""
    places: dict[int, tuple[float, float]]
    """Tokens and neighbours along the first two principal components of their directions."""
    explained: float
    """The share of the variance that the plane shows."""


def neighbours(
    embedding_VD: np.ndarray, ids: Sequence[int], pieces: Callable[[Sequence[int]], list[str]], n: int
) -> Neighbours:
    """The n nearest neighbours of tokens by cosine; `pieces` returns how the vocabulary writes tokens."""
    lengths_V = np.linalg.norm(embedding_VD, axis=1, keepdims=True)
    unit_VD = embedding_VD / np.where(lengths_V, lengths_V, 1.0)
    found = {i: _nearest(unit_VD, i, n) for i in ids}
    every = list(dict.fromkeys([*found, *(j for near in found.values() for j in near)]))
    names = dict(zip(every, pieces(every), strict=True))
    places, explained = on_a_plane(unit_VD[every])
    return Neighbours(
        pieces={i: names[i] for i in found},
        nearest={
            i: tuple(Neighbour(j, names[j], cosine) for j, cosine in near.items())
            for i, near in found.items()
        },
        places={i: (float(x), float(y)) for i, (x, y) in zip(every, places, strict=True)},
        explained=explained,
    )


def _nearest(unit_VD: np.ndarray, i: int, n: int) -> dict[int, float]:
    """The ids of the n nearest other tokens, with their cosines."""
    cosines_V = unit_VD @ unit_VD[i]
    cosines_V[i] = -np.inf
    order = np.argsort(-cosines_V, kind="stable")[: min(n, len(cosines_V) - 1)]
    return dict(zip(order.tolist(), cosines_V[order].tolist(), strict=True))


def on_a_plane(vectors_ND: np.ndarray) -> tuple[np.ndarray, float]:
    """Vectors along their first two principal components, (N, 2), and the share of the variance.

    The sign of a component is arbitrary: it is chosen so that the furthest place is positive.
    """
    centred_ND = vectors_ND - vectors_ND.mean(axis=0)
    left, sizes, _ = np.linalg.svd(centred_ND, full_matrices=False)
    places_NC = (left * sizes)[:, :2]
    furthest = places_NC[np.abs(places_NC).argmax(axis=0), np.arange(places_NC.shape[1])]
    places_N2 = np.zeros((len(vectors_ND), 2))
    places_N2[:, : places_NC.shape[1]] = places_NC * np.where(furthest < 0, -1.0, 1.0)
    whole = float((sizes**2).sum())
    return places_N2, float((sizes[:2] ** 2).sum() / whole) if whole else 1.0
