r"""Lines of text files: `read_lines` repairs and counts problems, `numbered_lines` keeps lines as they are.

A line ends at "\n" only: Python's `splitlines` would also split at U+2028, U+0085 and six more, so that two
parallel files no longer match. Other characters that end or break lines are repaired and counted:

    byte order mark     U+FEFF, anywhere                                      removed
    carriage return     at the end of a line (CRLF)                           removed
    NUL                                                                       removed
    line separator      U+2028, U+2029, U+0085, VT, FF, FS, GS, RS, lone CR   replaced by a space

Files are read a megabyte at a time. Longer lines are skipped, and never held in memory.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple

import numpy as np

from regard.errors import CorpusError
from regard.text.files import display_name, open_unpacked

MOST_PLACES = 3
"""Places that a tally keeps of each kind."""


@dataclass(slots=True)
class Tally:
    """Counts of what happened to lines, with the first places of each kind: `train.zh:12`."""

    counts: dict[str, int] = field(default_factory=dict)
    examples: dict[str, list[str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    """How files were read where that is not obvious, such as a TSV with quoted fields."""

    def note(self, text: str) -> None:
        """Keep a note, once."""
        if text not in self.notes:
            self.notes.append(text)

    def add(self, what: str, name: str, line: int, count: int = 1) -> None:
        """Count `what`, `count` times; the first of them is at this line of the file `name`."""
        self.counts[what] = self.counts.get(what, 0) + count
        examples = self.examples.setdefault(what, [])
        if len(examples) < MOST_PLACES and f"{name}:{line}" not in examples:
            examples.append(f"{name}:{line}")

    def add_all(
        self, what: str, lines: Sequence[int] | np.ndarray, place: Callable[[int], tuple[str, int]]
    ) -> None:
        """Count `what` once per line; `place` returns file and line number, for the first few."""
        missing = max(0, MOST_PLACES - len(self.examples.get(what, ())))
        for line in lines[:missing]:
            self.add(what, *place(int(line)))
        if len(lines) > missing:
            self.counts[what] += len(lines) - missing

    def add_tally(self, other: Tally) -> None:
        """Count everything that another tally counted."""
        for what, count in other.counts.items():
            self.counts[what] = self.counts.get(what, 0) + count
            own = self.examples.setdefault(what, [])
            new = [place for place in other.examples[what] if place not in own]
            own += new[: MOST_PLACES - len(own)]
        for text in other.notes:
            self.note(text)

    @property
    def total(self) -> int:
        """The sum of all counts."""
        return sum(self.counts.values())

    def as_dict(self) -> dict[str, Any]:
        """The counts for JSON, the most frequent first."""
        often = sorted(self.counts.items(), key=lambda item: -item[1])
        return {what: {"lines": count, "first": list(self.examples[what])} for what, count in often}


LONGEST_LINE = 1_000_000
"""Bytes from which on a line is skipped, and counts as one unusable line."""

MEGABYTE = "line of a megabyte"
WRONG_ENCODING = "wrong encoding"
WRONG_FIELDS = "wrong number of fields"
NOT_AN_OBJECT = "not a JSON object"
NO_TEXT = "no text in a column"
NOT_FINAL = "translation not final"
BYTE_ORDER_MARK, CARRIAGE_RETURN = "byte order mark", "carriage return"
NUL, LINE_SEPARATOR = "NUL", "line separator"
OLD_MAC = "old Mac line end"

OnInvalid = Literal["refuse", "drop"]
"""What to do with a line that cannot be used: raise an error, or drop it and count it."""

_CHUNK = 1 << 20
_BREAKS = "\n\r\u2028\u2029\x85\x0b\x0c\x1c\x1d\x1e"
_SIGNS = "\r\0\ufeff" + _BREAKS[2:]
_REPAIRS = (
    (BYTE_ORDER_MARK, re.compile("\ufeff+"), ""),
    (NUL, re.compile("\0+"), ""),
    (CARRIAGE_RETURN, re.compile(r"\r+\Z"), ""),
    (LINE_SEPARATOR, re.compile(f"[{_BREAKS}]+"), " "),
)
_OF_EUROPE = re.compile("[\\0-\x7fÀ-þŒœŠšŽžŸ‘’“”„–—…«»€°§\xa0]+")
_OF_EAST_ASIA = re.compile("[\\0-\x7f\u2e80-\uffef]+")


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive lines of a file, or of parallel files: one column per file."""

    name: str
    """The name of the file, or of the first one, in messages."""
    first: int
    """The number of its first line, counted from 1."""
    columns: tuple[list[str], ...]
    unusable: Mapping[int, str] = field(default_factory=dict)
    """Lines that cannot be used, counted from 0 in this block, and the reasons; their texts mean nothing."""
    lines: Sequence[int] = ()
    """The line number of each row; empty where rows are consecutive lines."""
    derived: bool = False
    """Whether rows with the same line number were derived from that line, and belong together."""

    def __len__(self) -> int:
        return len(self.columns[0])

    def line(self, i: int) -> int:
        """The line number of a row, which is counted from 0 in this block."""
        return self.lines[i] if self.lines else self.first + i

    def split(self, count: int) -> tuple[Block, Block]:
        """The first `count` lines, and the rest; only of blocks whose rows are consecutive lines."""
        head = {i: why for i, why in self.unusable.items() if i < count}
        tail = {i - count: why for i, why in self.unusable.items() if i >= count}
        return (
            Block(self.name, self.first, tuple(column[:count] for column in self.columns), head),
            Block(self.name, self.first + count, tuple(column[count:] for column in self.columns), tail),
        )


def read_lines(
    path: Path | str, repairs: Tally | None = None, *, name: str = "", on_invalid: OnInvalid = "refuse"
) -> Iterator[Block]:
    """The lines of a file in blocks of one column; `-` is standard input.

    Args:
        path: UTF-8 text, plain or compressed with gzip, xz or zstd.
        repairs: counts the repairs.
        name: the name of the file in messages; by default its path.
        on_invalid: what to do with a line that is not UTF-8.

    Raises:
        CorpusError: the file cannot be read, or a byte is not UTF-8.
    """
    name = name or display_name(path)
    repairs = Tally() if repairs is None else repairs
    first = 1
    with open_unpacked(path) as stream:
        for chunk in _whole_lines(_chunks(stream, name, repairs)):
            if chunk is None:
                block = Block(name, first, ([""],), {0: MEGABYTE})
            else:
                if first == 1:
                    refuse_utf_16(chunk, name)
                block = _block(chunk, first, name, repairs, on_invalid)
            yield block
            first += len(block)


def one_line(text: str, repairs: Tally, name: str, line: int) -> str:
    """A field as one line: what breaks lines is removed or replaced, and counted."""
    for what, pattern, instead in _REPAIRS:
        text, count = pattern.subn(instead, text)
        if count:
            repairs.add(what, name, line)
    return text


def has_breaks(text: str) -> bool:
    """Whether `one_line` would change a text."""
    return "\n" in text or any(sign in text for sign in _SIGNS)


def _chunks(stream: BinaryIO, name: str, repairs: Tally) -> Iterator[bytes]:
    """The bytes of a file, a chunk at a time; where only CR ends lines, as LF.

    The first chunk decides: no other text has a megabyte without LF, but with CR inside.
    """
    data = stream.read(_CHUNK)
    if b"\n" in data or b"\r" not in data.rstrip(b"\r"):
        while data:
            yield data
            data = stream.read(_CHUNK)
        return
    repairs.note(f"{name}: lines end with CR only, as on old Macs; each CR ends a line")
    while data:
        if data.endswith(b"\r"):  # a CRLF may be divided between chunks
            data += stream.read(1)
        data = data.replace(b"\r\n", b"\n")
        repairs.add(OLD_MAC, name, 1, data.count(b"\r"))
        yield data.replace(b"\r", b"\n")
        data = stream.read(_CHUNK)


def _whole_lines(chunks: Iterable[bytes]) -> Iterator[bytes | None]:
    """Complete lines, many at a time; None for a line that is too long, which is skipped."""
    rest, skipping = b"", False
    for data in chunks:
        if skipping:
            _, end, data = data.partition(b"\n")
            skipping = not end
            if not data:
                continue
        cut = data.rfind(b"\n") + 1
        if cut:
            yield rest + data[:cut]
            rest = data[cut:]
        else:
            rest += data
        if len(rest) >= LONGEST_LINE:
            yield None
            rest, skipping = b"", True
    if rest:
        yield rest


def _block(chunk: bytes, first: int, name: str, repairs: Tally, on_invalid: OnInvalid) -> Block:
    unusable: dict[int, str] = {}
    try:
        text = chunk.decode()
    except UnicodeDecodeError as error:
        if on_invalid == "refuse":
            raise CorpusError(not_utf_8(chunk, error.start, first, name), code="not_utf_8") from None
        text = _decoded_line_by_line(chunk, unusable)
    if "\r\n" in text:
        line = first + text.count("\n", 0, text.index("\r\n"))
        repairs.add(CARRIAGE_RETURN, name, line, text.count("\r\n"))
        text = text.replace("\r\n", "\n")
    lines = text.removesuffix("\n").split("\n")
    if 4 * max(map(len, lines)) >= LONGEST_LINE:
        for i, line_text in enumerate(lines):
            if 4 * len(line_text) >= LONGEST_LINE <= len(line_text.encode()):
                lines[i], unusable[i] = "", MEGABYTE
    if any(sign in text for sign in _SIGNS):
        for i, line_text in enumerate(lines):
            if has_breaks(line_text):
                lines[i] = one_line(line_text, repairs, name, first + i)
    return Block(name, first, (lines,), unusable)


def _decoded_line_by_line(chunk: bytes, unusable: dict[int, str]) -> str:
    lines = []
    for i, line in enumerate(chunk.split(b"\n")):
        try:
            lines.append(line.decode())
        except UnicodeDecodeError:
            lines.append("")
            unusable[i] = WRONG_ENCODING
    return "\n".join(lines)


def not_utf_8(chunk: bytes, at: int, first: int, name: str) -> str:
    """The message about a byte that is not UTF-8, with a guess of the encoding."""
    start = chunk.rfind(b"\n", 0, at) + 1
    line = chunk[start:].partition(b"\n")[0]
    number = first + chunk.count(b"\n", 0, at)
    guess = _likely_encoding(line)
    how = f"it may be {guess}; iconv -f {guess} -t UTF-8" if guess else "iconv -f ENCODING -t UTF-8"
    return f"{name}:{number}: byte {at - start + 1} (0x{chunk[at]:02x}) is not UTF-8; {how} converts the file"


def _likely_encoding(line: bytes) -> str:
    """The likely encoding of a line that is not UTF-8; empty if unknown."""
    runs = re.findall(rb"[\x80-\xff]+", line)
    # An accented letter is one byte among plain letters; a Chinese character is two bytes, and rarely alone.
    # Where both are equally many, as in "schöne Grüße", they are accents: two of them may be adjacent.
    lone = 2 * sum(len(run) == 1 for run in runs) >= len(runs)
    encoding, likely = ("windows-1252", _OF_EUROPE) if lone else ("gb18030", _OF_EAST_ASIA)
    try:
        text = line.decode(encoding)
    except UnicodeDecodeError:
        return ""
    return encoding if likely.fullmatch(text) else ""


def refuse_utf_16(start: bytes, name: str) -> None:
    """Raise CorpusError if a file begins like UTF-16."""
    marked = start.startswith((b"\xff\xfe", b"\xfe\xff"))
    # Half of the bytes of Latin text are NUL in UTF-16; a few stray ones are repaired elsewhere.
    if marked or (len(start) >= 32 and 3 * start.count(0) > len(start)):
        problem = "is not UTF-8; it looks like UTF-16: iconv -f UTF-16 -t UTF-8 converts it"
        raise CorpusError(f"{name}:1: {problem}", code="utf_16")


class InputLine(NamedTuple):
    """A line of input as it is, or the reason why it cannot be read."""

    number: int
    """Counted from 1; 0 for a text that is not a line of a file."""
    text: str
    problem: str | None = None
    """Why it cannot be read; the text is then empty."""
    name: str = ""
    """The name of its file in messages."""
    is_code: bool = False
    """Whether it belongs to a block of code, and stays as it is."""

    @property
    def where(self) -> str:
        """The beginning of a message about it."""
        return f"{self.name}:{self.number}: " if self.number else ""


def numbered_lines(chunks: Iterable[bytes], name: str) -> Iterator[list[InputLine]]:
    """The lines of a file that arrives in chunks: for every chunk, the lines that end in it.

    Nothing is repaired, and a line that cannot be read keeps its place.

    Raises:
        CorpusError: the file is UTF-16.
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


def _line(raw: bytes, number: int, name: str) -> InputLine:
    if len(raw) >= LONGEST_LINE:
        problem = f"the line has a megabyte or more ({LONGEST_LINE:,} bytes); break it into shorter lines"
        return InputLine(number, "", f"{name}:{number}: {problem}", name)
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        return InputLine(number, "", not_utf_8(raw, error.start, number, name), name)
    return InputLine(number, text.removeprefix("\ufeff") if number == 1 else text, name=name)
