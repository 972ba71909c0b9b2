"""Texts to translations: cut into sentences, decoded together, and put back where they stood."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from regard.config import DecodingConfig
from regard.engine.aligner import Aligner
from regard.engine.direction import Direction, Directions
from regard.engine.document.characters import characters
from regard.engine.document.layout import Part, parts, trimmed, without_breaks
from regard.engine.document.sentences import cut
from regard.engine.engines.fallback import Engines
from regard.engine.engines.protocol import Request
from regard.engine.options import Options
from regard.engine.phrases.requirements import Requirements
from regard.engine.result import Result, together
from regard.engine.writer import Piece, Writer, encoded
from regard.errors import RequestError
from regard.text.normalisation import composed
from regard.text.vocabularies.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class _Passage:
    """A text on its way."""

    pieces: list[Piece]
    split: int

    @property
    def sentences(self) -> list[Piece]:
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
        self._engines, self._subwords, self._options = engines, subwords, options
        self._as_read, self._search = as_read, options.search(decoding)
        self._directions, self._direction = directions, directions.asked(options.source, options.to)
        # One place is for the token that begins or ends it, one for a tag.
        self._most = max_length - 1 - max(len(each.tag) for each in directions.known)
        self._write = Writer(
            engines,
            subwords,
            self._search,
            Requirements(options, translating=as_read is None),
            most=self._most,
            aligner=aligner,
            placer=placer,
        )
        prefix = (options.prefix or "").rstrip()
        self._prefix = tuple(subwords.outputs.encode_one(prefix).tolist()) if prefix else ()

    def __call__(self, texts: Sequence[str]) -> list[Result]:
        """The translation of each text; none depends on another.

        Raises:
            RequestError: what is asked for cannot be done, or a text cannot be read.
        """
        passages = self._passages(texts)
        outputs = iter(self._write([piece for passage in passages for piece in passage.sentences]))
        return [self._result(each, [next(outputs) for _ in each.sentences]) for each in passages]

    def stream(self, text: str) -> Iterator[str]:
        """The translation of one text, piece by piece, each made of whole characters; greedy or drawn."""
        search = replace(self._search, beam_size=1, n_best=1)
        (passage,) = self._passages([text])
        for piece in passage.pieces:
            if piece.ids is None:
                yield piece.text
                continue
            if self._write.requires_anything_of(piece.text):
                # What is required may have to be searched for, so such a sentence comes whole.
                yield self._write([piece])[0][0].text
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
            if ids is not None and self._directions.has_arrived(part.text, direction):
                found = [Piece(part.text, None, direction, has_arrived=True)]
            elif ids is None or len(ids) <= self._most:
                found = [_piece(part.text, ids, direction)]
            else:
                found = self._cut(part.text, len(ids), direction)
                split += sum(piece.ids is not None for piece in found) - 1
            for piece in found:
                pieces.append(piece if piece.ids is None else piece._replace(prefix=prefix, start=start))
                prefix = prefix if piece.ids is None else ()
                start += len(composed(piece.text))
        return _Passage(_respaced(pieces, direction), split)

    def _cut(self, text: str, n_tokens: int, direction: Direction) -> list[Piece]:
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
        return encoded(self._subwords, texts)

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


def _piece(text: str, ids: tuple[int, ...] | None, direction: Direction) -> Piece:
    return Piece(text, None if ids is None else (*direction.tag, *ids), direction)


def _respaced(pieces: list[Piece], direction: Direction) -> list[Piece]:
    """With a space between sentences, or without, as the language of the outputs has it."""
    spaced: list[Piece] = []
    for piece in pieces:
        if piece.is_sentence and spaced:
            if direction.adds_spaces and spaced[-1].is_sentence:
                spaced.append(Piece(" ", None, direction))
            elif direction.drops_spaces and spaced[-1].text == " " and _ends_in_a_sentence(spaced[:-1]):
                spaced.pop()
        spaced.append(piece)
    return spaced


def _ends_in_a_sentence(pieces: list[Piece]) -> bool:
    return bool(pieces) and pieces[-1].is_sentence


def _readable(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        what = f"U+{ord(text[error.start]):04X}, half a character"
        raise RequestError(f"character {error.start + 1} of a text is {what}: it cannot be read") from None
    return text
