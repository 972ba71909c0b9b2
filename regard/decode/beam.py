"""Beam search: the likeliest few hypotheses of each source, one token longer at every step (6.1).

    expand    each hypothesis of a source by every token, and keep the best candidates
    select    which candidates go on, and which have ended
    retire    sources that are settled, since nothing that goes on can still beat what has ended

Hypotheses of equal length compete by log-probability, those that have ended by log-probability over length
penalty. One that ends counts if it is among the first W candidates of its source; the next in line goes on in
its place. So does CTranslate2 search, and it only stops elsewhere: when `patience` · W hypotheses have ended,
where we go on for as long as a better one can come. Told a patience, this search stops there as well.

Letters: as in `beams.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.decode.constraints import NEVER, Constraints
from regard.decode.hypothesis import Hypothesis, length_penalty
from regard.decode.step import S, Step, top


@dataclass(frozen=True, eq=False)
class Candidates:
    """Hypotheses one token longer, the first in line first."""

    scores_BC: Tensor
    """Log-probabilities; minus infinity for what is no candidate at all."""
    rows_BC: Tensor
    """Which row each one continues, …"""
    ids_BC: Tensor
    """… by which token, …"""
    log_probs_BC: Tensor
    """… and how likely that token was."""

    def take(self, places_BC: Tensor) -> Candidates:
        """Those in these places of each source."""
        fields = (self.scores_BC, self.rows_BC, self.ids_BC, self.log_probs_BC)
        return Candidates(*(field.gather(1, places_BC) for field in fields))

    def only(self, which_BC: Tensor) -> Candidates:
        """The others are no candidates any more, and keep their places."""
        scores_BC = self.scores_BC.masked_fill(~which_BC, NEVER)
        return Candidates(scores_BC, self.rows_BC, self.ids_BC, self.log_probs_BC)


@dataclass(frozen=True, eq=False)
class Beams:
    """The hypotheses that go on, those of one source in rows next to each other."""

    scores_BW: Tensor
    """Log-probabilities; minus infinity where a source has fewer hypotheses."""
    last_BW: Tensor
    """Their last tokens."""
    sources_B: Tensor
    """Which source of the search each one is."""

    @staticmethod
    def start(constraints: Constraints, width: int) -> Beams:
        """One empty hypothesis for each source."""
        B, device = constraints.n_sources, constraints.device
        scores_BW = torch.full((B, width), NEVER, device=device)
        scores_BW[:, 0] = 0.0
        last_BW = torch.full((B, width), constraints.bos, dtype=torch.int64, device=device)
        return Beams(scores_BW, last_BW, torch.arange(B, device=device))

    @property
    def sources_R(self) -> Tensor:
        """Which source of the search each row belongs to."""
        return self.sources_B.repeat_interleave(self.scores_BW.shape[1])

    def followed_by(self, chosen: Candidates) -> Beams:
        """The hypotheses that these candidates are, when they go on."""
        return Beams(chosen.scores_BC, chosen.ids_BC, self.sources_B)

    def keep(self, places_B: Tensor) -> Beams:
        """Only the sources in these places."""
        return Beams(*(field.index_select(0, places_B) for field in vars(self).values()))


@dataclass(frozen=True, eq=False)
class History:
    """Which beam of its source each hypothesis went on from at each step, and by which token."""

    beams_BWT: Tensor
    ids_BWT: Tensor
    log_probs_BWT: Tensor

    @staticmethod
    def none(n_sources: int, width: int, n_steps: int, device: torch.device | str) -> History:
        """Room for so many steps."""
        ids_BWT = torch.zeros(n_sources, width, n_steps, dtype=torch.int64, device=device)
        return History(ids_BWT, ids_BWT.clone(), torch.zeros_like(ids_BWT, dtype=torch.float64))

    def write(self, step_1: Tensor, going: Candidates) -> None:
        """Put down, where it stands, what goes on at a step."""
        self.beams_BWT.index_copy_(2, step_1, (going.rows_BC % self.beams_BWT.shape[1])[:, :, None])
        self.ids_BWT.index_copy_(2, step_1, going.ids_BC[:, :, None])
        log_probs_BW1 = going.log_probs_BC[:, :, None].to(self.log_probs_BWT.dtype)
        self.log_probs_BWT.index_copy_(2, step_1, log_probs_BW1)

    def keep(self, places_B: Tensor) -> History:
        """Only the sources in these places."""
        return History(*(field.index_select(0, places_B) for field in vars(self).values()))

    def tokens_so_far(self, n_steps: int) -> Tensor:
        """What every row consists of after so many steps, (R, n_steps)."""
        B, W, _ = self.ids_BWT.shape
        beams_BW = torch.arange(W, device=self.ids_BWT.device).expand(B, -1)
        ids = []
        for step in reversed(range(n_steps)):
            ids.append(self.ids_BWT[:, :, step].gather(1, beams_BW))
            beams_BW = self.beams_BWT[:, :, step].gather(1, beams_BW)
        return torch.stack(ids[::-1], dim=-1).flatten(0, 1) if ids else beams_BW.new_empty(B * W, 0)


@dataclass(frozen=True, eq=False)
class Ended:
    """The best hypotheses of each source that have ended so far, the best first."""

    scores_BN: Tensor
    """What they are ranked by; minus infinity where there are fewer."""
    lengths_BN: Tensor
    """Their tokens, the last one counted."""
    beams_BN: Tensor
    """Which beam of its source each one went on from at its last step, …"""
    ids_BN: Tensor
    """… by which token, …"""
    log_probs_BN: Tensor
    """… and how likely that was."""
    counts_B: Tensor
    """Hypotheses that have ended, the best and the rest."""

    @staticmethod
    def none(n_sources: int, n_best: int, device: torch.device | str) -> Ended:
        """Before the first step."""
        scores_BN = torch.full((n_sources, n_best), NEVER, device=device)
        ids_BN = torch.zeros_like(scores_BN, dtype=torch.int64)
        counts_B = torch.zeros(n_sources, dtype=torch.int64, device=device)
        others = (ids_BN, ids_BN.clone(), ids_BN.clone(), torch.zeros_like(scores_BN))
        return Ended(scores_BN, *others, counts_B)

    def joined_by(self, ending: Candidates, step_1: Tensor, penalty: Tensor | float, width: int) -> Ended:
        """The best of these and of the candidates, which end at a step; their length has a penalty."""
        ranked = torch.cat([self.scores_BN, ending.scores_BC / penalty], dim=1)
        # Stable, so that of equals the first to end comes first.
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
        """As values, for each source."""
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
        """Tokens of each hypothesis and their log-probabilities, (B, N, length of the longest)."""
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
    """Has a say in where a search goes, as `phrases.py` does."""

    def expand(self, beams: Beams, so_far_RT: Tensor, log_probs_RV: Tensor) -> Candidates:
        """At least 2 W candidates of each source, in the order in which they should go on."""


class Observer(Protocol):
    """Hears of every step of a search, and has no say in it."""

    def begin(self, constraints: Constraints, width: int, alpha: float, n_best: int) -> None:
        """A search starts; what was heard of another before is over."""

    def step(self, candidates: Candidates, going: Candidates, ending: Candidates) -> None:
        """What there was to choose from, what goes on, and what has ended."""


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
    """At most `n_best` hypotheses of each source, the best first. `state` has `width` rows for each."""
    if observer is not None:
        observer.begin(constraints, width, alpha, n_best)
    n_sources, device = constraints.n_sources, constraints.device
    beams, ended = Beams.start(constraints, width), Ended.none(n_sources, n_best, device)
    history = History.none(n_sources, width, max(constraints.limits), device)
    penalties = torch.tensor([length_penalty(limit, alpha) for limit in constraints.limits], device=device)
    found: dict[int, tuple[Hypothesis, ...]] = {}
    for t in range(max(constraints.limits)):
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
        settled = settled_B.tolist()  # the one time a step that the host waits for the device
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
    """The 2 W best candidates of each source: no more than W of them end, so that W can go on."""
    B, W = beams.scores_BW.shape
    # The best of a source are among the best of its rows: less to add up, and less to sort.
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
    """The first W candidates of each source that go on; and those of its first W that have ended.

    At a source's last chance all of its first W have.
    """
    ends_BC = candidates.ids_BC == eos
    C = ends_BC.shape[1]
    # In their order, and what ends behind all that does not.
    places_BW = (ends_BC * C + torch.arange(C, device=ends_BC.device)).topk(width, dim=1, largest=False)[1]
    going = candidates.take(places_BW)
    first = candidates.take(torch.arange(width, device=ends_BC.device).expand(len(ends_BC), -1))
    return going, first.only((first.ids_BC == eos) | last_chance_B[:, None])


def retire(beams: Beams, ended: Ended, greatest_penalty_B: Tensor, patience: float | None) -> Tensor:
    """Whether each source is settled: nothing that goes on can come before the last of its n best.

    Log-probabilities only fall. So the most that a hypothesis can hope for is to keep its own, over the
    greatest length penalty that its source knows, that of the limit.
    """
    if patience is not None:
        return ended.counts_B >= round(patience * beams.scores_BW.shape[1])
    return ended.scores_BN[:, -1] >= beams.scores_BW.amax(dim=1) / greatest_penalty_B
