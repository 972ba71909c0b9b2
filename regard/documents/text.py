"""Plain text: lines, with the inline markup that they may have; code blocks and layout stay."""

from __future__ import annotations

from collections.abc import Sequence

from regard.documents.inline import fitted, marked_line
from regard.documents.reading import DecodedText, decoded
from regard.text.code_lines import CodeLines, split_lines
from regard.text.marked import Marked


class TextDocument:
    """A plain text."""

    notes: Sequence[str] = ()

    def __init__(self, source: DecodedText) -> None:
        self._source = source
        self._pieces: list[str | int] = []
        """What stays, and the numbers of segments."""
        self.segments: list[Marked] = []
        code = CodeLines()
        for i, line in enumerate(split_lines(source.text)):
            if i % 2 or code.is_code(line) or not any(map(str.isalpha, line)):
                self._pieces.append(line)
                continue
            body = line.strip()
            start = line.index(body)
            self._pieces += [line[:start], len(self.segments), line[start + len(body) :]]
            self.segments.append(marked_line(body))

    def written(self, translations: Sequence[Marked], language: str = "") -> bytes:  # noqa: ARG002
        """The text with translations; see `Document.written`."""
        return self._source.encoded(
            "".join(
                piece if isinstance(piece, str) else self._line(piece, translations[piece])
                for piece in self._pieces
            )
        )

    def _line(self, i: int, translation: Marked) -> str:
        return translation.written() if translation == self.segments[i] else fitted(translation).written()


def read(content: bytes) -> TextDocument:
    """Read a text file.

    Raises:
        CorpusError: its encoding is unknown.
    """
    return TextDocument(decoded(content))


def marked_text(text: str) -> Marked:
    """A text of any number of lines as one text with the inline markup of each line; code stays as it is."""
    tags, pieces, size, code = [], [], 0, CodeLines()
    for i, line in enumerate(split_lines(text)):
        found = Marked(line) if i % 2 or code.is_code(line) else marked_line(line)
        tags += [tag._replace(place=size + tag.place) for tag in found.tags]
        pieces.append(found.text)
        size += len(found.text)
    return Marked("".join(pieces), tuple(tags))
