"""Beam search: the most probable hypotheses of each source, one token longer at every step (6.1).

    expand    extend all hypotheses of a source by every token, and keep the best candidates
    select    split the candidates into those that continue and those that have ended
    retire    finish sources whose unfinished hypotheses can no longer beat the finished ones

Hypotheses of equal length are ranked by log-probability, finished ones by log-probability over length
penalty. A candidate that ends counts if it is among the first W of its source; the next one continues in its
place. CTranslate2 searches in the same way but stops when `patience` · W hypotheses have ended, where this
search continues while a better one is possible. With a `patience` it stops there as well.

Letters: `B` sources, `W` hypotheses of a source, `R` = B · W rows, `C` candidates of a source, `N` finished
hypotheses of a source, `T` steps, `V` vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.cancellation import raise_if_cancelled
from regard.decode.constraints import NEVER, Constraints
from regard.decode.hypothesis import Hypothesis, length_penalty
from regard.decode.step import S, Step, top
from regard.host import widest_float


@dataclass(frozen=True, eq=False)
class Candidates:
    """Hypotheses extended by one token, in the order in which they should continue."""

    scores_BC: Tensor
    """Log-probabilities; minus infinity for an empty place."""
    rows_BC: Tensor
    """The row that a candidate continues, …"""
    ids_BC: Tensor
    """… by which token, …"""
    log_probs_BC: Tensor
    """… and the log-probability of that token."""

    def take(self, places_BC: Tensor) -> Candidates:
        """The candidates in these places, per source."""
        fields = (self.scores_BC, self.rows_BC, self.ids_BC, self.log_probs_BC)
        return Candidates(*(field.gather(1, places_BC) for field in fields))

    def only(self, which_BC: Tensor) -> Candidates:
        """Only these candidates; the places of the others are empty."""
        scores_BC = self.scores_BC.masked_fill(~which_BC, NEVER)
        return Candidates(scores_BC, self.rows_BC, self.ids_BC, self.log_probs_BC)


@dataclass(frozen=True, eq=False)
class Beams:
    """The unfinished hypotheses; those of one source are in adjacent rows."""

    scores_BW: Tensor
    """Log-probabilities; minus infinity for an empty place."""
    last_BW: Tensor
    """Their last tokens."""
    sources_B: Tensor
    """The indices of the sources in the search."""

    @staticmethod
    def start(constraints: Constraints, width: int) -> Beams:
        """One empty hypothesis per source."""
        B, device = constraints.n_sources, constraints.device
        scores_BW = torch.full((B, width), NEVER, device=device)
        scores_BW[:, 0] = 0.0
        last_BW = torch.full((B, width), constraints.bos, dtype=torch.int64, device=device)
        return Beams(scores_BW, last_BW, torch.arange(B, device=device))

    @property
    def sources_R(self) -> Tensor:
        """The source index of every row."""
        return self.sources_B.repeat_interleave(self.scores_BW.shape[1])

    def followed_by(self, chosen: Candidates) -> Beams:
        """The hypotheses after these candidates continue."""
        return Beams(chosen.scores_BC, chosen.ids_BC, self.sources_B)

    def keep(self, places_B: Tensor) -> Beams:
        """Only the sources in these places."""
        return Beams(*(field.index_select(0, places_B) for field in vars(self).values()))


@dataclass(frozen=True, eq=False)
class History:
    """For every hypothesis and step, the beam that it continued and the token that it added."""

    beams_BWT: Tensor
    ids_BWT: Tensor
    log_probs_BWT: Tensor

    @staticmethod
    def none(n_sources: int, width: int, n_steps: int, device: torch.device | str) -> History:
        """An empty history for this number of steps."""
        ids_BWT = torch.zeros(n_sources, width, n_steps, dtype=torch.int64, device=device)
        return History(ids_BWT, ids_BWT.clone(), torch.zeros_like(ids_BWT, dtype=widest_float(device)))

    def write(self, step_1: Tensor, going: Candidates) -> None:
        """Store, in place, the candidates that continue at a step."""
        self.beams_BWT.index_copy_(2, step_1, (going.rows_BC % self.beams_BWT.shape[1])[:, :, None])
        self.ids_BWT.index_copy_(2, step_1, going.ids_BC[:, :, None])
        log_probs_BW1 = going.log_probs_BC[:, :, None].to(self.log_probs_BWT.dtype)
        self.log_probs_BWT.index_copy_(2, step_1, log_probs_BW1)

    def keep(self, places_B: Tensor) -> History:
        """Only the sources in these places."""
        return History(*(field.index_select(0, places_B) for field in vars(self).values()))

    def tokens_so_far(self, n_steps: int) -> Tensor:
        """The tokens of every row after this number of steps, (R, n_steps)."""
        B, W, _ = self.ids_BWT.shape
        beams_BW = torch.arange(W, device=self.ids_BWT.device).expand(B, -1)
        ids = []
        for step in reversed(range(n_steps)):
            ids.append(self.ids_BWT[:, :, step].gather(1, beams_BW))
            beams_BW = self.beams_BWT[:, :, step].gather(1, beams_BW)
        return torch.stack(ids[::-1], dim=-1).flatten(0, 1) if ids else beams_BW.new_empty(B * W, 0)


@dataclass(frozen=True, eq=False)
class Ended:
    """The best finished hypotheses of every source so far, the best first."""

    scores_BN: Tensor
    """Scores after the length penalty; minus infinity for an empty place."""
    lengths_BN: Tensor
    """Numbers of tokens, the end included."""
    beams_BN: Tensor
    """The beam that a hypothesis continued at its last step, …"""
    ids_BN: Tensor
    """… by which token, …"""
    log_probs_BN: Tensor
    """… and the log-probability of that token."""
    counts_B: Tensor
    """Numbers of all hypotheses that have ended."""

    @staticmethod
    def none(n_sources: int, n_best: int, device: torch.device | str) -> Ended:
        """The state before the first step."""
        scores_BN = torch.full((n_sources, n_best), NEVER, device=device)
        ids_BN = torch.zeros_like(scores_BN, dtype=torch.int64)
        counts_B = torch.zeros(n_sources, dtype=torch.int64, device=device)
        others = (ids_BN, ids_BN.clone(), ids_BN.clone(), torch.zeros_like(scores_BN))
        return Ended(scores_BN, *others, counts_B)

    def joined_by(self, ending: Candidates, step_1: Tensor, penalty: Tensor | float, width: int) -> Ended:
        """The best of these and of the candidates that end at this step, scored with this penalty."""
        ranked = torch.cat([self.scores_BN, ending.scores_BC / penalty], dim=1)
        # Stable, so that among equals the first to end comes first.
        places_BN = ranked.argsort(dim=1, descending=True, stable=True)[:, : self.scores_BN.shape[1]]
        lengths_BC = (step_1 + 1).expand_as(ending.ids_BC)
        mine = (self.lengths_BN, self.beams_BN, self.ids_BN, self.log_probs_BN)
        theirs = (lengths_BC, ending.rows_BC % width, ending.ids_BC, ending.log_probs_BC)
        lengths, beams, ids, log_probs = (
            torch.cat(pair, dim=1).gather(1, places_BN) for pair in zip(mine, theirs, strict=True)
        )
        counts_B = self.counts_B + (ending.scores_BC > NEVER).sum(dim=1)
        return Ended(ranked.gather(1, places_BN), lengths, beams, ids, log_probs, counts_B)

    def keep(self, places_B: Tensor) -> Ended:
        """Only the sources in these places."""
        return Ended(*(field.index_select(0, places_B) for field in vars(self).values()))

    def hypotheses(self, history: History, eos: int, alpha: float) -> list[tuple[Hypothesis, ...]]:
        """The finished hypotheses of every source, as values."""
        ids, log_probs = self._read_back(history)
        lengths, exists = self.lengths_BN.tolist(), (self.scores_BN > NEVER).tolist()
        return [
            tuple(
                Hypothesis.of_tokens(
                    ids[b, n, :length].tolist(), log_probs[b, n, :length].tolist(), eos=eos, alpha=alpha
                )
                for n, length in enumerate(lengths[b])
                if exists[b][n]
            )
            for b in range(len(lengths))
        ]

    def _read_back(self, history: History) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Tokens and log-probabilities of every hypothesis, (B, N, length of the longest)."""
        longest = max(1, int(self.lengths_BN.max()))
        steps = (field[:, :, : longest - 1].cpu().numpy() for field in vars(history).values())
        beams_BWT, ids_BWT, log_probs_BWT = steps
        last_BN, beams_BN, last_ids, last_log_probs = (
            field.cpu().numpy()
            for field in (self.lengths_BN - 1, self.beams_BN, self.ids_BN, self.log_probs_BN)
        )
        ids = np.zeros((*last_BN.shape, longest), dtype=np.int64)
        log_probs = np.zeros((*last_BN.shape, longest))
        for step in reversed(range(longest)):
            here, before = last_BN == step, last_BN > step
            ids[..., step] = np.where(here, last_ids, 0)
            log_probs[..., step] = np.where(here, last_log_probs, 0)
            if before.any():
                went_on = (
                    np.take_along_axis(x[:, :, step], beams_BN, axis=1) for x in (ids_BWT, log_probs_BWT)
                )
                ids[..., step], log_probs[..., step] = (
                    np.where(before, x, y[..., step]) for x, y in zip(went_on, (ids, log_probs), strict=True)
                )
                earlier = np.take_along_axis(beams_BWT[:, :, step], beams_BN, axis=1)
                beams_BN = np.where(before, earlier, beams_BN)
        return ids, log_probs


class Guide(Protocol):
    """Chooses the candidates of a search; see `phrases.py`."""

    def expand(self, beams: Beams, so_far_RT: Tensor, log_probs_RV: Tensor) -> Candidates:
        """At least 2 W candidates per source, in the order in which they should continue."""


class Observer(Protocol):
    """Is informed of every step of a search."""

    def begin(self, constraints: Constraints, width: int, alpha: float, n_best: int) -> None:
        """A new search starts."""

    def step(self, candidates: Candidates, going: Candidates, ending: Candidates) -> None:
        """All candidates of a step, those that continue, and those that have ended."""


def beam_search(
    step: Step[S],
    state: S,
    constraints: Constraints,
    *,
    width: int,
    alpha: float = 0.0,
    n_best: int = 1,
    patience: float | None = None,
    guide: Guide | None = None,
    observer: Observer | None = None,
) -> list[tuple[Hypothesis, ...]]:
    """At most `n_best` hypotheses per source, the best first; `state` has `width` rows per source."""
    if observer is not None:
        observer.begin(constraints, width, alpha, n_best)
    n_sources, device = constraints.n_sources, constraints.device
    beams, ended = Beams.start(constraints, width), Ended.none(n_sources, n_best, device)
    history = History.none(n_sources, width, max(constraints.limits), device)
    penalties = torch.tensor([length_penalty(limit, alpha) for limit in constraints.limits], device=device)
    found: dict[int, tuple[Hypothesis, ...]] = {}
    for t in range(max(constraints.limits)):
        raise_if_cancelled()
        log_probs_RV, state = step(beams.last_BW.flatten(), state)
        if constraints.bind_at(t):
            log_probs_RV = constraints.apply(log_probs_RV, history.tokens_so_far(t), beams.sources_R)
        if guide is None:
            candidates = expand(beams, log_probs_RV)
        else:
            candidates = guide.expand(beams, history.tokens_so_far(t), log_probs_RV)
        last_chance_B = constraints.limits_B[beams.sources_B] == t + 1
        going, ending = select(candidates, width, constraints.eos, last_chance_B)
        if observer is not None:
            observer.step(candidates, going, ending)
        step_1 = torch.tensor([t], device=device)
        ended = ended.joined_by(ending, step_1, length_penalty(t + 1, alpha), width)
        history.write(step_1, going)
        beams = beams.followed_by(going)
        settled_B = last_chance_B | retire(beams, ended, penalties[beams.sources_B], patience)
        settled = settled_B.tolist()  # the only synchronisation with the device in a step
        if any(settled):
            leaving = settled_B.nonzero()[:, 0]
            best = ended.keep(leaving).hypotheses(history.keep(leaving), constraints.eos, alpha)
            found |= dict(zip(beams.sources_B[leaving].tolist(), best, strict=True))
        if all(settled):
            break
        state = state.reorder(going.rows_BC.flatten())
        if any(settled):
            staying = (~settled_B).nonzero()[:, 0]
            state, history = state.keep(staying), history.keep(staying)
            beams, ended = beams.keep(staying), ended.keep(staying)
    return [found[source] for source in range(n_sources)]


def expand(beams: Beams, log_probs_RV: Tensor) -> Candidates:
    """The 2 W best candidates per source: at most W of them end, so W can continue."""
    B, W = beams.scores_BW.shape
    # The best of a source are among the best of its rows, which leaves less to add and to sort.
    log_probs_RC, ids_RC = top(log_probs_RV, min(2 * W, log_probs_RV.shape[1]))
    scores = (beams.scores_BW[:, :, None] + log_probs_RC.view(B, W, -1)).flatten(1)
    scores_BC, places_BC = scores.topk(min(2 * W, scores.shape[1]), dim=-1)
    first_row_B1 = torch.arange(0, B * W, W, device=scores.device)[:, None]
    rows_BC = first_row_B1 + places_BC // log_probs_RC.shape[1]
    ids, log_probs = ids_RC.view(B, -1), log_probs_RC.view(B, -1)
    return Candidates(scores_BC, rows_BC, ids.gather(1, places_BC), log_probs.gather(1, places_BC))


def select(
    candidates: Candidates, width: int, eos: int, last_chance_B: Tensor
) -> tuple[Candidates, Candidates]:
    """The first W candidates per source that do not end; and those of the first W that end.

    At the limit of a source all of its first W end.
    """
    ends_BC = candidates.ids_BC == eos
    C = ends_BC.shape[1]
    # In order, but with all candidates that end behind the others.
    places_BW = (ends_BC * C + torch.arange(C, device=ends_BC.device)).topk(width, dim=1, largest=False)[1]
    going = candidates.take(places_BW)
    first = candidates.take(torch.arange(width, device=ends_BC.device).expand(len(ends_BC), -1))
    return going, first.only((first.ids_BC == eos) | last_chance_B[:, None])


def retire(beams: Beams, ended: Ended, greatest_penalty_B: Tensor, patience: float | None) -> Tensor:
    """Whether a source is finished: no unfinished hypothesis can still enter its n best.

    Log-probabilities only decrease, so the best possible score of a hypothesis is its present log-probability
    over the largest length penalty of its source, that of the limit.
    """
    if patience is not None:
        return ended.counts_B >= round(patience * beams.scores_BW.shape[1])
    return ended.scores_BN[:, -1] >= beams.scores_BW.amax(dim=1) / greatest_penalty_B
