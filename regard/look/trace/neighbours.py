"""Which tokens have embeddings alike, and where they lie on the plane that shows most. No torch here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np


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
