"""Texts to translations: split into sentences, decoded together, and put back into the layout."""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from regard.config import DecodingConfig
from regard.config.checking import counted
from regard.engine.direction import Direction, Directions
from regard.engine.document.layout import Part, parts, trimmed
from regard.engine.document.sentences import cut
from regard.engine.engines.protocol import Engines
from regard.engine.markup.plain_text import as_written, marked_text
from regard.engine.markup.preparation import PreparedText, prepared
from regard.engine.markup.results import MarkedResult, marked_result, without_alignment
from regard.engine.options import TranslateOptions
from regard.engine.phrases.decoder import Piece, encoded
from regard.engine.results import Aligner, Result, joined
from regard.engine.sentence_decoder import Requirements, SentenceDecoder
from regard.engine.streams import TextStream
from regard.errors import RequestError
from regard.text.code_lines import CodeLines
from regard.text.files.lines import InputLine
from regard.text.languages import language_name
from regard.text.marked import Marked
from regard.text.normalisation import composed
from regard.text.vocabularies.vocabulary import Vocabulary


class _Document(NamedTuple):
    """A text in parts, with its languages."""

    parts: list[Part]
    direction: Direction | None
    """None if the text is in none of the source languages, and stays as it is."""
    unexpected: str = ""
    """The language of what stays as it is, because it is in none of the source languages."""
    foreign: Set[int] = frozenset()
    """The parts that stay for this reason."""


@dataclass(frozen=True, slots=True)
class _Passage:
    """A text in pieces."""

    pieces: list[Piece]
    split: int
    unexpected: str = ""

    @property
    def sentences(self) -> list[Piece]:
        return [piece for piece in self.pieces if piece.ids is not None]


class Translator:
    """Translates texts with one set of options."""

    def __init__(
        self,
        engines: Engines,
        subwords: Vocabulary,
        options: TranslateOptions,
        *,
        max_length: int,
        decoding: DecodingConfig,
        directions: Directions,
        aligner: Aligner | None = None,
        placer: Callable[[], Aligner | None] = lambda: None,
        read: Callable[[str], str] | None = None,
    ) -> None:
        """Prepare to translate.

        Args:
            engines: what decodes.
            subwords: the vocabulary.
            options: how to translate.
            max_length: positions of the model.
            decoding: defaults of the search.
            directions: the model's languages.
            aligner: aligns the words of results, if requested.
            placer: returns what aligns words to place glossary phrases, or None; called when needed.
            read: for tasks other than translation, converts a text to the one line that the model reads.
        """
        self._engines, self._subwords, self._options = engines, subwords, options
        self.refuses_long = options.too_long == "error"
        """Whether a text that is too long for the model is an error; otherwise it is split."""
        self._read, self._search = read, options.search(decoding)
        self._directions, self._direction = directions, directions.requested(options.source, options.to)
        # With the source language given, any text is translated; and only translation has languages.
        self._checks_language = options.source is None and read is None
        # One position is for the token that begins or ends a text, one for a language tag.
        self._most = max_length - 1 - max(len(each.tag) for each in directions.known)
        self._decode = SentenceDecoder(
            engines,
            subwords,
            self._search,
            Requirements(options, translating=read is None),
            max_tokens=self._most,
            aligner=aligner,
            placer=placer,
        )
        prefix = (options.prefix or "").rstrip()
        self._prefix = tuple(subwords.outputs.encode_one(prefix).tolist()) if prefix else ()

    @property
    def overlaps(self) -> bool:
        """Whether several threads that translate are faster than one: the engine queues their batches.

        Phrases need the torch engine, which uses all cores for one batch after another.
        """
        options = self._options
        return self._engines.first.queues and not (options.glossary or options.keep or options.sample)

    def __call__(self, texts: Sequence[str]) -> list[Result]:
        """The translation of each text; texts do not influence each other.

        Raises:
            RequestError: an option cannot be satisfied, or a text cannot be read.
        """
        sources = [self._marked(text) for text in texts]
        bodies = [prepared(each) for each in sources]
        found = zip(sources, bodies, self._translated(bodies), strict=True)
        return [
            each.result if not source.tags else as_written(source, body, each) for source, body, each in found
        ]

    def _marked(self, text: str) -> Marked:
        """A text with its inline markup; for other tasks than translation, markup is text."""
        return marked_text(text) if self._options.markup and self._read is None else Marked(text)

    def marked(self, texts: Sequence[Marked]) -> list[MarkedResult]:
        """The translation of each text with inline tags, which are put back at the right words.

        Raises:
            RequestError: an option cannot be satisfied, or a text cannot be read.
        """
        results = self._translated([prepared(text) for text in texts])
        has_edges = [text.text != text.text.strip() for text in texts]
        return [each if edges else each.stripped() for each, edges in zip(results, has_edges, strict=True)]

    def _translated(self, texts: Sequence[PreparedText]) -> list[MarkedResult]:
        passages = self._passages([each.body for each in texts])
        outputs = iter(self._decode([piece for passage in passages for piece in passage.sentences]))
        results = []
        for text, passage in zip(texts, passages, strict=True):
            of_pieces = [next(outputs) for _ in passage.sentences]
            result = self._result(passage, of_pieces)
            if text.body.tags and not self._options.alignment:
                result = without_alignment(result)
            results.append(marked_result(text, result, passage.pieces, of_pieces))
        return results

    def stream(self, text: str) -> TextStream[Result]:
        """The translation of one text in pieces of whole characters; greedy or sampled.

        Raises:
            RequestError: an option cannot be satisfied, or the text cannot be read.
        """
        if self._marked(text).tags:
            whole: list[Result] = []
            return TextStream(self._as_a_whole(text, whole), lambda _: whole[0])
        (passage,) = self._passages([Marked(text)])
        outputs: list[list[Result]] = []
        return TextStream(self._pieces(passage, outputs), lambda _: self._result(passage, outputs))

    def _as_a_whole(self, text: str, results: list[Result]) -> Iterator[str]:
        """The translation of a text with tags, whose places are known at its end; the result is added."""
        results += self([text])
        yield results[0].text

    def _pieces(self, passage: _Passage, outputs: list[list[Result]]) -> Iterator[str]:
        """Pieces of a translation; the result of every sentence is added to `outputs`."""
        for piece in passage.pieces:
            if piece.ids is None:
                yield piece.text
            elif self._decode.requires_anything_of(piece):
                # Phrases need beam search, and numbers may be corrected: the sentence comes as a whole.
                outputs += self._decode([piece])
                yield outputs[-1][0].text
            else:
                sentence = self._decode.stream(piece)
                yield from sentence
                outputs.append([sentence.result])

    def check(self, text: str) -> None:
        """Check that a text can be translated.

        Raises:
            RequestError: the text cannot be read, or is too long and must not be split.
        """
        self._passages([prepared(self._marked(text)).body])

    def document_direction(self, beginning: str) -> Direction:
        """The direction of a document; without options, its beginning decides.

        Raises:
            RequestError: it was not specified, and cannot be detected.
        """
        chosen = self._direction or self._directions.of_document(beginning)
        return chosen or self._directions.detect(beginning)

    def direction(self, text: str) -> Direction | None:
        """The direction in which a text is translated; None if it is in none of the source languages.

        Raises:
            RequestError: it was not specified, and cannot be detected.
        """
        return self._document(self._marked(text).text).direction

    # --- reading -------------------------------------------------------------------------------------------

    def _passages(self, texts: Sequence[Marked]) -> list[_Passage]:
        documents = [self._document(_readable(each.text)) for each in texts]
        translated = [part.text for each in documents for part in each.parts if part.translated]
        encoded = iter(self._encoded(translated))
        return [
            self._passage(document, encoded, [tag.place for tag in each.tags])
            for document, each in zip(documents, texts, strict=True)
        ]

    def _document(self, text: str) -> _Document:
        found = self._parts(text)
        foreign = self._directions.unexpected(found) if self._checks_language else {}
        if not foreign:
            # Code is in no language.
            prose = " ".join(part.text for part in found if part.translated)
            return _Document(found, self._direction or self._directions.detect(prose))
        language = next(iter(foreign.values())).language
        rest = [part for i, part in enumerate(found) if i not in foreign]
        if not any(part.translated for part in rest):
            return _Document([Part(text, translated=False)], None, language)
        prose = " ".join(part.text for part in rest if part.translated)
        direction = self._direction or self._directions.detect(prose)
        return _Document(found, direction, language, foreign.keys())

    def _parts(self, text: str) -> list[Part]:
        if self._read is not None:  # the summary of a document is not that of its lines
            return list(trimmed(self._read(text)))
        return parts(text, whole_lines=self._options.whole_lines)

    def _passage(
        self, document: _Document, encoded: Iterator[tuple[int, ...]], tags: Sequence[int] = ()
    ) -> _Passage:
        direction = document.direction or self._directions.known[0]
        pieces, split, prefix, start = [], 1, self._prefix, 0
        for i, part in enumerate(document.parts):
            ids = next(encoded) if part.translated else None
            if ids is not None and (
                i in document.foreign or self._directions.already_translated(part.text, direction)
            ):
                found = [Piece(part.text, None, direction, stays=True)]
            elif ids is None or len(ids) <= self._most:
                found = [_piece(part.text, ids, direction)]
            else:
                found = self._cut(part.text, len(ids), direction)
                split += sum(piece.ids is not None for piece in found) - 1
            for piece in found:
                end = start + len(composed(piece.text))
                is_cut = bisect_right(tags, start) < bisect_left(tags, end)
                of_piece = prefix if piece.ids is not None else ()
                pieces.append(piece._replace(prefix=of_piece, start=start, has_tags=is_cut))
                prefix, start = (prefix if piece.ids is None else ()), end
        return _Passage(_respaced(pieces, direction), split, document.unexpected)

    def _cut(self, text: str, n_tokens: int, direction: Direction) -> list[Piece]:
        if self._options.too_long == "error":
            shown = text if len(text) <= 40 else f"{text[:40]}…"
            raise RequestError(
                f"{shown!r} has {n_tokens:,} tokens; the model reads at most {self._most:,}", code="too_long"
            )
        cuts = cut(text, lambda texts: list(map(len, self._encoded(texts))), self._most)
        found = [part for piece in cuts for part in trimmed(piece)]
        encoded = iter(self._encoded([part.text for part in found if part.translated]))
        return [_piece(part.text, next(encoded) if part.translated else None, direction) for part in found]

    def _encoded(self, texts: list[str]) -> list[tuple[int, ...]]:
        return encoded(self._subwords, texts)

    # --- putting back --------------------------------------------------------------------------------------

    def _result(self, passage: _Passage, outputs: list[list[Result]]) -> Result:
        """The best output of every sentence as one; as alternatives the second best, and so on."""
        n = max(map(len, outputs), default=1)
        best, *others = (
            self._joined(passage, [each[min(i, len(each) - 1)] for each in outputs]) for i in range(n)
        )
        if passage.unexpected:
            best = replace(best, unexpected_language=passage.unexpected)
        return replace(best, alternatives=tuple(others)) if others else best

    def _joined(self, passage: _Passage, results: list[Result]) -> Result:
        if len(passage.pieces) == len(results) == 1:
            return results[0]
        outputs, text, placed = iter(results), "", []
        for piece in passage.pieces:
            if piece.ids is None:
                text += piece.text
                continue
            one = next(outputs)
            links = tuple(link.moved(piece.start, len(text)) for link in one.alignment)
            changes = tuple(change.moved(piece.start, len(text)) for change in one.numbers)
            placed.append(replace(one, alignment=links, numbers=changes))
            text += one.text
        return joined(text, placed, passage.split)


def _piece(text: str, ids: tuple[int, ...] | None, direction: Direction) -> Piece:
    return Piece(text, None if ids is None else (*direction.tag, *ids), direction)


def _respaced(pieces: list[Piece], direction: Direction) -> list[Piece]:
    """Add or remove the space between sentences, as the target language has it."""
    spaced: list[Piece] = []
    for piece in pieces:
        if piece.is_sentence and spaced:
            if direction.adds_spaces and spaced[-1].is_sentence:
                spaced.append(Piece(" ", None, direction))
            elif direction.drops_spaces and spaced[-1].text == " " and _ends_in_sentence(spaced[:-1]):
                spaced.pop()
        spaced.append(piece)
    return spaced


def _ends_in_sentence(pieces: list[Piece]) -> bool:
    return bool(pieces) and pieces[-1].is_sentence


def _readable(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        what = f"U+{ord(text[error.start]):04X}, half a surrogate pair"
        raise RequestError(
            f"character {error.start + 1} of a text is {what}: it cannot be read", code="bad_character"
        ) from None
    return text


# --- line by line -----------------------------------------------------------------------------------------


class OutputLine(NamedTuple):
    """The output for one line of input."""

    text: str
    """What to print, without the line break."""
    engine: str = ""
    notes: tuple[str, ...] = ()
    """Warnings for the user, with the place in the input."""
    failed: bool = False
    """Whether the line could not be processed; then nothing is printed, and a note gives the reason."""


def mark_code(blocks: Iterable[list[InputLine]]) -> Iterator[list[InputLine]]:
    """Mark the lines of files that belong to blocks of code or to formulas of several lines."""
    name, code = "", CodeLines()
    for block in blocks:
        marked = []
        for line in block:
            if line.number and line.name != name:
                name, code = line.name, CodeLines()
            marked.append(line._replace(is_code=code.is_code(line.text)) if line.number else line)
        yield marked


class LineTranslator:
    """Translates lines; every line of input has exactly one line of output."""

    def __init__(self, translator: Translator, *, scores: bool = False, as_json: bool = False) -> None:
        """Prepare to translate.

        Args:
            translator: translates texts.
            scores: print the score and a tab before each translation.
            as_json: print a JSON object instead.
        """
        self._translator = translator
        self._scores, self._as_json = scores, as_json

    def __call__(self, lines: Sequence[InputLine]) -> list[OutputLine]:
        """The output of each line.

        Raises:
            RequestError: an option cannot be satisfied.
        """
        checked = [self._checked(line) for line in lines]
        texts = [line.text for line in checked if line.problem is None and not line.is_code]
        results = iter(self._translator(texts))
        return [
            self._failure(line)
            if line.problem
            else self._output(line, Result(text=line.text) if line.is_code else next(results))
            for line in checked
        ]

    def _checked(self, line: InputLine) -> InputLine:
        """The line, with a problem if it cannot be translated."""
        if line.problem is not None or line.is_code:
            return line
        try:
            self._translator.direction(line.text)
            if self._translator.refuses_long:
                self._translator.check(line.text)
        except RequestError as error:
            return line._replace(text="", problem=f"{line.where}{error}")
        return line

    def _failure(self, line: InputLine) -> OutputLine:
        problem = line.problem or ""
        text = json.dumps({"text": "", "error": problem}, ensure_ascii=False) if self._as_json else ""
        return OutputLine(text, notes=(problem,), failed=True)

    def _output(self, line: InputLine, result: Result) -> OutputLine:
        text = json.dumps(_as_dict(result), ensure_ascii=False) if self._as_json else self._columns(result)
        return OutputLine(text, result.engine, tuple(line.where + warning for warning in warnings_of(result)))

    def _columns(self, result: Result) -> str:
        ranked = [result, *result.alternatives]
        if not result.text.strip() or (not self._scores and len(ranked) == 1):
            return result.text
        columns = [
            column
            for each in ranked
            for column in ((f"{each.score:.4f}",) if self._scores else ()) + (each.text,)
        ]
        return "\t".join(column.replace("\t", " ") for column in columns)


def _as_dict(result: Result) -> dict[str, Any]:
    return {**asdict(result), "alternatives": [_as_dict(each) for each in result.alternatives]}


def warnings_of(result: Result) -> Iterator[str]:
    """What a user should know about a result."""
    if code := result.unexpected_language:
        what = "a sentence" if result.engine else "the text"
        yield (
            f"{what} is in {language_name(code)}, which the model does not translate, and stays as it is; "
            "`source=CODE`, with the source language of the model, translates it nevertheless"
        )
    if result.split > 1:
        yield f"too long for the model, so it was translated in {result.split} pieces"
    if result.missing:
        lacking = [f"{counted(n, 'occurrence')} of {what!r}" for what, n in Counter(result.missing).items()]
        yield f"the translation lacks {', '.join(lacking)}"
    if result.numbers:
        yield f"numbers changed: {', '.join(map(str, result.numbers))}"
    if result.repetitive:
        yield "the translation repeats itself in a loop"
    if result.unfinished:
        yield "the translation was cut off at its length limit"
    if result.engine and not result.text.strip():
        yield "the model's output is empty"
