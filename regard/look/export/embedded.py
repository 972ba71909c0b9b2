"""What a page needs to work out every head and every walk by itself, in as few bytes as it can.

A short text is kept whole: queries, keys, values and all that the blocks handed on, from which a browser
works out what it shows, as a `Trace` does. Of a long one the largest weights of each row are kept. No torch.
"""

from __future__ import annotations

from base64 import b64encode
from dataclasses import replace
from typing import Any

import numpy as np

from regard.look.export.document import DTYPES
from regard.look.trace.blocks import layers_of
from regard.look.trace.contents import INFLUENCE
from regard.look.trace.trace import Trace
from regard.look.walk import words as words
from regard.look.walk.walk import GAPS, Step, walk


def embedded(trace: Trace, budget: int) -> dict[str, Any]:
    """Arrays as base64, and `precision`: f32 or f16 where all fit into so many bytes, else `top`.

    With `top` there are, for each kind, layer and head, of every query its largest weights, the largest
    first: pairs of a key and a weight in units of 1/65535, two bytes each.
    """
    told = ("said.", INFLUENCE)
    kept = {name: array for name, array in trace.arrays.items() if not name.startswith(told)}
    numbers = sum(array.size for array in kept.values())
    for precision, width in (("f32", 4), ("f16", 2)):
        if numbers * width <= budget:
            arrays = {name: _written(array, DTYPES[precision]) for name, array in kept.items()}
            return {"precision": precision, "arrays": arrays, "sentences": sentences(trace)}
    n_heads = trace.config.n_heads
    rows = sum(layers_of(trace.config, kind) * n_heads * len(trace.queries(kind)) for kind in trace.kinds)
    most = max(1, budget // (4 * rows))
    arrays = {
        f"{kind}.{layer}.{head}": _written(_largest(trace.attention(kind, layer, head), most), "<u2")
        for kind in trace.kinds
        for layer in range(layers_of(trace.config, kind))
        for head in range(n_heads)
    }
    return {"precision": "top", "arrays": arrays, "kept": most}


def sentences(trace: Trace) -> dict[str, Any]:
    """The words of all walks, with gaps where a token or a number belongs.

    `walks` has for each kind and layer the places of its steps in `steps`. What is said of a mask depends on
    the query, so `masked` has it for one that sees every key and for one that does not. Steps of
    interventions are left out, and told once: whoever works out the numbers knows where they belong.
    """
    plain = replace(trace, interventions=())
    told: list[dict[str, Any]] = []
    walks: dict[str, list[list[int]]] = {kind: [] for kind in trace.kinds}
    for kind in trace.kinds:
        for layer in range(layers_of(trace.config, kind)):
            steps = [_told(step.name, step) for step in walk(plain, kind, layer, 0, 0, GAPS)]
            told += [step for step in steps if step not in told]
            walks[kind].append([told.index(step) for step in steps])
    masked = {
        kind: {
            sees: _told("masked", words.masked(GAPS.token, kind, sees == "all")) for sees in ("all", "some")
        }
        for kind in trace.kinds
    }
    changed = _told("intervention", words.INTERVENTION)
    return {"steps": told, "walks": walks, "masked": masked, "intervention": changed}


def _told(name: str, said: Step | words.Words) -> dict[str, Any]:
    return {
        "name": name,
        "formula": said.formula,
        "latex": said.latex,
        "english": said.english,
        "chinese": said.chinese,
    }


def _largest(weights_LM: np.ndarray, most: int) -> np.ndarray:
    """(queries, most, 2): of each row the keys of its largest weights, and those weights."""
    most = min(most, weights_LM.shape[1])
    keys = np.argpartition(-weights_LM, most - 1, axis=1)[
        :, :most
    ]  # to sort whole rows takes ten times longer
    in_order = np.argsort(-np.take_along_axis(weights_LM, keys, axis=1), axis=1, kind="stable")
    keys = np.take_along_axis(keys, in_order, axis=1)
    shares = np.rint(np.take_along_axis(weights_LM, keys, axis=1) * 65535)
    return np.stack([keys, shares], axis=-1)


def _written(array: np.ndarray, dtype: str) -> dict[str, Any]:
    """Where a number is too large for the precision, the largest that is not: infinities do not add up."""
    if dtype == "<f2":
        array = np.clip(array, -65504, 65504)
    return {"shape": list(array.shape), "data": b64encode(array.astype(dtype).tobytes()).decode("ascii")}
