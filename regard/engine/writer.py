"""Sentences to outputs that contain what they must: searched for, and mended where a search did not do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from math import inf
from typing import NamedTuple

from regard.decode.hypothesis import Hypothesis
from regard.engine.aligner import Aligner
from regard.engine.direction import Direction
from regard.engine.document.layout import without_breaks
from regard.engine.document.verbatim import Hidden, hidden
from regard.engine.engines.fallback import Decoded, Engines
from regard.engine.engines.protocol import Request, Search
from regard.engine.phrases.glossary import Phrase
from regard.engine.phrases.placement import Draft, drafted
from regard.engine.phrases.requirements import Requirements
from regard.engine.phrases.spelling import Speller
from regard.engine.result import Result
from regard.text.vocabularies.vocabulary import Vocabulary

Asked = Sequence[Phrase]
"""What an output must contain."""


class Piece(NamedTuple):
    """A sentence, or what stays as it is."""

    text: str
    ids: tuple[int, ...] | None
    """What the model reads; None where it stays as it is."""
    direction: Direction
    prefix: tuple[int, ...] = ()
    start: int = 0
    """Where a sentence begins in its text."""
    has_arrived: bool = False
    """Whether it is a sentence that stays, being in the language wanted."""

    @property
    def is_sentence(self) -> bool:
        """Whether it is one, translated or not."""
        return self.ids is not None or self.has_arrived


class Writer:
    """Writes outputs in one way."""

    def __init__(
        self,
        engines: Engines,
        subwords: Vocabulary,
        search: Search,
        requirements: Requirements,
        *,
        most: int,
        aligner: Aligner | None,
        placer: Callable[[], Aligner | None],
    ) -> None:
        """`most`: tokens of an output. `aligner`: who is to say where words come from, in results.

        `placer()`: who can say so, to put phrases where they belong.
        """
        self._engines, self._subwords, self._search = engines, subwords, search
        self._required, self._most = requirements, most
        self._aligner, self._placer = aligner, placer
        self._spellers: dict[bool, Speller] = {}

    def __call__(self, sentences: list[Piece]) -> list[list[Result]]:
        """Of each sentence its outputs, the best first."""
        found = self._containing(sentences)
        lost = [self._lost(each.text, best) for each, (best, *_) in zip(sentences, found, strict=True)]
        again = [i for i, each in enumerate(lost) if each]
        for i, results in zip(again, self._with_stand_ins([sentences[i] for i in again]), strict=True):
            best, *others = found[i]
            found[i] = results or [replace(best, missing=(*best.missing, *lost[i])), *others]
        return found

    def requires_anything_of(self, text: str) -> bool:
        """Whether the output of a sentence must contain something."""
        return bool(self._required.phrases(text) or self._required.verbatim(text))

    # --- what is no language -------------------------------------------------------------------------------

    def _lost(self, source: str, best: Result) -> list[str]:
        return [each for each in self._required.verbatim(source) if each not in best.text]

    def _with_stand_ins(self, sentences: list[Piece]) -> list[list[Result]]:
        """Of each sentence outputs that lost nothing; none where that was not found."""
        found: list[list[Result]] = [[] for _ in sentences]
        without = {i: text for i, each in enumerate(sentences) if (text := hidden(each.text)) is not None}
        read = encoded(self._subwords, [each.text for each in without.values()])
        pieces = {
            i: sentences[i]._replace(text=without[i].text, ids=(*sentences[i].direction.tag, *ids))
            for i, ids in zip(without, read, strict=True)
            if len(ids) <= self._most
        }
        for i, results in zip(pieces, self._containing([*pieces.values()]), strict=True):
            found[i] = self._restored(sentences[i], without[i], results)
        return found

    def _restored(self, sentence: Piece, without: Hidden, results: list[Result]) -> list[Result]:
        """Outputs with what was hidden; they keep the scores of the search that ranked them."""
        texts = {each: text for each in results if (text := without.restored(each.text)) and self._fits(text)}
        found = self._as_if_found(sentence, [*texts.values()], results[0].engine)
        return [
            replace(new, score=old.score, log_prob=old.log_prob)
            for old, new in zip(texts, found, strict=True)
        ]

    # --- phrases -------------------------------------------------------------------------------------------

    def _containing(self, sentences: list[Piece]) -> list[list[Result]]:
        """Of each sentence outputs with the phrases that it asks for, where that can be."""
        asked = [self._required.phrases(each.text) for each in sentences]
        found = self._decoded(sentences, asked, firmly=False)
        # A phrase may have become a part of a longer word.
        again = [i for i, (best, *_) in enumerate(found) if best.missing]
        retried = self._decoded([sentences[i] for i in again], [asked[i] for i in again], firmly=True)
        for i, results in zip(again, retried, strict=True):
            if len(results[0].missing) < len(found[i][0].missing):
                found[i] = results
        places = [i for i, wanted in enumerate(asked) if wanted and not sentences[i].prefix]
        drafts = self._drafts([sentences[i] for i in places], [asked[i] for i in places])
        for i, draft in zip(places, drafts, strict=True):
            best = found[i][0]
            if draft and (best.missing or draft.is_better_than(best.text)):
                found[i] = [*self._as_if_found(sentences[i], [draft.text], best.engine), *found[i][1:]]
        return found

    def _drafts(self, sentences: list[Piece], asked: list[list[Phrase]]) -> list[Draft | None]:
        """What is written when nobody asks for anything, with the phrases in their places."""
        if not sentences or (aligner := self._placer()) is None:
            return [None] * len(sentences)
        requests = [self._request(each, [], firmly=False) for each in sentences]
        plain = self._engines.decode(requests, replace(self._search, n_best=1))
        written = [each.hypotheses[0].ids for each in plain]
        links = aligner([(request.ids, ids) for request, ids in zip(requests, written, strict=True)])
        texts = [without_breaks(self._subwords.decode(ids)) for ids in written]
        return [
            drafted(Draft(text, linked), wanted, partial(self._likelihood, request))
            for text, linked, wanted, request in zip(texts, links, asked, requests, strict=True)
        ]

    def _likelihood(self, request: Request, texts: list[str]) -> list[float]:
        fits = list(map(self._fits, texts))
        scores = iter(self._given(request, [text for text, may in zip(texts, fits, strict=True) if may]))
        return [next(scores).score if may else -inf for may in fits]

    def _fits(self, text: str) -> bool:
        return len(self._subwords.outputs.encode_one(text)) <= self._most

    # --- decoding ------------------------------------------------------------------------------------------

    def _decoded(
        self, sentences: list[Piece], asked: list[list[Phrase]], *, firmly: bool
    ) -> list[list[Result]]:
        if not sentences:  # as usual, where it is for those of which something is missing
            return []
        pairs = list(zip(sentences, asked, strict=True))
        requests = [self._request(sentence, wanted, firmly=firmly) for sentence, wanted in pairs]
        decoded = self._engines.decode(requests, self._search)
        return self._results(requests, decoded, asked)

    def _as_if_found(self, sentence: Piece, texts: list[str], engine: str) -> list[Result]:
        """Outputs that were put together, as if a search had found them."""
        if not texts:
            return []
        request = self._request(sentence, [], firmly=False)
        decoded = Decoded(tuple(self._given(request, texts)), engine)
        return self._results([request], [decoded], [self._required.phrases(sentence.text)])[0]

    def _given(self, request: Request, texts: list[str]) -> list[Hypothesis]:
        targets = encoded(self._subwords.outputs, texts)
        scores = self._engines.first.score([request.ids] * len(targets), targets)
        eos, alpha = self._subwords.eos_id, self._search.length_penalty
        return [
            Hypothesis.of_tokens((*ids, eos), each, eos=eos, alpha=alpha)
            for ids, each in zip(targets, scores, strict=True)
        ]

    def _request(self, sentence: Piece, asked: Asked, *, firmly: bool) -> Request:
        assert sentence.ids is not None, "what stays as it is has no request"
        speller = self._speller(sentence.direction)
        spelt = map(speller.firm if firmly else speller.usual, asked)
        ways_of_each = sorted(spelt, key=lambda ways: min(map(len, ways)))
        limit = min(len(sentence.ids) + self._search.extra_length, self._most)
        room = limit - len(sentence.prefix) - 1
        # What there is no room for is left out here, and found missing later.
        while ways_of_each and sum(min(map(len, ways)) for ways in ways_of_each) > room:
            ways_of_each.pop()
        return Request(ids=sentence.ids, prefix=sentence.prefix, phrases=tuple(ways_of_each))

    def _speller(self, direction: Direction) -> Speller:
        without_spaces = direction.without_spaces
        if without_spaces not in self._spellers:
            self._spellers[without_spaces] = Speller(self._subwords.outputs, without_spaces=without_spaces)
        return self._spellers[without_spaces]

    # --- results -------------------------------------------------------------------------------------------

    def _results(
        self, requests: list[Request], decoded: list[Decoded], asked: Sequence[Asked]
    ) -> list[list[Result]]:
        """Of each request its results, with links between words where they are wanted, all found together."""
        found = [
            [self._result(one, each.engine, wanted) for one in each.hypotheses]
            for each, wanted in zip(decoded, asked, strict=True)
        ]
        if self._aligner is None:
            return found
        written = zip(requests, decoded, strict=True)
        pairs = [(request.ids, one.ids) for request, each in written for one in each.hypotheses]
        links, about = iter(self._aligner(pairs)), self._aligner.about
        return [[replace(one, alignment=next(links), aligned_by=about) for one in each] for each in found]

    def _result(self, hypothesis: Hypothesis, engine: str, asked: Asked) -> Result:
        text = without_breaks(self._subwords.decode(hypothesis.ids))
        return Result(
            text=text,
            score=hypothesis.score,
            log_prob=hypothesis.log_prob,
            tokens=tuple(self._subwords.pieces(hypothesis.ids)),
            token_scores=hypothesis.token_log_probs if self._search.token_scores else (),
            engine=engine,
            repetitive=hypothesis.repetitive,
            unfinished=not hypothesis.finished,
            missing=tuple(phrase.text for phrase in asked if not phrase.is_in(text)),
        )


def encoded(subwords: Vocabulary, texts: list[str]) -> list[tuple[int, ...]]:
    """The token ids of texts."""
    return [tuple(ids.tolist()) for ids in subwords.encode(texts)]
