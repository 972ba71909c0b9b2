"""How near two roads to one answer must come: one table, by the dtype of what flows.

Both ends of a comparison are rounded some hundred times on their way, so a row is that many times the dtype's
own precision (2e-16, 1e-7 and 8e-3), and no more.
"""

from typing import Any

import numpy as np
import torch

TOLERANCES = {
    torch.float64: {"rtol": 1e-10, "atol": 1e-11},
    torch.float32: {"rtol": 1e-5, "atol": 2e-5},
    torch.bfloat16: {"rtol": 5e-2, "atol": 5e-2},
}

ANGLES = torch.float32
"""Sinusoids and rotations are worked out in float32 whatever flows, so they are no nearer than that."""


def assert_close(actual: torch.Tensor, expected: Any, dtype: torch.dtype | None = None) -> None:
    """Equal to the precision of `dtype`; of `actual`, when no coarser one took part."""
    expected = torch.as_tensor(np.array(expected)) if not torch.is_tensor(expected) else expected
    tolerance = TOLERANCES[actual.dtype if dtype is None else dtype]
    torch.testing.assert_close(actual.detach().double(), expected.detach().double(), **tolerance)


def differ(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two results differ by more than any rounding in float32 or float64 could make them."""
    return bool((one.detach().double() - other.detach().double()).abs().max() > 1e-3)
