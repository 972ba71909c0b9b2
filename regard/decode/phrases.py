"""Phrases that an output must contain, in one of their spellings; the model decides where.

Beam search with banks (Post and Vilar, 2018): hypotheses are grouped by how much of the phrases they contain,
and every group keeps its best, so a hypothesis that contains a rare word does not compete with those that do
not yet. Two rules guarantee the phrases: no output ends without them, and no token is allowed after which
they would not fit into the limit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce

import torch
from torch import Tensor

from regard.decode.beam import Beams, Candidates
from regard.decode.constraints import NEVER, Constraints
from regard.decode.step import top
from regard.errors import RequestError

Spellings = tuple[tuple[int, ...], ...]
"""The token sequences of one phrase."""


Begun = tuple[int, tuple[int, ...]]
"""A phrase by its index, and the beginning of one of its spellings."""


@dataclass(frozen=True, slots=True)
class PhraseProgress:
    """What a hypothesis contains and lacks of the phrases."""

    lacking: tuple[int, ...]
    """How many occurrences of each phrase are missing."""
    n_tokens: int
    """Tokens of these occurrences in their shortest spellings."""
    begun: frozenset[Begun] = frozenset()
    """Beginnings that the hypothesis ends with."""


class Phrases:
    """The phrases of a source. One that is listed several times must occur as often, without overlaps."""

    def __init__(self, phrases: Sequence[Spellings]) -> None:
        for i, spellings in enumerate(phrases):
            if not spellings or not all(spellings):
                problem = f"phrase {i} has no spelling, or an empty one: it needs at least one token"
                raise RequestError(problem, code="bad_phrase")
        counts = Counter(phrases)
        self.phrases = tuple(counts)
        """Each phrase once."""
        self._shortest = [min(map(len, spellings)) for spellings in self.phrases]
        self.n_tokens = sum(counts[each] * n for each, n in zip(self.phrases, self._shortest, strict=True))
        """Tokens of all phrases in their shortest spellings."""
        self.start = PhraseProgress(tuple(counts.values()), self.n_tokens)
        """The progress of an empty hypothesis."""

    @cached_property
    def _rest(self) -> dict[tuple[int, ...], dict[int, int]]:
        """Per beginning, the phrases that begin so, and how many tokens complete the shortest spelling."""
        rest: dict[tuple[int, ...], dict[int, int]] = {}
        for i, spellings in enumerate(self.phrases):
            for spelling in spellings:
                for n in range(1, len(spelling) + 1):
                    of_phrases, left = rest.setdefault(spelling[:n], {}), len(spelling) - n
                    of_phrases[i] = min(left, of_phrases.get(i, left))
        return rest

    @cached_property
    def _next(self) -> dict[Begun, set[int]]:
        """The tokens that continue a beginning, the empty one included."""
        following: dict[Begun, set[int]] = {}
        for i, spellings in enumerate(self.phrases):
            for spelling in spellings:
                for n, token in enumerate(spelling):
                    following.setdefault((i, spelling[:n]), set()).add(token)
        return following

    def after(self, progress: PhraseProgress, token: int) -> PhraseProgress:
        """The progress after one more token."""
        grown: list[Begun] = [
            (i, longer)
            for i, begun in (*progress.begun, *((i, ()) for i in self._rest.get((token,), ())))
            if i in self._rest.get(longer := (*begun, token), ())
        ]
        if not grown:
            return replace(progress, begun=frozenset()) if progress.begun else progress
        complete = {i for i, begun in grown if self._rest[begun][i] == 0}
        lacking, n_tokens = list(progress.lacking), progress.n_tokens
        for i in complete:
            if lacking[i]:
                lacking[i] -= 1
                n_tokens -= self._shortest[i]
        # An occurrence begins after the one before it.
        return PhraseProgress(
            tuple(lacking), n_tokens, frozenset(each for each in grown if each[0] not in complete)
        )

    def missing(self, progress: PhraseProgress) -> int:
        """Fewest tokens that complete all phrases, the best spelling that is begun included."""
        saved = (
            self._shortest[i] - self._rest[begun][i] for i, begun in progress.begun if progress.lacking[i]
        )
        return progress.n_tokens - max((0, *saved))

    def next_tokens(self, progress: PhraseProgress) -> set[int]:
        """Tokens that begin or continue a spelling of a missing phrase."""
        beginnings = (*((i, ()) for i in range(len(self.phrases))), *progress.begun)
        return {
            token
            for i, begun in beginnings
            if progress.lacking[i]
            for token in self._next.get((i, begun), ())
        }


class PhraseGuide:
    """Guides a beam search to outputs that contain the phrases of their sources."""

    def __init__(self, phrases: Sequence[Phrases], constraints: Constraints) -> None:
        self._phrases, self._constraints = phrases, constraints
        self._prefixes = constraints.prefixes or ((),) * constraints.n_sources
        self._known: dict[tuple[int, tuple[int, ...]], PhraseProgress] = {}
        for source in range(constraints.n_sources):
            self._check(source)

    def _check(self, source: int) -> None:
        phrases, prefix = self._phrases[source], self._prefixes[source]
        if any(self._constraints.eos in spelling for ways in phrases.phrases for spelling in ways):
            problem = f"a phrase contains {self._constraints.eos}, the token that ends an output: remove it"
            raise RequestError(problem, code="bad_phrase")
        needed = len(prefix) + phrases.missing(reduce(phrases.after, prefix, phrases.start)) + 1
        if needed > (limit := self._constraints.limits[source]):
            problem = f"phrases and prefix need at least {needed} tokens with the end, the limit is {limit}"
            remedy = "remove some phrases, or increase `extra_length`"
            raise RequestError(f"{problem}: {remedy}", code="phrases_too_long")

    def expand(self, beams: Beams, so_far_RT: Tensor, log_probs_RV: Tensor) -> Candidates:
        """Candidates: the best of every bank, then the second best of every bank, and so on."""
        progress = self._progress(beams, so_far_RT)
        log_probs_RV = self._allowed(so_far_RT.shape[1], log_probs_RV, progress)
        pairs = self._pairs(beams, log_probs_RV, progress)
        C = max(map(len, pairs))
        # Sources with fewer pairs are padded with their first, which is masked below.
        padded = [[*of_source, *[of_source[0]] * (C - len(of_source))] for of_source in pairs]
        rows_BC, ids_BC = torch.tensor(padded, device=log_probs_RV.device).unbind(dim=-1)
        log_probs_BC = log_probs_RV[rows_BC, ids_BC]
        scores_BC = beams.scores_BW.flatten()[rows_BC] + log_probs_BC
        counts_B = torch.tensor([len(of_source) for of_source in pairs], device=rows_BC.device)
        candidates = Candidates(scores_BC, rows_BC, ids_BC, log_probs_BC)
        candidates = candidates.only(torch.arange(C, device=rows_BC.device) < counts_B[:, None])
        banks = [
            [self._bank(*progress[row], token, beams) for row, token in of_source] for of_source in pairs
        ]
        scores = candidates.scores_BC.tolist()
        places = [_in_turns(of_one, bank) for of_one, bank in zip(scores, banks, strict=True)]
        return candidates.take(torch.tensor(places, device=rows_BC.device))

    def _allowed(self, t: int, log_probs_RV: Tensor, progress: list[tuple[int, PhraseProgress]]) -> Tensor:
        """Forbid the end before all phrases are complete, and tokens after which they would not fit."""
        allowed_RV = log_probs_RV.clone()
        for row, (source, so_far) in enumerate(progress):
            phrases = self._phrases[source]
            if not phrases.missing(so_far) or t < len(self._prefixes[source]):
                continue
            allowed_RV[row, self._constraints.eos] = NEVER
            room = self._constraints.limits[source] - 1 - (t + 1)  # one place is for the end
            if so_far.n_tokens <= room:
                continue  # any token leaves enough room
            leading = [
                token
                for token in phrases.next_tokens(so_far)
                if phrases.missing(phrases.after(so_far, token)) <= room
            ]
            allowed_RV[row] = NEVER
            allowed_RV[row, leading] = log_probs_RV[row, leading]
        return allowed_RV

    def _pairs(
        self, beams: Beams, log_probs_RV: Tensor, progress: list[tuple[int, PhraseProgress]]
    ) -> list[list[tuple[int, int]]]:
        """Per source, pairs of a row and its next token.

        Per row the W + 1 most probable tokens, one of which may be the end, so every bank has its W best; and
        the 2 W most probable of those that begin or continue a phrase.
        """
        B, W = beams.scores_BW.shape
        likeliest = top(log_probs_RV, min(W + 1, log_probs_RV.shape[1]))[1].tolist()
        pairs: list[list[tuple[int, int]]] = [[] for _ in range(B)]
        for row, (source, so_far) in enumerate(progress):
            leading = sorted(self._phrases[source].next_tokens(so_far))
            if len(leading) > 2 * W:
                leading = [leading[i] for i in log_probs_RV[row, leading].topk(2 * W)[1].tolist()]
            pairs[row // W] += [(row, token) for token in dict.fromkeys([*likeliest[row], *leading])]
        return pairs

    def _bank(self, source: int, progress: PhraseProgress, token: int, beams: Beams) -> int:
        """The bank of a candidate, by what it lacks; at most as many banks as the beam is wide."""
        phrases, width = self._phrases[source], beams.scores_BW.shape[1]
        missing = phrases.missing(phrases.after(progress, token))
        return missing * min(width, phrases.n_tokens + 1) // (phrases.n_tokens + 1)

    def _progress(self, beams: Beams, so_far_RT: Tensor) -> list[tuple[int, PhraseProgress]]:
        """Source and progress of every row."""
        rows = zip(beams.sources_R.tolist(), so_far_RT.tolist(), strict=True)
        return [(source, self._of_tokens(source, tuple(ids))) for source, ids in rows]

    def _of_tokens(self, source: int, ids: tuple[int, ...]) -> PhraseProgress:
        if not ids:
            return self._phrases[source].start
        if (source, ids) not in self._known:
            before = self._of_tokens(source, ids[:-1])  # cached in the step before
            self._known[source, ids] = self._phrases[source].after(before, ids[-1])
        return self._known[source, ids]


def _in_turns(scores: list[float], banks: list[int]) -> list[int]:
    """Places in round-robin order over the banks, the best of each first; empty places last."""
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
