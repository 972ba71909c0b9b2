"""A second try for outputs that go round in a loop; what still does is flagged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from regard.decode.hypothesis import Hypothesis, loops
from regard.engine.engines.protocol import Request

NO_REPEAT = 4
"""When an output is tried again, no so many tokens in a row come twice."""

Hypotheses = tuple[Hypothesis, ...]


def with_second_try(
    requests: Sequence[Request],
    found: Sequence[Hypotheses],
    again: Callable[[list[Request]], Sequence[Hypotheses]],
) -> list[Hypotheses]:
    """What was found, and in the place of loops what `again` finds; it must keep to `NO_REPEAT`."""
    kept = list(found)
    looping = [i for i, best in enumerate(kept) if _went_round(requests[i], best)]
    if not looping:
        return kept
    for i, best in zip(looping, again([requests[i] for i in looping]), strict=True):
        # Where phrases leave no way round the loop, nothing may have been found.
        kept[i] = best if best and not loops(best[0].ids) else _flagged(best or kept[i])
    return kept


def _went_round(request: Request, best: Hypotheses) -> bool:
    """Whether the best output ends in a loop that its input does not have."""
    return bool(best) and loops(best[0].ids) and not loops(request.ids)


def _flagged(best: Hypotheses) -> Hypotheses:
    return tuple(replace(one, repetitive=loops(one.ids)) for one in best)
