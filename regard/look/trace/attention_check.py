"""Compares attention as a trace computes it with attention as it ran, block by block while the model runs.

A trace that stored all scores and weights would grow with the square of the text: for 250 tokens on each side
the bundled translator's trace has 49 MB, and they would add 42. Where both agree, nothing is stored, and a
block is compared as soon as it has run, so that its matrices need not wait for the others. Where they do not
agree, as with a similarity that was swapped in or scores that were replaced, the trace stores what ran.
"""

from __future__ import annotations

import numpy as np
from torch import Tensor

from regard.errors import RequestError
from regard.look.trace.blocks import KINDS, Kind, address_of, has_own_scores, place_of
from regard.look.trace.data import TraceData

TOLERANCE = 1e-5
"""Largest difference that counts as rounding, of weights; of scores and outputs, relative to the largest."""
ROUNDING = 4 * float(np.finfo(np.float32).eps)
"""Rounding of a head's scores, relative to the largest: the terms of a product may cancel. The exponential
turns it into as large a difference of weights and outputs."""
_FAR = 6e4
"""Scores beyond this are equal: interventions use -1e30, which float16 does not reach."""


class AttentionCheck:
    """Sees every activation of a run, and adds to a trace's arrays what they do not explain."""

    def __init__(self, trace: TraceData, arrays: dict[str, np.ndarray]) -> None:
        """`trace` has these `arrays`, which grow while the model runs."""
        self._trace, self._arrays = trace, arrays
        self._seen: dict[str, np.ndarray] = {}

    def see(self, address: str, value: Tensor) -> None:
        """Keep an activation of attention; compare its block when the block's output is seen."""
        place = place_of(address)
        if place is None or place.block not in KINDS:
            if address.endswith(".score_bias"):
                self._arrays[address] = array_of(value)
        elif place.name in ("q", "k", "v"):
            self._arrays[address] = array_of(value)
        elif place.name in ("scores", "weights", "heads"):
            self._seen[place.name] = array_of(value)
        elif place.name == "output":
            self._compare(place.block, place.layer)
            self._seen.clear()

    def _compare(self, kind: Kind, layer: int) -> None:
        trace, at = self._trace, address_of(kind, layer)
        missing = [name for name in ("scores", "weights", "heads") if name not in self._seen]
        missing += [name for name in ("q", "k", "v") if f"{at}.{name}" not in self._arrays]
        if missing:
            what = f"{at} does not record its {', '.join(missing)}: `tap` them, as MultiHeadAttention does"
            raise RequestError(what, code="not_recorded")
        heads = range(trace.config.n_heads)
        may_attend_LM = trace.may_attend(kind)

        def differ(name: str) -> bool:
            """Whether the recorded values are not those that the trace computes."""
            seen, seen_scores = self._seen[name], self._seen["scores"][0]
            for head in heads:
                match name:
                    case "scores":
                        here, there = trace.scores(kind, layer, head), seen[0, head]
                        here, there = here[may_attend_LM], there[may_attend_LM]
                    case "weights":
                        here, there = trace.attention(kind, layer, head), seen[0, head]
                    case _:
                        here, there = trace.head_output(kind, layer, head), seen[:, head]
                scale = 1.0 if name == "weights" else _largest(there)
                if name != "scores":
                    scale *= max(1.0, ROUNDING / TOLERANCE * _largest(seen_scores[head]))
                if here.shape != there.shape or not _close(here, there, scale):
                    return True
            return False

        unknown = has_own_scores(trace.config) or _lacks_weights(trace, at)
        if unknown or differ("scores"):
            self._arrays[f"{at}.scores"] = self._seen["scores"]
        for name in ("weights", "heads"):
            if differ(name):
                self._arrays[f"{at}.{name}"] = self._seen[name]


def array_of(value: Tensor) -> np.ndarray:
    """On the host, contiguous, in a dtype that numpy has."""
    value = value.detach().cpu()
    if value.element_size() < 4:  # bfloat16 or float16
        value = value.float()
    array: np.ndarray = value.numpy()
    return np.ascontiguousarray(array)


def _lacks_weights(trace: TraceData, block: str) -> bool:
    """Whether the model has no weights for the similarity that the configuration names."""
    return trace.config.similarity == "additive" and f"{block}.similarity.weight" not in trace.arrays


def _largest(values: np.ndarray) -> float:
    """The largest absolute value, of those that an intervention did not set; or 1 if that is larger."""
    sizes = np.abs(values)
    return max(1.0, float(sizes.max(initial=0.0, where=sizes < _FAR)))


def _close(one: np.ndarray, other: np.ndarray, scale: float) -> bool:
    one, other = np.clip(one, -_FAR, _FAR), np.clip(other, -_FAR, _FAR)
    return bool(np.all(np.abs(one - other) <= TOLERANCE * scale))
