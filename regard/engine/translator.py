"""Texts to translations: cut into sentences, decoded together, and put back where they stood."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from pathlib import Path
from typing import NamedTuple

from regard.config import DecodingConfig
from regard.decode.hypothesis import Hypothesis
from regard.engine.aligner import Aligner
from regard.engine.characters import characters
from regard.engine.direction import Direction, Directions
from regard.engine.engine import Request
from regard.engine.engines import Decoded, Engines
from regard.engine.glossary import Glossary, Phrase, read_glossary
from regard.engine.layout import Part, parts, trimmed, without_breaks
from regard.engine.options import Options
from regard.engine.placement import Draft, drafted
from regard.engine.result import Result, together
from regard.engine.sentences import cut
from regard.engine.spelling import Speller
from regard.errors import RequestError
from regard.text.normalisation import composed
from regard.text.vocabulary import Vocabulary


class _Piece(NamedTuple):
    """A sentence, or what stays as it is."""

    text: str
    ids: tuple[int, ...] | None
    """What the model reads; None where it stays as it is."""
    direction: Direction
    prefix: tuple[int, ...] = ()
    start: int = 0
    """Where a sentence begins in its text."""


@dataclass(frozen=True, slots=True)
class _Passage:
    """A text on its way."""

    pieces: list[_Piece]
    split: int

    @property
    def sentences(self) -> list[_Piece]:
        return [piece for piece in self.pieces if piece.ids is not None]


class Translator:
    """Translates texts in one way."""

    def __init__(
        self,
        engines: Engines,
        subwords: Vocabulary,
        options: Options,
        *,
        max_length: int,
        decoding: DecodingConfig,
        directions: Directions,
        aligner: Aligner | None = None,
        placer: Callable[[], Aligner | None] = lambda: None,
        as_read: Callable[[str], str] | None = None,
    ) -> None:
        given = options.glossary
        self._glossary = Glossary(
            read_glossary(given) if isinstance(given, str | Path) else given, options.keep
        )
        self._engines, self._subwords, self._options = engines, subwords, options
        self._aligner, self._placer, self._as_read = aligner, placer, as_read
        self._search = options.search(decoding)
        self._directions, self._direction = directions, directions.asked(options.source, options.to)
        # One place is for the token that begins or ends it, one for a tag.
        self._most = max_length - 1 - max(len(each.tag) for each in directions.known)
        prefix = (options.prefix or "").rstrip()
        self._prefix = tuple(subwords.outputs.encode_one(prefix).tolist()) if prefix else ()
        self._spellers: dict[bool, Speller] = {}

    def __call__(self, texts: Sequence[str]) -> list[Result]:
        """The translation of each text; none depends on another.

        Raises:
            RequestError: what is asked for cannot be done, or a text cannot be read.
        """
        passages = self._passages(texts)
        outputs = iter(self._outputs([piece for passage in passages for piece in passage.sentences]))
        return [self._result(each, [next(outputs) for _ in each.sentences]) for each in passages]

    def stream(self, text: str) -> Iterator[str]:
        """The translation of one text, piece by piece, each made of whole characters; greedy or drawn."""
        search = replace(self._search, beam_size=1, n_best=1)
        (passage,) = self._passages([text])
        for piece in passage.pieces:
            if piece.ids is None:
                yield piece.text
                continue
            if self._glossary and self._glossary.phrases(piece.text):
                # Required phrases are searched for, so such a sentence comes whole.
                yield self._outputs([piece])[0][0].text
                continue
            request = Request(ids=piece.ids, prefix=piece.prefix)
            tokens = self._engines.choose(request, search).stream(request, search)
            for some in characters(self._subwords, tokens):
                yield without_breaks(some)

    def check(self, text: str) -> None:
        """Refuse what cannot be translated.

        Raises:
            RequestError: the text cannot be read, or is too long and must not be cut.
        """
        self._passages([text])

    def direction(self, text: str) -> Direction:
        """Which way a text is translated.

        Raises:
            RequestError: that was not said, and the text does not tell.
        """
        return self._direction or self._directions.of(text)

    def _speller(self, direction: Direction) -> Speller:
        without_spaces = direction.without_spaces
        if without_spaces not in self._spellers:
            self._spellers[without_spaces] = Speller(self._subwords.outputs, without_spaces=without_spaces)
        return self._spellers[without_spaces]

    # --- reading -------------------------------------------------------------------------------------------

    def _passages(self, texts: Sequence[str]) -> list[_Passage]:
        documents = [self._parts(_readable(text)) for text in texts]
        encoded = iter(self._encoded([part.text for each in documents for part in each if part.translated]))
        return [
            self._passage(document, self.direction(text), encoded)
            for document, text in zip(documents, texts, strict=True)
        ]

    def _parts(self, text: str) -> list[Part]:
        if self._as_read is not None:  # a document's summary is not that of its lines
            return list(trimmed(self._as_read(text)))
        return parts(text, whole_lines=self._options.whole_lines)

    def _passage(
        self, document: list[Part], direction: Direction, encoded: Iterator[tuple[int, ...]]
    ) -> _Passage:
        pieces, split, prefix, start = [], 1, self._prefix, 0
        for part in document:
            ids = next(encoded) if part.translated else None
            if ids is None or len(ids) <= self._most:
                found = [_piece(part.text, ids, direction)]
            else:
                found = self._cut(part.text, len(ids), direction)
                split += sum(piece.ids is not None for piece in found) - 1
            for piece in found:
                pieces.append(piece if piece.ids is None else piece._replace(prefix=prefix, start=start))
                prefix = prefix if piece.ids is None else ()
                start += len(composed(piece.text))
        return _Passage(_respaced(pieces, direction), split)

    def _cut(self, text: str, n_tokens: int, direction: Direction) -> list[_Piece]:
        if self._options.too_long == "error":
            shown = text if len(text) <= 40 else f"{text[:40]}…"
            raise RequestError(
                f"{shown!r} has {n_tokens:,} tokens, and the model reads {self._most:,} at most"
            )
        cuts = cut(text, lambda texts: list(map(len, self._encoded(texts))), self._most)
        found = [part for piece in cuts for part in trimmed(piece)]
        encoded = iter(self._encoded([part.text for part in found if part.translated]))
        return [_piece(part.text, next(encoded) if part.translated else None, direction) for part in found]

    def _encoded(self, texts: list[str]) -> list[tuple[int, ...]]:
        return [tuple(ids.tolist()) for ids in self._subwords.encode(texts)]

    # --- decoding ------------------------------------------------------------------------------------------

    def _outputs(self, sentences: list[_Piece]) -> list[list[Result]]:
        """Of each sentence its outputs, the best first."""
        phrases = [self._glossary.phrases(each.text) if self._glossary else [] for each in sentences]
        found = self._decoded(sentences, phrases, firmly=False)
        # A phrase may have become a part of a longer word.
        again = [i for i, (best, *_) in enumerate(found) if best.missing]
        retried = self._decoded([sentences[i] for i in again], [phrases[i] for i in again], firmly=True)
        for i, results in zip(again, retried, strict=True):
            if len(results[0].missing) < len(found[i][0].missing):
                found[i] = results
        return self._placed(sentences, phrases, found)

    def _placed(
        self, sentences: list[_Piece], phrases: list[list[Phrase]], found: list[list[Result]]
    ) -> list[list[Result]]:
        """With a draft for the best output where that only added its phrases, or lacks one."""
        places = [i for i, wanted in enumerate(phrases) if wanted and not sentences[i].prefix]
        if not places or (aligner := self._placer()) is None:
            return found
        requests = [self._request(sentences[i], [], firmly=False) for i in places]
        plain = self._engines.decode(requests, replace(self._search, n_best=1))
        written = [each.hypotheses[0].ids for each in plain]
        links = aligner([(request.ids, ids) for request, ids in zip(requests, written, strict=True)])
        for i, request, ids, linked in zip(places, requests, written, links, strict=True):
            draft = Draft(without_breaks(self._subwords.decode(ids)), linked)
            likelihood = partial(self._likelihood, request)
            best, with_all = found[i][0], drafted(draft, phrases[i], likelihood)
            if with_all and (best.missing or with_all.is_better_than(best.text)):
                found[i] = [*self._as_if_found(request, with_all.text, phrases[i]), *found[i][1:]]
        return found

    def _likelihood(self, request: Request, texts: list[str]) -> list[float]:
        fits = [len(ids) <= self._most for ids in self._subwords.outputs.encode(texts)]
        scores = iter(self._given(request, [text for text, may in zip(texts, fits, strict=True) if may]))
        return [next(scores).score if may else -inf for may in fits]

    def _given(self, request: Request, texts: list[str]) -> list[Hypothesis]:
        """Texts as if the search had found them."""
        targets = [tuple(ids.tolist()) for ids in self._subwords.outputs.encode(texts)]
        scores = self._engines.first.score([request.ids] * len(targets), targets)
        eos, alpha = self._subwords.eos_id, self._search.length_penalty
        return [
            Hypothesis.of_tokens((*ids, eos), each, eos=eos, alpha=alpha)
            for ids, each in zip(targets, scores, strict=True)
        ]

    def _as_if_found(self, request: Request, text: str, phrases: list[Phrase]) -> list[Result]:
        decoded = Decoded(tuple(self._given(request, [text])), self._engines.first.name)
        results = [self._results(decoded, phrases)]
        return (results if self._aligner is None else self._aligned([request], [decoded], results))[0]

    def _decoded(
        self, sentences: list[_Piece], phrases: list[list[Phrase]], *, firmly: bool
    ) -> list[list[Result]]:
        pairs = list(zip(sentences, phrases, strict=True))
        requests = [self._request(sentence, wanted, firmly=firmly) for sentence, wanted in pairs]
        decoded = self._engines.decode(requests, self._search)
        found = [self._results(each, wanted) for each, (_, wanted) in zip(decoded, pairs, strict=True)]
        return found if self._aligner is None else self._aligned(requests, decoded, found)

    def _aligned(
        self, requests: list[Request], decoded: list[Decoded], results: list[list[Result]]
    ) -> list[list[Result]]:
        """The results with links between words, all found together."""
        assert self._aligner is not None, "nobody asked for links"
        written = zip(requests, decoded, strict=True)
        pairs = [(request.ids, one.ids) for request, each in written for one in each.hypotheses]
        links, about = iter(self._aligner(pairs)), self._aligner.about
        return [[replace(one, alignment=next(links), aligned_by=about) for one in each] for each in results]

    def _request(self, sentence: _Piece, phrases: list[Phrase], *, firmly: bool) -> Request:
        assert sentence.ids is not None, "what stays as it is has no request"
        speller = self._speller(sentence.direction)
        spelt = map(speller.firm if firmly else speller.usual, phrases)
        ways_of_each = sorted(spelt, key=lambda ways: min(map(len, ways)))
        limit = min(len(sentence.ids) + self._search.extra_length, self._most)
        room = limit - len(sentence.prefix) - 1
        # What there is no room for is left out here, and found missing later.
        while ways_of_each and sum(min(map(len, ways)) for ways in ways_of_each) > room:
            ways_of_each.pop()
        return Request(ids=sentence.ids, prefix=sentence.prefix, phrases=tuple(ways_of_each))

    def _results(self, decoded: Decoded, phrases: list[Phrase]) -> list[Result]:
        found = []
        for hypothesis in decoded.hypotheses:
            text = without_breaks(self._subwords.decode(hypothesis.ids))
            result = Result(
                text=text,
                score=hypothesis.score,
                log_prob=hypothesis.log_prob,
                tokens=tuple(self._subwords.pieces(hypothesis.ids)),
                token_scores=hypothesis.token_log_probs if self._options.token_scores else (),
                engine=decoded.engine,
                repetitive=hypothesis.repetitive,
                unfinished=not hypothesis.finished,
                missing=tuple(phrase.text for phrase in phrases if not phrase.is_in(text)),
            )
            found.append(result)
        return found

    # --- putting back --------------------------------------------------------------------------------------

    def _result(self, passage: _Passage, outputs: list[list[Result]]) -> Result:
        """The best of every sentence together; and the second best, and so on."""
        n = max(map(len, outputs), default=1)
        best, *others = (
            self._together(passage, [each[min(i, len(each) - 1)] for each in outputs]) for i in range(n)
        )
        return replace(best, alternatives=tuple(others)) if others else best

    def _together(self, passage: _Passage, results: list[Result]) -> Result:
        if len(passage.pieces) == len(results) == 1:
            return results[0]
        outputs, text, placed = iter(results), "", []
        for piece in passage.pieces:
            if piece.ids is None:
                text += piece.text
                continue
            one = next(outputs)
            links = tuple(link.moved(piece.start, len(text)) for link in one.alignment)
            placed.append(replace(one, alignment=links))
            text += one.text
        return together(text, placed, passage.split)


def _piece(text: str, ids: tuple[int, ...] | None, direction: Direction) -> _Piece:
    return _Piece(text, None if ids is None else (*direction.tag, *ids), direction)


def _respaced(pieces: list[_Piece], direction: Direction) -> list[_Piece]:
    """With a space between sentences, or without, as the language of the outputs has it."""
    spaced: list[_Piece] = []
    for piece in pieces:
        if piece.ids is not None and spaced:
            if direction.adds_spaces and spaced[-1].ids is not None:
                spaced.append(_Piece(" ", None, direction))
            elif direction.drops_spaces and spaced[-1].text == " " and _ends_in_a_sentence(spaced[:-1]):
                spaced.pop()
        spaced.append(piece)
    return spaced


def _ends_in_a_sentence(pieces: list[_Piece]) -> bool:
    return bool(pieces) and pieces[-1].ids is not None


def _readable(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        what = f"U+{ord(text[error.start]):04X}, half a character"
        raise RequestError(f"character {error.start + 1} of a text is {what}: it cannot be read") from None
    return text
