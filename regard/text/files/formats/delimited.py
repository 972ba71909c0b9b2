r"""TSV and CSV: rows of fields between tabs, commas or semicolons.

In CSV a field may stand in quotation marks: then it may contain delimiters and line breaks, and a quotation
mark in it is doubled. A TSV has no quotation: a quotation mark is a quotation mark. But spreadsheets export
TSV with the quotation of CSV. A TSV is read that way if

- every field that begins with a quotation mark is a quoted field, no other field contains one, and rows with
  quoted fields have as many fields as the first row; and
- quotation is needed somewhere (for a tab or a line break, which then lines show by their number of tabs, or
  for a doubled quotation mark), or covers a whole column, or exactly the fields with commas, as in Excel.

`"Hello" he said` and `He said "hello"` break the first rule; lines of speech, `"Hello."`, the second one.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from regard.config.checking import counted
from regard.errors import CorpusError
from regard.text.files import open_unpacked
from regard.text.files.formats.format import Format, Reading, Records
from regard.text.files.lines import (
    LONGEST_LINE,
    MEGABYTE,
    WRONG_ENCODING,
    WRONG_FIELDS,
    Block,
    read_lines,
)

_AT_ONCE = 4096
_SCANNED = 1 << 20
_SNIFFED = 200
"""Rows by which the delimiter of a CSV is chosen."""
_INSIDE = re.compile(r'((?:[^"]|"")*+)"')
"""The rest of a quoted field, up to its closing quotation mark."""
_OPENING = re.compile(rb'[\t\r\n](?:\xef\xbb\xbf)?"')
NAMES = {",": "commas", ";": "semicolons", "\t": "tabs"}


class Tsv(Format):
    """Fields between tabs."""

    kind, suffixes, has_names = "tsv", (".tsv", ".tab"), False

    def read(self, path: Path | str, reading: Reading, wanted: Sequence[str] = ()) -> Iterator[Records]:  # noqa: ARG002
        """The rows, with quotation if the file has it."""
        quotation = find_quotation(path)
        if quotation.note:
            reading.repairs.note(f"{reading.name}: {quotation.note}")
        blocks = _blocks(path, reading)
        if quotation.is_used:
            return _checked(_grouped(quoted_rows(_lines(blocks), "\t")), reading, "\t")
        return _checked(map(_split, blocks), reading, "\t")


class Csv(Format):
    """Fields between commas, semicolons or tabs, perhaps in quotation marks."""

    kind, suffixes, has_names = "csv", (".csv",), False

    def read(self, path: Path | str, reading: Reading, wanted: Sequence[str] = ()) -> Iterator[Records]:  # noqa: ARG002
        """The rows; the first ones show the delimiter."""
        delimiter = find_delimiter(path)
        if delimiter != ",":
            reading.repairs.note(f"{reading.name}: {NAMES[delimiter]} separate fields, not commas")
        rows = quoted_rows(_lines(_blocks(path, reading)), delimiter)
        return _checked(_grouped(rows), reading, delimiter)


def _blocks(path: Path | str, reading: Reading) -> Iterator[Block]:
    return read_lines(path, reading.repairs, name=reading.name, on_invalid=reading.on_invalid)


def _split(block: Block) -> Records:
    rows = [line.split("\t") for line in block.columns[0]]
    return Records(rows, range(block.first, block.first + len(block)), block.unusable)


def _checked(blocks: Iterator[Records], reading: Reading, delimiter: str) -> Iterator[Records]:
    """Rows without the blank ones before the first, all of its width; an empty line is an empty row."""
    width = first = 0
    for block in blocks:
        if not width:
            block = _without_blank_start(block, reading)
            if not block.rows:
                continue
            width, first = len(block.rows[0]), block.lines[0]
        rows, unusable = list(block.rows), dict(block.unusable)
        for i, row in enumerate(rows):
            if len(row) == width and i not in unusable:
                continue
            rows[i] = []
            if i in unusable:
                if unusable[i] not in _REASONS:  # what is wrong with the quotation
                    unusable[i] = reading.judge(WRONG_FIELDS, block.lines[i], unusable[i], "bad_quotation")
            elif row != [""]:
                problem = f"has {counted(len(row), 'field')}, but line {first} has {width}"
                problem = f"{problem}; {NAMES[delimiter]} separate fields"
                unusable[i] = reading.judge(WRONG_FIELDS, block.lines[i], problem, "field_count_mismatch")
        yield Records(rows, block.lines, unusable)


def _without_blank_start(block: Records, reading: Reading) -> Records:
    """Rows from the first one that is not blank.

    Raises:
        CorpusError: it cannot be read; it may be the header, so it cannot be dropped.
    """
    start = 0
    for row in block.rows:
        if (why := block.unusable.get(start)) is not None and why not in _REASONS:
            raise CorpusError(f"{reading.name}:{block.lines[start]}: {why}", code="bad_quotation")
        if why is None and any(map(str.strip, row)):
            break
        start += 1
    unusable = {i - start: why for i, why in block.unusable.items() if i >= start}
    return Records(block.rows[start:], block.lines[start:], unusable)


# --- quotation --------------------------------------------------------------------------------------------


class Line(NamedTuple):
    """A line of a file, or a row of one or several lines."""

    number: int
    text: str
    why: str | None
    """Why the line cannot be used."""


class Row(NamedTuple):
    """The fields of a row, and the line where it begins."""

    line: int
    fields: list[str]
    problem: str | None = None
    """Why it cannot be used."""
    quoted: frozenset[int] = frozenset()
    """The fields that are in quotation marks, counted from 0."""
    doubled: bool = False
    """Whether a quoted field contains a quotation mark, doubled."""
    broken: bool = False
    """Whether a quoted field contains a delimiter or a line break."""


class _OpenError(Exception):
    """A quotation mark is not closed at the end of the text."""


_REASONS = frozenset((MEGABYTE, WRONG_ENCODING))


def _lines(blocks: Iterator[Block]) -> Iterator[Line]:
    for block in blocks:
        for i, text in enumerate(block.columns[0]):
            yield Line(block.first + i, text, block.unusable.get(i))


def _grouped(rows: Iterator[Row]) -> Iterator[Records]:
    while some := list(islice(rows, _AT_ONCE)):
        unusable = {i: row.problem for i, row in enumerate(some) if row.problem is not None}
        yield Records([row.fields for row in some], [row.line for row in some], unusable)


def quoted_rows(lines: Iterator[Line], delimiter: str, *, strict: bool = False) -> Iterator[Row]:
    """Rows of CSV. A row that is wrong ends with its first line, so that the lines after it are not lost.

    Args:
        lines: the lines of a file.
        delimiter: what separates fields.
        strict: whether a quotation mark inside a field without quotation is wrong.
    """
    held: deque[Line] = deque()
    while line := held.popleft() if held else next(lines, None):
        if line.why is not None or '"' not in line.text:
            yield Row(line.number, line.text.split(delimiter), line.why)
            continue
        text, more = line.text, list[Line]()
        while True:
            try:
                yield _row(line.number, text, delimiter, strict=strict)
                break
            except _OpenError:
                size = len(more)
                text = _continued(text, held, lines, more)
                problem = "a quotation mark opens a field, and is never closed"
                if len(more) > size and '"' in more[-1].text and len(text) < LONGEST_LINE:
                    continue
            except ValueError as error:
                problem = str(error)
            held.extendleft(reversed(more))
            yield Row(line.number, [], problem)
            break


def _continued(text: str, held: deque[Line], lines: Iterator[Line], more: list[Line]) -> str:
    """The text with more lines, up to one with a quotation mark, which may close a field."""
    texts = [text]
    size = len(text)
    while size < LONGEST_LINE and (line := held.popleft() if held else next(lines, None)):
        more.append(line)
        texts.append(line.text)
        size += len(line.text) + 1
        if '"' in line.text:
            break
    return "\n".join(texts)


def _row(number: int, text: str, delimiter: str, *, strict: bool) -> Row:
    """A row with quotation.

    Raises:
        ValueError: the quotation is wrong.
        _OpenError: a quoted field goes on after the end.
    """
    fields, quoted, at = list[str](), set[int](), 0
    doubled = broken = False
    while True:
        if text.startswith('"', at):
            inside = _INSIDE.match(text, at + 1)
            if inside is None:
                raise _OpenError
            field, at = inside[1], inside.end()
            if at < len(text) and text[at] != delimiter:
                raise ValueError(f"a quoted field is followed by {text[at : at + 10]!r}")
            doubled = doubled or '"' in field
            broken = broken or delimiter in field or "\n" in field
            quoted.add(len(fields))
            fields.append(field.replace('""', '"'))
        else:
            end = text.find(delimiter, at)
            field = text[at:] if end < 0 else text[at:end]
            if strict and '"' in field:
                raise ValueError("a quotation mark is inside a field")
            fields.append(field)
            at += len(field)
        if at >= len(text):
            return Row(number, fields, None, frozenset(quoted), doubled, broken)
        at += 1


class Quotation(NamedTuple):
    """Whether a TSV has quoted fields, and a note for the report."""

    is_used: bool
    note: str = ""


def find_quotation(path: Path | str) -> Quotation:
    """Whether a TSV is quoted as CSV is; see above. A pipe, which can be read only once, is not."""
    if not Path(path).is_file() or not _has_opening(path):
        return Quotation(is_used=False)
    first = width = n_rows = 0
    doubled = broken = False
    widths: set[int] = set()
    quoted: Counter[int] = Counter()
    bare: Counter[int] = Counter()
    by_commas = True
    lines = _watched(_lines(read_lines(path, on_invalid="drop")), widths)
    for row in quoted_rows(lines, "\t", strict=True):
        if not row.quoted and (row.problem in _REASONS or row.fields == [""]):
            continue
        width = width or len(row.fields)
        if row.problem or (row.quoted and len(row.fields) != width):
            place = f"such as line {row.line}, do not allow another reading"
            return Quotation(is_used=False, note=f"quotation marks are part of the text: some, {place}")
        n_rows += 1
        first = first or (row.line if row.quoted else 0)
        doubled, broken = doubled or row.doubled, broken or row.broken
        quoted.update(row.quoted)
        if n_rows > 1:  # a header need not be quoted as its column is
            bare.update(i for i, field in enumerate(row.fields) if field and i not in row.quoted)
        special = {i for i, field in enumerate(row.fields) if any(sign in field for sign in ',"\t\n')}
        by_commas = by_commas and special == row.quoted
    whole = any(not bare[i] and (count > 1 or n_rows == 1) for i, count in quoted.items())
    # If every line is a row by its tabs, then no field contains one, nor a line break.
    if (doubled or broken or whole or by_commas) and not (broken and len(widths) == 1):
        how = f"fields in quotation marks, the first in line {first}, are read as CSV does"
        return Quotation(is_used=True, note=how)
    return Quotation(is_used=False, note="quotation marks are part of the text: nothing needs quotation")


def _watched(lines: Iterator[Line], widths: set[int]) -> Iterator[Line]:
    """The lines, with the number of tabs of each that is not empty."""
    for line in lines:
        if line.text:
            widths.add(line.text.count("\t"))
        yield line


def _has_opening(path: Path | str) -> bool:
    """Whether a field of a TSV begins with a quotation mark."""
    last = b"\n"
    with open_unpacked(path) as stream:
        while data := stream.read(_SCANNED):
            if _OPENING.search(last + data):
                return True
            last = data[-4:]  # a byte order mark and what is before it
    return False


def find_delimiter(path: Path | str) -> str:
    """The delimiter of a CSV: by it, its first rows have the same number of fields, more than one."""
    if not Path(path).is_file():
        return ","
    best, most = ",", (0.0, 1)
    for delimiter in NAMES:
        lines = _lines(read_lines(path, on_invalid="drop"))
        rows = [row for row in islice(quoted_rows(lines, delimiter), _SNIFFED) if any(row.fields)]
        if not rows:
            continue
        width = len(rows[0].fields)
        share = sum(len(row.fields) == width for row in rows) / len(rows)
        if width > 1 and (share, width) > most:
            best, most = delimiter, (share, width)
    return best
