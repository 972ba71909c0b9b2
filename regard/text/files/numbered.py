"""Lines as they stand, with their numbers: nothing is repaired, and what cannot be read keeps its place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from regard.text.files.lines import LONGEST_LINE, not_utf_8, refuse_utf_16


class Line(NamedTuple):
    """One line."""

    number: int
    """Counted from 1; 0 for a text that is no line of a file."""
    text: str
    problem: str | None = None
    """Why it cannot be read; then it has no text."""
    name: str = ""
    """What messages call its file."""

    @property
    def where(self) -> str:
        """How a message about it begins."""
        return f"{self.name}:{self.number}: " if self.number else ""


def numbered(chunks: Iterable[bytes], name: str) -> Iterator[list[Line]]:
    """The lines of a file that comes in chunks: of each chunk, those that it ends.

    Raises:
        CorpusError: the file is in UTF-16.
    """
    number, rest, skipped = 1, b"", False
    for data in chunks:
        if number == 1 and not rest:
            refuse_utf_16(data, name)
        *whole, rest = (rest + data).split(b"\n")
        if skipped and whole:
            whole[0], skipped = b"x" * LONGEST_LINE, False
        if len(rest) >= LONGEST_LINE or skipped:
            rest, skipped = b"", True
        if whole:
            yield [_line(raw, number + i, name) for i, raw in enumerate(whole)]
            number += len(whole)
    if rest or skipped:
        yield [_line(b"x" * LONGEST_LINE if skipped else rest, number, name)]


def _line(raw: bytes, number: int, name: str) -> Line:
    if len(raw) >= LONGEST_LINE:
        longest = f"a line of a megabyte or more ({LONGEST_LINE:,} bytes) is not read: break it into lines"
        return Line(number, "", f"{name}:{number}: {longest}", name)
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        return Line(number, "", not_utf_8(raw, error.start, number, name), name)
    return Line(number, text.removeprefix("\ufeff") if number == 1 else text, name=name)
