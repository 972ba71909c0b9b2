"""Phrases that an output must contain, each in one of its spellings; the model decides where.

Beam search with banks, after Post and Vilar (2018): hypotheses are sorted by how much of the phrases they
have, and every bank keeps its best, so that one that has just paid for a rare word is not compared with
those that have yet to. Two rules make sure of the phrases: no output ends before it has them, and no token
is taken after which they would not fit into the limit any more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import torch
from torch import Tensor

from regard.decode.beam import Beams, Candidates
from regard.decode.constraints import NEVER, Constraints
from regard.decode.step import top
from regard.errors import RequestError

Spellings = tuple[tuple[int, ...], ...]
"""The ways to write one phrase in tokens."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a hypothesis has come."""

    has: frozenset[int] = frozenset()
    """Phrases that it contains."""
    begun: frozenset[tuple[int, ...]] = frozenset()
    """Beginnings of spellings that it ends with."""


@dataclass(frozen=True)
class Phrases:
    """The phrases of one source."""

    phrases: tuple[Spellings, ...]

    def __post_init__(self) -> None:
        for i, spellings in enumerate(self.phrases):
            if not spellings or not all(spellings):
                raise RequestError(f"phrase {i} has no spelling, or an empty one: give it some tokens")

    @cached_property
    def _phrase_of(self) -> dict[tuple[int, ...], set[int]]:
        found: dict[tuple[int, ...], set[int]] = {}
        for i, spellings in enumerate(self.phrases):
            for spelling in spellings:
                found.setdefault(spelling, set()).add(i)
        return found

    @cached_property
    def _beginnings(self) -> frozenset[tuple[int, ...]]:
        return frozenset(spelling[:n] for spelling in self._phrase_of for n in range(1, len(spelling) + 1))

    @cached_property
    def _shortest(self) -> tuple[int, ...]:
        return tuple(min(map(len, spellings)) for spellings in self.phrases)

    @property
    def n_tokens(self) -> int:
        """Tokens that all phrases take in their shortest spellings."""
        return sum(self._shortest)

    def after(self, progress: Progress, token: int) -> Progress:
        """With one more token."""
        grown = frozenset(
            longer for begun in (*progress.begun, ()) if (longer := (*begun, token)) in self._beginnings
        )
        has = progress.has.union(*(self._phrase_of.get(spelling, ()) for spelling in grown))
        return Progress(has, grown)

    def missing(self, progress: Progress) -> int:
        """Tokens that make up all that is missing: what is best to go on with, and then the rest."""
        rest = sum(n for i, n in enumerate(self._shortest) if i not in progress.has)
        saved = (
            self._shortest[i] - (len(spelling) - len(begun))
            for spelling, phrases in self._phrase_of.items()
            for begun in progress.begun
            if spelling[: len(begun)] == begun
            for i in phrases - progress.has
        )
        return rest - max((0, *saved))

    def next_tokens(self, progress: Progress) -> set[int]:
        """Tokens that begin a spelling of what is missing, or go on with one."""
        return {
            spelling[len(begun)]
            for spelling, phrases in self._phrase_of.items()
            if phrases - progress.has
            for begun in (*progress.begun, ())
            if spelling[: len(begun)] == begun
        }


class PhraseGuide:
    """Leads a beam search through the phrases of its sources."""

    def __init__(self, phrases: Sequence[Phrases], constraints: Constraints) -> None:
        self._phrases, self._constraints = phrases, constraints
        self._prefixes = constraints.prefixes or ((),) * constraints.n_sources
        self._known: dict[tuple[int, tuple[int, ...]], Progress] = {}
        for source in range(constraints.n_sources):
            self._check(source)

    def _check(self, source: int) -> None:
        phrases, prefix = self._phrases[source], self._prefixes[source]
        if any(self._constraints.eos in spelling for ways in phrases.phrases for spelling in ways):
            raise RequestError(f"a phrase contains {self._constraints.eos}, the token that ends an output")
        needed = len(prefix) + phrases.missing(reduce(phrases.after, prefix, Progress())) + 1
        if needed > (limit := self._constraints.limits[source]):
            problem = f"phrases and prefix make an output of at least {needed} tokens, its end counted"
            raise RequestError(
                f"{problem}, and its limit is {limit}: leave some out, or raise `extra_length`"
            )

    def expand(self, beams: Beams, so_far_RT: Tensor, log_probs_RV: Tensor) -> Candidates:
        """The best of every bank, then the second best of every bank, and so on."""
        progress = self._progress(beams, so_far_RT)
        log_probs_RV = self._allowed(so_far_RT.shape[1], log_probs_RV, progress)
        pairs = self._pairs(beams, log_probs_RV, progress)
        C = max(map(len, pairs))
        # Sources with fewer fill up with their first, and those do not count.
        padded = [[*each, *[each[0]] * (C - len(each))] for each in pairs]
        rows_BC, ids_BC = torch.tensor(padded, device=log_probs_RV.device).unbind(dim=-1)
        log_probs_BC = log_probs_RV[rows_BC, ids_BC]
        scores_BC = beams.scores_BW.flatten()[rows_BC] + log_probs_BC
        counts_B = torch.tensor([len(each) for each in pairs], device=rows_BC.device)
        candidates = Candidates(scores_BC, rows_BC, ids_BC, log_probs_BC)
        candidates = candidates.only(torch.arange(C, device=rows_BC.device) < counts_B[:, None])
        banks = [[self._bank(*progress[row], token, beams) for row, token in each] for each in pairs]
        scores = candidates.scores_BC.tolist()
        places = [_in_turns(of_one, bank) for of_one, bank in zip(scores, banks, strict=True)]
        return candidates.take(torch.tensor(places, device=rows_BC.device))

    def _allowed(self, t: int, log_probs_RV: Tensor, progress: list[tuple[int, Progress]]) -> Tensor:
        """No end before all phrases are there, and no detour that there is no room for."""
        allowed_RV = log_probs_RV.clone()
        for row, (source, so_far) in enumerate(progress):
            phrases = self._phrases[source]
            if not phrases.missing(so_far) or t < len(self._prefixes[source]):
                continue
            allowed_RV[row, self._constraints.eos] = NEVER
            room = self._constraints.limits[source] - 1 - (t + 1)  # one place is for the token that ends it
            if phrases.missing(Progress(so_far.has)) <= room:
                continue  # not even a token that leads nowhere does harm
            leading = [
                token
                for token in phrases.next_tokens(so_far)
                if phrases.missing(phrases.after(so_far, token)) <= room
            ]
            allowed_RV[row] = NEVER
            allowed_RV[row, leading] = log_probs_RV[row, leading]
        return allowed_RV

    def _pairs(
        self, beams: Beams, log_probs_RV: Tensor, progress: list[tuple[int, Progress]]
    ) -> list[list[tuple[int, int]]]:
        """For each source, rows and tokens to follow them.

        Of each row the W + 1 likeliest, one of which may end it, so that every bank has its W best here; and
        those that lead on through a phrase, however unlikely they are.
        """
        B, W = beams.scores_BW.shape
        likeliest = top(log_probs_RV, min(W + 1, log_probs_RV.shape[1]))[1].tolist()
        found: list[list[tuple[int, int]]] = [[] for _ in range(B)]
        for row, (source, so_far) in enumerate(progress):
            leading = sorted(self._phrases[source].next_tokens(so_far))
            found[row // W] += [(row, token) for token in dict.fromkeys([*likeliest[row], *leading])]
        return found

    def _bank(self, source: int, progress: Progress, token: int, beams: Beams) -> int:
        """Hypotheses that lack about as much; no more banks than the beam is wide."""
        phrases, width = self._phrases[source], beams.scores_BW.shape[1]
        missing = phrases.missing(phrases.after(progress, token))
        return missing * min(width, phrases.n_tokens + 1) // (phrases.n_tokens + 1)

    def _progress(self, beams: Beams, so_far_RT: Tensor) -> list[tuple[int, Progress]]:
        """Source and progress of each row."""
        rows = zip(beams.sources_R.tolist(), so_far_RT.tolist(), strict=True)
        return [(source, self._of_tokens(source, tuple(ids))) for source, ids in rows]

    def _of_tokens(self, source: int, ids: tuple[int, ...]) -> Progress:
        if not ids:
            return Progress()
        if (source, ids) not in self._known:
            before = self._of_tokens(source, ids[:-1])  # known from the step before
            self._known[source, ids] = self._phrases[source].after(before, ids[-1])
        return self._known[source, ids]


def _in_turns(scores: list[float], banks: list[int]) -> list[int]:
    """Places in the order in which the banks, taking turns, put their best forward; no candidates last."""
    taken: Counter[int] = Counter()
    turns: dict[int, tuple[int, int]] = {}
    by_score = sorted(range(len(scores)), key=lambda place: -scores[place])
    for rank, place in enumerate(by_score):
        if scores[place] == NEVER:
            turns[place] = (len(scores), rank)
        else:
            turns[place] = (taken[banks[place]], rank)
            taken[banks[place]] += 1
    return sorted(by_score, key=turns.__getitem__)
