"""Traces that are kept for a while, so that a page can ask for one head after another.

Each is kept as one block of bytes. As it is, a trace has a third more in small objects than in its arrays; in
one block it takes what it counts for, and leaves no holes behind.
"""

from __future__ import annotations

import pickle

from regard.look.trace import Trace
from regard.serve.shelf import Kept


def packed(trace: Trace) -> bytes:
    """A trace as one block."""
    return pickle.dumps(trace, pickle.HIGHEST_PROTOCOL)


def unpacked(kept: Kept) -> Trace:
    """The trace itself, as it was when this process packed it."""
    found: Trace = pickle.loads(kept.content)
    return found
