"""Some heads of one layer, or their mean, as heat maps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from regard.look.figures.captions import LOOKS, changes_of, place_name, title_of
from regard.look.figures.heatmap import heatmaps_svg
from regard.look.trace.blocks import Kind

if TYPE_CHECKING:
    from regard.look.trace.trace import Trace


def matrix_svg(trace: Trace, kind: Kind, layer: int, heads: Sequence[int]) -> str:
    """Draw the weights of some heads of one layer, side by side and on one scale."""
    weights_HLM = np.stack([trace.attention(kind, layer, head) for head in heads])
    names = [f"head {head}" for head in heads] if len(heads) > 1 else [""]
    note = f"{place_name(kind, layer, heads)}{changes_of(trace)} · {LOOKS[kind]}"
    rows, columns = trace.queries(kind).texts, trace.keys(kind).texts
    return heatmaps_svg(weights_HLM, rows, columns, title_of(trace), names, note)
