"""Tables of texts, TSV, CSV, JSONL, Parquet and others (`formats`): chosen columns, in the chosen order.

Columns of TSV and CSV that are chosen by name are those of the header; columns chosen by number, from 1, are
those of a table without a header. Rows of the other formats are objects: `translation.zh` is the field `zh`
of the object `translation`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from regard.config.checking import counted, did_you_mean
from regard.errors import CorpusError
from regard.text.files import display_name, open_unpacked
from regard.text.files.formats import FORMATS, SUFFIXES
from regard.text.files.formats.format import Format, Reading, Records
from regard.text.files.formats.objects import names_in
from regard.text.files.lines import (
    NO_TEXT,
    WRONG_ENCODING,
    Block,
    OnInvalid,
    Tally,
    has_breaks,
    one_line,
)

TableKind = str
"""The name of a format, as in `formats.FORMATS`."""
Column = str | int
"""The name of a column, or its number in a table without a header."""
TABLE_SUFFIXES = ", ".join(SUFFIXES)
"""The ends of the names of tables, for messages."""


def table_kind(path: Path | str) -> TableKind | None:
    """The kind of a table by its name, such as `train.tsv` or `train.jsonl.gz`; None if it is not a table."""
    suffixes = map(str.lower, reversed(Path(path).suffixes))
    return next((SUFFIXES[suffix] for suffix in suffixes if suffix in SUFFIXES), None)


def table_kind_by_content(path: Path | str) -> TableKind:
    """The kind of a table by its first characters; TSV for a pipe, which can be read only once."""
    if not Path(path).is_file():
        return "tsv"
    with open_unpacked(path) as stream:
        start = stream.read(64).lstrip(b"\xef\xbb\xbf \t\r\n")
    # A list of objects is not JSONL either, but the JSONL reader has a message for it.
    return "jsonl" if re.match(rb"(\[\s*)?\{", start) else "tsv"


def table_format(path: Path | str, kind: TableKind | None = None) -> Format:
    """The format of a table: as given, or by its name, or by its first characters."""
    return FORMATS[kind or table_kind(path) or table_kind_by_content(path)]


def read_table(
    path: Path | str,
    columns: Sequence[Column],
    repairs: Tally | None = None,
    *,
    kind: TableKind | None = None,
    name: str = "",
    on_invalid: OnInvalid = "refuse",
) -> Iterator[Block]:
    """Columns of a table, in blocks; by default the file's name or first character shows its kind.

    Raises:
        CorpusError: the file cannot be read; a column does not exist; or, unless they are dropped, a line is
            not UTF-8, a row has more or fewer fields than the first one, or is not JSON. The message begins
            with file and line.
    """
    reading = Reading(name or display_name(path), Tally() if repairs is None else repairs, on_invalid)
    form = table_format(path, kind)
    if not form.has_names:
        return _field_blocks(form.read(path, reading), columns, reading)
    names = [str(column) for column in columns]
    return _object_blocks(form.read(path, reading, names), names, reading)


def read_objects(
    path: Path | str, reading: Reading, kind: TableKind | None = None
) -> Iterator[tuple[int, Mapping[str, Any], str | None]]:
    """The rows of a table as objects: their lines, their fields by name, and why they cannot be used.

    The first row of TSV and CSV is the header. Empty rows are left out.

    Raises:
        CorpusError: as `read_table` does.
    """
    form = table_format(path, kind)
    header: Sequence[str] | None = None
    for records in form.read(path, reading):
        for i, (line, row) in enumerate(zip(records.lines, records.rows, strict=True)):
            why = records.unusable.get(i)
            if why is None and not form.has_names and header is None and row:
                header = row
            elif why is not None or row:
                yield line, row if form.has_names else dict(zip(header or (), row, strict=False)), why


class Head(NamedTuple):
    """What the beginning of a table shows about its columns."""

    line: int
    """The line of the first row that is not empty; 0 if there is none."""
    names: list[str]
    """The names of the fields; for TSV and CSV the fields of the first row, which may be a header."""
    has_names: bool
    """Whether they are names for certain."""
    by_language: bool = False
    """Whether they are languages, of which `en` includes `en-US`."""


def table_head(path: Path | str, kind: TableKind | None = None) -> Head:
    """The names of a table's columns, or its first row.

    Raises:
        CorpusError: the file cannot be read.
    """
    form = table_format(path, kind)
    rows = form.first_rows(path) if form.has_names else form.first_rows(path, 1)
    if not rows:
        return Head(0, [], form.has_names)
    if not form.has_names:
        return Head(rows[0][0], list(rows[0][1]), has_names=False)
    names = list(dict.fromkeys(name for _, row in rows for name in names_in(row)))
    return Head(rows[0][0], names, has_names=True, by_language=form.by_language)


# --- lists of fields --------------------------------------------------------------------------------------


def _field_blocks(blocks: Iterator[Records], columns: Sequence[Column], reading: Reading) -> Iterator[Block]:
    places: list[int] = []
    for records in blocks:
        rows, lines, unusable = records.rows, records.lines, records.unusable
        if not places:
            places = _places(rows[0], columns, f"{reading.name}:{lines[0]}")
            if isinstance(columns[0], str):
                rows, lines, unusable = rows[1:], lines[1:], {i - 1: why for i, why in unusable.items()}
        if rows:
            texts = tuple([row[place] if row else "" for row in rows] for place in places)
            yield _block(texts, lines, unusable, reading)


def _block(
    texts: tuple[list[str], ...], lines: Sequence[int], unusable: Mapping[int, str], reading: Reading
) -> Block:
    """A block whose texts are lines each."""
    for column in texts:
        if has_breaks("".join(column)):
            for i, text in enumerate(column):
                if has_breaks(text):
                    column[i] = one_line(text, reading.repairs, reading.name, lines[i])
    return Block(reading.name, lines[0], texts, unusable, () if isinstance(lines, range) else lines)


def _places(head: Sequence[str], columns: Sequence[Column], place: str) -> list[int]:
    """The indices of the chosen columns."""
    if len(head) == 1 and "," in head[0] and list(columns) != [1]:
        problem = f"{place}: has no tab; tabs separate the fields of a TSV, not commas; .csv is read as CSV"
        raise CorpusError(problem, code="field_count_mismatch")
    places = []
    for column in columns:
        if isinstance(column, int):
            if not 1 <= column <= len(head):
                problem = f"{place}: has no column {column}; it has {counted(len(head), 'field')}"
                raise CorpusError(problem, code="unknown_column")
            places.append(column - 1)
        elif column in head:
            places.append(head.index(column))
        else:
            raise CorpusError(f"{place}: {_unknown(column, head)}", code="unknown_column")
    return places


def _unknown(column: str, known: Sequence[str]) -> str:
    """The message that a column does not exist, and which ones do."""
    near = did_you_mean(column, tuple(known))
    listed = f"he columns are {', '.join(known)}"
    return f"there is no column {column}" + (f"{near} T{listed}" if near else f"; t{listed}")


# --- objects ----------------------------------------------------------------------------------------------


def _object_blocks(blocks: Iterator[Records], columns: Sequence[str], reading: Reading) -> Iterator[Block]:
    known: dict[str, None] = {}
    missing = set(columns)
    for records in blocks:
        texts: tuple[list[str], ...] = tuple([] for _ in columns)
        unusable = dict(records.unusable)
        for i, (line, row) in enumerate(zip(records.lines, records.rows, strict=True)):
            for column, taken in zip(columns, texts, strict=True):
                text = ""
                if row and i not in unusable:
                    try:
                        text = _text(row, column)
                    except CorpusError as error:
                        unusable[i] = reading.judge(NO_TEXT, line, str(error), error.code)
                if not text.isascii() and not _is_unicode(text):
                    text, unusable[i] = "", WRONG_ENCODING
                taken.append(text)
        if missing:
            known |= dict.fromkeys(name for row in records.rows for name in row)
            missing -= {column for column, taken in zip(columns, texts, strict=True) if any(taken)}
        if records.rows:
            yield _block(texts, records.lines, unusable, reading)
    # Formats with languages give an empty text for one that a row lacks.
    if known and (unknown := next((each for each in columns if each in missing and each not in known), None)):
        raise CorpusError(f"{reading.name}: {_unknown(unknown, list(known))}", code="unknown_column")


def _text(row: Mapping[str, Any], column: str) -> str:
    """The text of a field; numbers and booleans as JSON writes them, null as an empty text.

    Raises:
        CorpusError: the row lacks the field, or it is no text.
    """
    try:
        value = _inside(row, column)
    except KeyError:
        raise CorpusError(_unknown(column, names_in(row)), code="unknown_column") from None
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, dict | list | bytes):
        kind = {dict: "an object", list: "a list"}.get(type(value), "bytes")
        raise CorpusError(f"{column} is {kind}, not a text", code="not_text")
    return json.dumps(value) if isinstance(value, bool | int | float) else str(value)


def _inside(row: Mapping[str, Any], column: str) -> Any:
    """The value of a field, or of `b` in the object `a` for `a.b`; KeyError if there is none."""
    outer, dot, inner = column.partition(".")
    if column not in row and dot and isinstance(row.get(outer), dict):
        return _inside(row[outer], inner)
    return row[column]


def _is_unicode(text: str) -> bool:
    """Whether a text can be written in UTF-8: JSON can contain half a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
