"""What tells a model where a token stands, as numbers: one vector a position (3.5). No torch here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from regard.errors import RequestError
from regard.look.trace.contents import side_of

if TYPE_CHECKING:
    from regard.look.trace.trace import Trace

POSITIONS = 64
"""How many are shown of a formula, which has no end; a longer text has as many as it has tokens."""


@dataclass(frozen=True, eq=False, slots=True)
class Encoding:
    """One vector for each position."""

    name: str
    note: str
    values: np.ndarray
    """(positions, dimensions)."""

    @property
    def by_distance(self) -> np.ndarray:
        """The product of two positions so far apart, from 0, in the mean over all such pairs."""
        products = self.values @ self.values.T
        means: np.ndarray = np.stack([np.diagonal(products, i).mean() for i in range(len(products))])
        return means


def encoding_of(trace: Trace) -> Encoding:
    """What the model of a trace knows of places.

    Raises:
        RequestError: it is not told any.
    """
    config = trace.config
    longest = max(len(side) for side in (trace.inputs, trace.outputs) if side is not None)
    match config.positions:
        case "sinusoidal":
            name, note = "sinusoidal positions", f"sines and cosines, d_model = {config.d_model}"
            return Encoding(name, note, sinusoids(max(POSITIONS, longest), config.d_model))
        case "learned":
            side = "encoder" if trace.inputs is not None else "decoder"
            values_ND = trace.arrays[f"{side_of(side)}_embedding.positions"]
            return Encoding("learned positions", "those of this text, as they were learned", values_ND)
        case "rotary":
            name, note = "rotary positions", f"the turns of queries and keys, d_k = {config.key_width}"
            return Encoding(name, note, sinusoids(max(POSITIONS, longest), config.key_width))
        case "none":
            raise RequestError("this model is not told where a token stands: there are no positions to show")


def sinusoids(n: int, width: int) -> np.ndarray:
    """PE(pos, 2i) = sin(pos / 10000^(2i / width)), PE(pos, 2i+1) = cos(the same)."""
    even = np.arange(0, width, 2)
    angles = np.arange(n)[:, None] * 10000.0 ** (-even / width)
    return np.stack((np.sin(angles), np.cos(angles)), axis=-1).reshape(n, -1)
