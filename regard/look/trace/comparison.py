"""Two traces beside each other: two checkpoints, two sentences, a model intact and changed. No torch here.

Tokens are matched where both traces have the same ones in the same order. Where heads look is compared row by
row, over the tokens that both can look at; what each gives to all the others counts as one more.
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
"""A place in one sequence and the place in the other that matches it."""


@dataclass(frozen=True, slots=True)
class Matching:
    """Which tokens of two sequences are the same."""

    both: Places
    only_in_one: tuple[int, ...]
    only_in_other: tuple[int, ...]

    @property
    def is_whole(self) -> bool:
        """Whether the sequences are equal."""
        return not self.only_in_one and not self.only_in_other


@dataclass(frozen=True, slots=True)
class SaidOfToken:
    """A token that was wanted in both traces, and its log-probability in each."""

    id: int
    places: tuple[int, int]
    one: float
    other: float

    @property
    def change(self) -> float:
        """How much likelier the other finds it."""
        return self.other - self.one


@dataclass(frozen=True, slots=True)
class SaidAfter:
    """After a token that both have read: the candidates that one of them has and the other has not."""

    places: tuple[int, int]
    likeliest: tuple[Candidate, Candidate]
    only_in_one: tuple[Candidate, ...]
    only_in_other: tuple[Candidate, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Comparison:
    """How one trace differs from another."""

    one: TraceData
    other: TraceData
    inputs: Matching | None
    outputs: Matching | None
    log_probs: tuple[SaidOfToken, ...]
    """Of every token that was wanted in both."""
    candidates: tuple[SaidAfter, ...]
    """Of every row in which they differ."""

    def rows(self, kind: Kind, layer: int, head: int) -> np.ndarray:
        """How far the two heads look apart for each query that both have, from 0 to 1.

        The Jensen-Shannon distance, with logarithms to the base 2.
        """
        queries, keys = self._sides(kind)
        one, other = (
            _lumped(trace.attention(kind, layer, head), [p[i] for p in queries], [p[i] for p in keys])
            for i, trace in enumerate((self.one, self.other))
        )
        return jensen_shannon(one, other)

    def heads(self, kind: Kind) -> np.ndarray:
        """(layers, heads): the mean of `rows`; not a number where no query is the same."""
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
                {"id": said.id, "places": list(said.places), "one": said.one, "other": said.other}
                for said in self.log_probs
            ],
            "candidates": [
                {
                    "places": list(said.places),
                    "likeliest": [each.text for each in said.likeliest],
                    "only_in_one": [each.text for each in said.only_in_one],
                    "only_in_other": [each.text for each in said.only_in_other],
                }
                for said in self.candidates
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


def compare(one: TraceData, other: TraceData) -> Comparison:
    """Compare two traces of models of one shape.

    Raises:
        RequestError: the models have other layers or heads.
    """
    shapes = [_shape(trace) for trace in (one, other)]
    if shapes[0] != shapes[1]:
        raise RequestError(f"heads cannot be compared: one model has {shapes[0]}, the other {shapes[1]}")
    outputs = _matched(one.outputs, other.outputs)
    after = ((0, 0),) if outputs is None else outputs.both  # a classifier says one thing
    return Comparison(
        one=one,
        other=other,
        inputs=_matched(one.inputs, other.inputs),
        outputs=outputs,
        log_probs=tuple(
            SaidOfToken(one.targets[i], (i, j), float(one.log_probs[i]), float(other.log_probs[j]))
            for i, j in match(one.targets, other.targets).both
        ),
        candidates=tuple(said for i, j in after if (said := _said_after(one, other, i, j)) is not None),
    )


def match(one: tuple[int, ...], other: tuple[int, ...]) -> Matching:
    """Match two sequences of ids where they are equal."""
    blocks = SequenceMatcher(None, one, other, autojunk=False).get_matching_blocks()
    both = tuple((block.a + i, block.b + i) for block in blocks for i in range(block.size))
    left, right = ({places[side] for places in both} for side in (0, 1))
    return Matching(
        both,
        tuple(i for i in range(len(one)) if i not in left),
        tuple(i for i in range(len(other)) if i not in right),
    )


def jensen_shannon(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The distance between each row of one and of the other, from 0 to 1; rows sum to 1.

    >>> jensen_shannon(np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])).tolist()
    [1.0]
    """
    middle = (one + other) / 2
    divergence = _entropy(middle) - (_entropy(one) + _entropy(other)) / 2
    distance: np.ndarray = np.sqrt(np.clip(divergence, 0, 1))  # rounding may have left it below 0
    return distance


def _entropy(rows: np.ndarray) -> np.ndarray:
    logs = np.log2(rows, out=np.zeros_like(rows), where=rows > 0)
    entropy: np.ndarray = -(rows * logs).sum(axis=-1)
    return entropy


def _lumped(weights_LM: np.ndarray, queries: list[int], keys: list[int]) -> np.ndarray:
    """Some rows and columns, and a last column of what the rows give to all others."""
    # In float64, since distances are roots of small differences.
    rows = weights_LM[queries].astype(np.float64)
    rest = np.delete(rows, keys, axis=1).sum(axis=1, keepdims=True)
    return np.concatenate([rows[:, keys], rest], axis=1)


def _shape(trace: TraceData) -> str:
    layers = ", ".join(f"{layers_of(trace.config, kind)} {kind} layers" for kind in trace.kinds)
    return f"{layers} of {trace.config.n_heads} heads"


def _matched(one: Tokens | None, other: Tokens | None) -> Matching | None:
    return None if one is None or other is None else match(one.ids, other.ids)


def _said_after(one: TraceData, other: TraceData, i: int, j: int) -> SaidAfter | None:
    """What changed in a row; None if the same candidates are there and the likeliest is the same."""
    before, after = one.candidates(i), other.candidates(j)
    ids, ids_after = ({each.id for each in said} for said in (before, after))
    if ids == ids_after and before[0].id == after[0].id:
        return None
    return SaidAfter(
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
    """Rows of numbers; null for what is none."""
    return [[None if np.isnan(value) else value for value in row] for row in table.tolist()]


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A token whose embedding points nearly where another's does."""

    id: int
    piece: str
    """As the vocabulary writes it."""
    cosine: float
    """Of the angle between the two: 1 for the same direction."""


@dataclass(frozen=True, eq=False, slots=True)
class Neighbours:
    """Some tokens, each with those nearest to it, and all of them on one plane."""

    pieces: dict[int, str]
    """The tokens that were asked for, each once, as the vocabulary writes them."""
    nearest: dict[int, tuple[Neighbour, ...]]
    """Of each of them, the nearest first."""
    places: dict[int, tuple[float, float]]
    """Where tokens and neighbours lie: along the first two principal components of their directions."""
    explained: float
    """The share of the variance that the plane shows; the rest is not seen."""


def neighbours(
    embedding_VD: np.ndarray, ids: Sequence[int], pieces: Callable[[Sequence[int]], list[str]], n: int
) -> Neighbours:
    """The n nearest of each token by cosine, and a plane for all of them.

    Args:
        embedding_VD: a vector for each token.
        ids: the tokens that are asked for.
        pieces: how the vocabulary writes tokens.
        n: neighbours of each.
    """
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
    """The ids of the n nearest with their cosines; nobody is their own neighbour."""
    cosines_V = unit_VD @ unit_VD[i]
    cosines_V[i] = -np.inf
    order = np.argsort(-cosines_V, kind="stable")[: min(n, len(cosines_V) - 1)]
    return dict(zip(order.tolist(), cosines_V[order].tolist(), strict=True))


def on_a_plane(vectors_ND: np.ndarray) -> tuple[np.ndarray, float]:
    """Vectors along their two principal components, (N, 2), and the share of the variance that shows so.

    The sign of a component says nothing; it is chosen so that the place furthest out is above zero.
    """
    centred_ND = vectors_ND - vectors_ND.mean(axis=0)
    left, sizes, _ = np.linalg.svd(centred_ND, full_matrices=False)
    places_NC = (left * sizes)[:, :2]
    furthest = places_NC[np.abs(places_NC).argmax(axis=0), np.arange(places_NC.shape[1])]
    places_N2 = np.zeros((len(vectors_ND), 2))
    places_N2[:, : places_NC.shape[1]] = places_NC * np.where(furthest < 0, -1.0, 1.0)
    whole = float((sizes**2).sum())
    return places_N2, float((sizes[:2] ** 2).sum() / whole) if whole else 1.0
