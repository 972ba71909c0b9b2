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

from typing import Protocol

import torch
from torch import Tensor

from regard.decode.beams import Beams, Candidates, Ended, History
from regard.decode.hypothesis import Hypothesis, length_penalty
from regard.decode.step import S, Step
from regard.decode.terms import Terms
from regard.decode.top import top


class Guide(Protocol):
    """Has a say in where a search goes, as `phrases.py` does."""

    def expand(self, beams: Beams, so_far_RT: Tensor, log_probs_RV: Tensor) -> Candidates:
        """At least 2 W candidates of each source, in the order in which they should go on."""


class Observer(Protocol):
    """Hears of every step of a search, and has no say in it."""

    def begin(self, terms: Terms, width: int, alpha: float, n_best: int) -> None:
        """A search starts; what was heard of another before is over."""

    def step(self, candidates: Candidates, going: Candidates, ending: Candidates) -> None:
        """What there was to choose from, what goes on, and what has ended."""


def beam_search(
    step: Step[S],
    state: S,
    terms: Terms,
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
        observer.begin(terms, width, alpha, n_best)
    beams, ended = Beams.start(terms, width), Ended.none(terms.n_sources, n_best, terms.device)
    history = History.none(terms.n_sources, width, max(terms.limits), terms.device)
    penalties = torch.tensor([length_penalty(limit, alpha) for limit in terms.limits], device=terms.device)
    found: dict[int, tuple[Hypothesis, ...]] = {}
    for t in range(max(terms.limits)):
        log_probs_RV, state = step(beams.last_BW.flatten(), state)
        if terms.bind_at(t):
            log_probs_RV = terms.apply(log_probs_RV, history.tokens_so_far(t), beams.sources_R)
        if guide is None:
            candidates = expand(beams, log_probs_RV)
        else:
            candidates = guide.expand(beams, history.tokens_so_far(t), log_probs_RV)
        last_chance_B = terms.limits_B[beams.sources_B] == t + 1
        going, ending = select(candidates, width, terms.eos, last_chance_B)
        if observer is not None:
            observer.step(candidates, going, ending)
        step_1 = torch.tensor([t], device=terms.device)
        ended = ended.joined_by(ending, step_1, length_penalty(t + 1, alpha), width)
        history.write(step_1, going)
        beams = beams.followed_by(going)
        settled_B = last_chance_B | retire(beams, ended, penalties[beams.sources_B], patience)
        settled = settled_B.tolist()  # the one time a step that the host waits for the device
        if any(settled):
            leaving = settled_B.nonzero()[:, 0]
            best = ended.keep(leaving).hypotheses(history.keep(leaving), terms.eos, alpha)
            found |= dict(zip(beams.sources_B[leaving].tolist(), best, strict=True))
        if all(settled):
            break
        state = state.reorder(going.rows_BC.flatten())
        if any(settled):
            staying = (~settled_B).nonzero()[:, 0]
            state, history = state.keep(staying), history.keep(staying)
            beams, ended = beams.keep(staying), ended.keep(staying)
    return [found[source] for source in range(terms.n_sources)]


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
