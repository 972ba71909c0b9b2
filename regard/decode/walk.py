"""Search without alternatives: one token after another per row, by greedy choice or by sampling.

Letters: `R` rows being decoded, one per source; `T` tokens of an output; `V` vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from regard.cancellation import raise_if_cancelled
from regard.decode.constraints import Constraints
from regard.decode.hypothesis import Hypothesis
from regard.decode.step import S, Step, top

Choose = Callable[[Tensor, Tensor, int], Tensor]
"""`choose(log_probs_RV, sources_R, t)` returns the next token of every row, at step t."""

LEAVING = 0.25
"""Finished rows leave the batch when they are this share of it; the remaining rows are copied then."""


class Walk:
    """The growing outputs of several sources; every iteration adds a token to each unfinished row."""

    def __init__(self, step: Step[S], state: S, constraints: Constraints, choose: Choose) -> None:
        self._constraints = constraints
        shape = (constraints.n_sources, max(constraints.limits))
        self.ids_BT = torch.zeros(shape, dtype=torch.int64, device=constraints.device)
        self.token_log_probs_BT = torch.zeros(shape, device=constraints.device)
        self.lengths_B = constraints.limits_B.clone()
        self._steps = self._run(step, state, choose)

    def __iter__(self) -> Iterator[int]:
        return self._steps

    def _run(self, step: Step[S], state: S, choose: Choose) -> Iterator[int]:
        constraints = self._constraints
        sources_R = torch.arange(constraints.n_sources, device=constraints.device)
        last_R = torch.full_like(sources_R, constraints.bos)
        going_R = torch.ones_like(sources_R, dtype=torch.bool)
        for t in range(self.ids_BT.shape[1]):
            raise_if_cancelled()
            log_probs_RV, state = step(last_R, state)
            if constraints.bind_at(t):
                log_probs_RV = constraints.apply(log_probs_RV, self.ids_BT[sources_R, :t], sources_R)
            last_R = choose(log_probs_RV, sources_R, t)
            self._write(t, last_R, log_probs_RV, sources_R, going_R)
            going_R = going_R & (last_R != constraints.eos) & (constraints.limits_B[sources_R] > t + 1)
            yield t
            staying = going_R.nonzero()[:, 0]  # the only synchronisation with the device in a step
            if len(staying) == 0:
                return
            if len(staying) <= (1 - LEAVING) * len(going_R):
                state, last_R, sources_R = state.keep(staying), last_R[staying], sources_R[staying]
                going_R = going_R[staying]

    def _write(self, t: int, ids_R: Tensor, log_probs_RV: Tensor, sources_R: Tensor, going_R: Tensor) -> None:
        """Store the tokens of step t; those of finished rows are beyond their length."""
        chosen_R = log_probs_RV.gather(1, ids_R[:, None])[:, 0].to(self.token_log_probs_BT.dtype)
        self.ids_BT[sources_R, t] = ids_R
        self.token_log_probs_BT[sources_R, t] = chosen_R
        ends_R = going_R & (ids_R == self._constraints.eos)
        self.lengths_B[sources_R] = self.lengths_B[sources_R].where(~ends_R, t + 1)

    def hypotheses(self, alpha: float) -> list[Hypothesis]:
        """The outputs of all sources, in order, after the last step."""
        outputs = zip(
            self.ids_BT.tolist(), self.token_log_probs_BT.tolist(), self.lengths_B.tolist(), strict=True
        )
        eos = self._constraints.eos
        return [
            Hypothesis.of_tokens(ids[:length], log_probs[:length], eos=eos, alpha=alpha)
            for ids, log_probs, length in outputs
        ]


def walk(step: Step[S], state: S, constraints: Constraints, choose: Choose, alpha: float) -> list[Hypothesis]:
    """One hypothesis per source, in order."""
    taken = Walk(step, state, constraints, choose)
    for _ in taken:
        pass
    return taken.hypotheses(alpha)


def stream(step: Step[S], state: S, constraints: Constraints, choose: Choose) -> Iterator[int]:
    """The tokens of a single source's output, as decoded; the last is the end, unless it is cut off."""
    assert constraints.n_sources == 1, "only one output can be streamed"
    taken = Walk(step, state, constraints, choose)
    for t in taken:
        yield int(taken.ids_BT[0, t])


def likeliest(log_probs_RV: Tensor, _sources_R: Tensor, _t: int) -> Tensor:
    """Greedy choice: the most probable token of every row."""
    return top(log_probs_RV, 1)[1][:, 0]
