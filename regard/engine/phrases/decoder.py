"""Sentences to outputs that contain the phrases which their sources require.

A sentence is decoded with each phrase once. An output that lacks one is searched again more strictly, or
replaced by a draft that has the phrase in the place of the words it stands for (`placement.py`).

A source may require a phrase several times, where its translation has a pronoun or a compound instead: with
all occurrences of 看, "look", a search outputs "Look at this. Let's look look at that again." So outputs with
more occurrences are searched for and drafted next, and replace the first one only if each occurrence costs
little probability. Otherwise the occurrences are reported as missing.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate
from math import inf
from typing import NamedTuple

from regard.decode.hypothesis import Hypothesis
from regard.engine.direction import Direction
from regard.engine.engines.protocol import Decoded, Engines, Request, Search
from regard.engine.phrases.glossary import Phrase, Speller, absent, missing
from regard.engine.phrases.placement import Draft, drafts
from regard.engine.results import Aligner, Result
from regard.text.code_lines import without_breaks
from regard.text.vocabularies.vocabulary import Vocabulary

AFFORDABLE, DEARER = 3.0, 2.0
"""One more occurrence of a phrase may cost this log-probability, or this many times what the first one cost.

The numbers are from "Every occurrence of a term" in docs/experiments.md."""


class Piece(NamedTuple):
    """A sentence, or text that stays as it is."""

    text: str
    ids: tuple[int, ...] | None
    """What the model reads; None if the text stays as it is."""
    direction: Direction
    prefix: tuple[int, ...] = ()
    start: int = 0
    """Position of the sentence in its text."""
    stays: bool = False
    """Whether it is a sentence that stays because it is in the target language, or in an unexpected one."""
    has_tags: bool = False
    """Whether its words are aligned in any case, because inline tags are put back into it."""

    @property
    def is_sentence(self) -> bool:
        """Whether it is a sentence, translated or not."""
        return self.ids is not None or self.stays


class _Plain(NamedTuple):
    """The unconstrained output of a sentence, and the drafts that can be made of it."""

    text: str
    log_prob: float
    drafts: Iterator[Draft]


class PhraseDecoder:
    """Decodes sentences with one set of options."""

    def __init__(
        self,
        engines: Engines,
        subwords: Vocabulary,
        search: Search,
        phrases: Callable[[str], list[Phrase]],
        *,
        max_tokens: int,
        aligner: Aligner | None,
        placer: Callable[[], Aligner | None],
    ) -> None:
        """`phrases` returns what a source requires; `max_tokens` is the limit of an output."""
        self._engines, self._subwords, self._search = engines, subwords, search
        self._phrases, self._most = phrases, max_tokens
        self._aligner, self._placer = aligner, placer
        self._spellers: dict[bool, Speller] = {}

    def __call__(self, sentences: list[Piece]) -> list[list[Result]]:
        """The outputs of each sentence, the best first."""
        outputs = self._searched(sentences, repeated=False)
        required = [self._phrases(each.text) for each in sentences]
        plain = self._plain_outputs(sentences, required)
        for i, found in plain.items():
            best, draft = outputs[i][0], next(found.drafts, None)
            if draft and (absent(required[i], best.text) or draft.is_better_than(best.text)):
                outputs[i] = [*self.as_results(sentences[i], [draft.text], best), *outputs[i][1:]]
        repeated = [i for i, phrases in enumerate(required) if any(each.count > 1 for each in phrases)]
        lacking = [i for i in repeated if outputs[i][0].missing]
        searched = self._searched([sentences[i] for i in lacking], repeated=True)
        for i, results in zip(lacking, searched, strict=True):
            outputs[i] = self._with_more(sentences[i], outputs[i], results, plain.get(i))
        return outputs

    def _with_more(
        self, sentence: Piece, outputs: list[Result], searched: list[Result], plain: _Plain | None
    ) -> list[Result]:
        """The outputs, or others with more occurrences of the phrases if they are not too improbable."""
        best, others = outputs[0], searched[:1]
        limit = AFFORDABLE
        if plain:
            found = list(plain.drafts)
            if found and found[-1].is_better_than(searched[0].text):
                others = []
            others += self.as_results(sentence, [each.text for each in found], best)
            if n_inserted := len(absent(self._phrases(sentence.text), plain.text)):
                limit = max(limit, DEARER * (plain.log_prob - best.log_prob) / n_inserted)
        affordable = [
            each
            for each in others
            if (n_more := len(best.missing) - len(each.missing)) > 0
            and best.log_prob - each.log_prob <= limit * n_more
            and not (each.repetitive or each.unfinished)
        ]
        chosen = min(affordable, key=lambda each: (len(each.missing), -each.score), default=best)
        return searched if chosen is searched[0] else [chosen, *outputs[1:]]

    def decoded(
        self, sentences: list[Piece], *, repeated: bool, strict: bool = False, search: Search | None = None
    ) -> list[list[Result]]:
        """The outputs of a search with each phrase once, or as often as it is required."""
        if not sentences:  # the usual case of a retry
            return []
        requests = [self._request(each, strict=strict, repeated=repeated) for each in sentences]
        return self._results(sentences, requests, self._engines.decode(requests, search or self._search))

    def as_results(self, sentence: Piece, texts: list[str], decoded_by: Result) -> list[Result]:
        """Results for given outputs of one sentence, scored by the model."""
        return self.all_as_results([sentence], [texts], [decoded_by])[0]

    def all_as_results(
        self, sentences: list[Piece], texts: list[list[str]], decoded_by: list[Result]
    ) -> list[list[Result]]:
        """Results for given outputs of several sentences, all scored by the model in one call."""
        some = [i for i, each in enumerate(texts) if each]
        if not some:
            return [[] for _ in texts]
        requests = [_plain_request(sentences[i]) for i in some]
        pairs = [(request, text) for i, request in zip(some, requests, strict=True) for text in texts[i]]
        scored = iter(self._given([request for request, _ in pairs], [text for _, text in pairs]))
        decoded = [Decoded(tuple(next(scored) for _ in texts[i]), decoded_by[i].engine) for i in some]
        results = dict(zip(some, self._results([sentences[i] for i in some], requests, decoded), strict=True))
        return [results.get(i, []) for i in range(len(texts))]

    def fits(self, text: str) -> bool:
        """Whether a text is short enough for an output."""
        return len(self._subwords.outputs.encode_one(text)) <= self._most

    # --- search --------------------------------------------------------------------------------------------

    def _searched(self, sentences: list[Piece], *, repeated: bool) -> list[list[Result]]:
        """Outputs with the phrases; where one became part of a longer word, it is searched for again."""
        outputs = self.decoded(sentences, repeated=repeated)

        def n_lacking(i: int, result: Result) -> int:
            phrases = self._phrases(sentences[i].text)
            return len(result.missing) if repeated else len(absent(phrases, result.text))

        again = [i for i, (best, *_) in enumerate(outputs) if best.missing and n_lacking(i, best)]
        retried = self.decoded([sentences[i] for i in again], repeated=repeated, strict=True)
        for i, results in zip(again, retried, strict=True):
            if n_lacking(i, results[0]) < n_lacking(i, outputs[i][0]):
                outputs[i] = results
        return outputs

    def _request(self, sentence: Piece, *, strict: bool, repeated: bool) -> Request:
        speller, phrases = self._speller(sentence.direction), self._phrases(sentence.text)
        spelt = [(speller.separated(each) if strict else speller.usual(each), each.count) for each in phrases]
        needed = sorted(
            (i, min(map(len, ways)), ways) for ways, n in spelt for i in range(n if repeated else 1)
        )
        request = _plain_request(sentence)
        limit = min(len(request.ids) + self._search.extra_length, self._most)
        lengths = list(accumulate(n for _, n, _ in needed))
        # Occurrences that do not fit are left out here, and reported as missing later: the second ones first.
        n_fitting = bisect_right(lengths, limit - len(sentence.prefix) - 1)
        return replace(request, phrases=tuple(ways for *_, ways in needed[:n_fitting]))

    def _speller(self, direction: Direction) -> Speller:
        without_spaces = direction.without_spaces
        if without_spaces not in self._spellers:
            self._spellers[without_spaces] = Speller(self._subwords.outputs, without_spaces=without_spaces)
        return self._spellers[without_spaces]

    # --- drafts --------------------------------------------------------------------------------------------

    def _plain_outputs(self, sentences: list[Piece], required: list[list[Phrase]]) -> dict[int, _Plain]:
        """The unconstrained outputs of sentences with phrases, and their drafts."""
        places = [i for i, phrases in enumerate(required) if phrases and not sentences[i].prefix]
        if not places or (aligner := self._placer()) is None:
            return {}
        requests = [_plain_request(sentences[i]) for i in places]
        decoded = self._engines.decode(requests, replace(self._search, n_best=1))
        outputs = [each.hypotheses[0] for each in decoded]
        links = aligner([(request.ids, one.ids) for request, one in zip(requests, outputs, strict=True)])
        plain = {}
        for i, request, one, linked in zip(places, requests, outputs, links, strict=True):
            text = without_breaks(self._subwords.decode(one.ids))
            found = drafts(Draft(text, linked), required[i], partial(self._likelihood, request))
            plain[i] = _Plain(text, one.log_prob, found)
        return plain

    def _likelihood(self, request: Request, texts: list[str]) -> list[float]:
        fits = list(map(self.fits, texts))
        fitting = [text for text, may in zip(texts, fits, strict=True) if may]
        scores = iter(self._given([request] * len(fitting), fitting))
        return [next(scores).score if may else -inf for may in fits]

    def _given(self, requests: Sequence[Request], texts: list[str]) -> list[Hypothesis]:
        """Each text as the output of its request."""
        targets = encoded(self._subwords.outputs, texts)
        scores = self._engines.first.score([request.ids for request in requests], targets)
        eos, alpha = self._subwords.eos_id, self._search.length_penalty
        return [
            Hypothesis.of_tokens((*ids, eos), each, eos=eos, alpha=alpha)
            for ids, each in zip(targets, scores, strict=True)
        ]

    # --- results -------------------------------------------------------------------------------------------

    def _results(
        self, sentences: list[Piece], requests: list[Request], decoded: list[Decoded]
    ) -> list[list[Result]]:
        """The results of each request, with word links where they are needed; all are aligned in one call."""
        required = [self._phrases(each.text) for each in sentences]
        outputs = [
            [self._result(one, each.engine, phrases) for one in each.hypotheses]
            for each, phrases in zip(decoded, required, strict=True)
        ]
        places = [i for i, each in enumerate(sentences) if self._aligner or each.has_tags]
        aligner = self._aligner or (self._placer() if places else None)
        if aligner is None:
            return outputs
        pairs = [(requests[i].ids, one.ids) for i in places for one in decoded[i].hypotheses]
        links, about = iter(aligner(pairs)), aligner.about
        for i in places:
            outputs[i] = [replace(one, alignment=next(links), aligned_by=about) for one in outputs[i]]
        return outputs

    def _result(self, hypothesis: Hypothesis, engine: str, required: Sequence[Phrase]) -> Result:
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
            missing=tuple(phrase.text for phrase in missing(required, text).elements()),
        )


def _plain_request(sentence: Piece) -> Request:
    """The request for a sentence without phrases."""
    assert sentence.ids is not None, "text that stays as it is has no request"
    return Request(ids=sentence.ids, prefix=sentence.prefix)


def encoded(subwords: Vocabulary, texts: list[str]) -> list[tuple[int, ...]]:
    """The token ids of texts."""
    return [tuple(ids.tolist()) for ids in subwords.encode(texts)]
