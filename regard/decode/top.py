"""The largest few of many numbers."""

from __future__ import annotations

from torch import Tensor

GROUPS = {"cpu": (32,), "cuda": (128, 64, 32)}
"""Numbers in a group, the best size first; it must divide the row. (2,048 rows of 32,768 on an H200: 0.84 ms
by `topk` alone, 0.68 in groups of 32, 0.33 in groups of 128.)"""


def top(x_RV: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k largest numbers of each row and where they stand, the largest first.

    The k largest lie in the k groups with the largest maxima, so only those groups are sorted: a maximum is
    cheap where a search for places is not. That is several times faster (for k = 1 too).
    """
    R, V = x_RV.shape
    fitting = [size for size in GROUPS.get(x_RV.device.type, ()) if V % size == 0 and k * size < V]
    if not fitting:
        return x_RV.topk(k, dim=-1)
    size = fitting[0]
    groups = x_RV.view(R, V // size, size)
    best = groups.amax(dim=-1).topk(k, dim=-1).indices
    within = groups.gather(1, best[:, :, None].expand(-1, -1, size)).flatten(1)
    values, places = within.topk(k, dim=-1)
    found = best.gather(1, places // size) * size + places % size
    return values, found
