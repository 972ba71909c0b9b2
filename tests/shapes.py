"""A tensor's name ends in its shape, and this holds the names to it.

    with shape_suffixes_checked("regard.model"):
        model(inputs, outputs)

As each function of the package returns, its local names are looked at: `q_BHLK` must have four dimensions,
and within one call a letter stands for one size. An error of the body comes out as it is; otherwise the names
that lied are raised together at the end.
"""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import numpy as np
from torch import Tensor

LEGEND = set("NSTBLMRWCDEFHKPUVY")
"""N packed tokens (S inputs, T outputs), B sequences, L queries, M keys, R rows being decoded, W width of
the beam, C candidates, D d_model, E entries, F d_ff, H heads, K d_k, P positions, U d_v, V vocabulary,
Y labels."""
SUFFIX = re.compile(r"^[a-z]\w*_([A-Z]+)$")


def wrong_names(local: dict[str, Any]) -> Iterator[str]:
    """What is wrong with the names of one call, in words."""
    sizes: dict[str, tuple[int, str]] = {}
    for name, value in local.items():
        match = SUFFIX.match(name)
        if match is None or not isinstance(value, Tensor | np.ndarray):
            continue
        letters, shape = match[1], tuple(value.shape)
        if unknown := set(letters) - LEGEND:
            yield f"{name} uses {', '.join(sorted(unknown))}, which the legend does not have"
        if len(letters) != len(shape):
            yield f"{name} is {shape}"
            continue
        for letter, size in zip(letters, shape, strict=True):
            known, witness = sizes.setdefault(letter, (size, name))
            if known != size:
                yield f"{name} is {shape}, but {letter} is {known} in {witness}"


@contextmanager
def shape_suffixes_checked(package: str) -> Iterator[set[str]]:
    """Check every call of a function of the package; gives the names of the functions that were checked."""
    problems: dict[str, None] = {}
    checked: set[str] = set()

    def look(frame: FrameType, event: str, _returned: Any) -> None:
        module = frame.f_globals.get("__name__", "")
        if event != "return" or not (module == package or module.startswith(f"{package}.")):
            return
        code = frame.f_code
        checked.add(f"{module}.{code.co_qualname}")
        for problem in wrong_names(frame.f_locals):
            problems[f"{code.co_filename}:{code.co_firstlineno} {code.co_qualname}: {problem}"] = None

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        yield checked
    finally:
        sys.setprofile(before)
    assert not problems, "\n".join([f"{len(problems)} names say another shape than they have", *problems])
