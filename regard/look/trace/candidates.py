"""What a model said at each step, as one shows it: some candidates, and what came if it is none of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from regard.look.trace.trace import Candidate

if TYPE_CHECKING:
    from regard.look.trace.trace import Trace


@dataclass(frozen=True, slots=True)
class Said:
    """One step."""

    after: str
    """The last token that had been read; of a classifier, the one that its label is read off."""
    candidates: tuple[Candidate, ...]
    """The likeliest first; what came is the last, if it is not among the likeliest."""
    came: int | None
    """The id that came; None behind the end of a text."""


def said_steps(trace: Trace, n: int | None = None) -> list[Said]:
    """Every step with its n likeliest candidates, or all that the trace keeps."""
    read = trace.outputs if trace.outputs is not None else trace.inputs
    assert read is not None, "a trace of nothing"
    found = []
    for row in range(trace.arrays["said.ids"].shape[1]):
        candidates = tuple(trace.candidates(row)[:n])
        came = trace.wanted[row] if row < len(trace.wanted) else None
        if came is not None and came not in {candidate.id for candidate in candidates}:
            # What ends an output is read by nobody, so only its candidates can name it.
            piece = read[row + 1].piece if row + 1 < len(read) else trace.pieces.get(came, "</s>")
            candidates += (Candidate(came, piece, float(np.exp(trace.log_probs[row]))),)
        found.append(Said(read[row].text, candidates, came))
    return found
