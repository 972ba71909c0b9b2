"""Tables of text, TSV with or without a header, and JSONL: chosen columns, in the chosen order.

A TSV has one row per line, with fields between tabs and no quoting: a quotation mark is a quotation mark.
Columns chosen by name are those of the header; columns chosen by number, from 1, are those of a table without
a header. In JSONL, `translation.zh` is the field `zh` of the object `translation`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from regard.config.checking import counted, did_you_mean
from regard.errors import CorpusError, RequestError
from regard.text.files import display_name, open_unpacked
from regard.text.files.lines import WRONG_ENCODING, Block, OnInvalid, Tally, has_breaks, one_line, read_lines

TableKind = Literal["tsv", "jsonl"]
Column = str | int
"""The name of a column, or its number in a table without a header."""

_SUFFIXES: dict[str, TableKind] = {".tsv": "tsv", ".tab": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl"}


def table_kind(path: Path | str) -> TableKind | None:
    """The kind of a table by its name, such as `train.tsv` or `train.jsonl.gz`; None if it is not a table."""
    return next((_SUFFIXES[suffix] for suffix in reversed(Path(path).suffixes) if suffix in _SUFFIXES), None)


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
        CorpusError: the file cannot be read or is not UTF-8; a column does not exist; a row has more or fewer
            fields than the first one, or is not JSON. The message begins with file and line.
    """
    name = name or display_name(path)
    repairs = Tally() if repairs is None else repairs
    kind = kind or table_kind(path) or table_kind_by_content(path)
    blocks = read_lines(path, repairs, name=name, on_invalid=on_invalid)
    if kind == "jsonl":
        return (_json_block(block, [str(column) for column in columns], repairs) for block in blocks)
    return _tsv_blocks(blocks, columns, name)


def table_kind_by_content(path: Path | str) -> TableKind:
    """The kind of a table by its first characters; TSV for a pipe, which can be read only once."""
    if not Path(path).is_file():
        return "tsv"
    with open_unpacked(path) as stream:
        start = stream.read(64).lstrip(b"\xef\xbb\xbf \t\r\n")
    # A list of objects is not JSONL either, but the JSONL reader has a message for it.
    return "jsonl" if re.match(rb"(\[\s*)?\{", start) else "tsv"


# --- TSV --------------------------------------------------------------------------------------------------


def _tsv_blocks(blocks: Iterator[Block], columns: Sequence[Column], name: str) -> Iterator[Block]:
    places: list[int] = []
    width = first = 0
    for block in blocks:
        if not places:  # the header, or the first row, is the first line that is not blank
            blank = next((i for i, line in enumerate(block.columns[0]) if line.strip()), len(block))
            _, block = block.split(blank)
            if not len(block):
                continue
            head, first = block.columns[0][0].split("\t"), block.first
            width, places = len(head), _places(head, columns, f"{name}:{first}")
            if isinstance(columns[0], str):
                _, block = block.split(1)
        rows = [line.split("\t") for line in block.columns[0]]
        for i, row in enumerate(rows):
            if len(row) != width:
                if i in block.unusable or row == [""]:  # an empty line is an empty row
                    rows[i] = [""] * width
                    continue
                problem = f"has {counted(len(row), 'field')}, but line {first} has {width}"
                problem = f"{name}:{block.first + i}: {problem}; tabs separate fields"
                raise CorpusError(problem, code="field_count_mismatch")
        if rows:
            taken = tuple([row[place] for row in rows] for place in places)
            yield Block(name, block.first, taken, block.unusable)


def _places(head: list[str], columns: Sequence[Column], place: str) -> list[int]:
    """The indices of the chosen columns."""
    if len(head) == 1 and "," in head[0] and list(columns) != [1]:
        problem = f"{place}: has no tab; tabs separate fields, not commas"
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


def _unknown(column: str, known: list[str]) -> str:
    """The message that a column does not exist, and which ones do."""
    near = did_you_mean(column, known)
    listed = f"he columns are {', '.join(known)}"
    return f"there is no column {column}" + (f"{near} T{listed}" if near else f"; t{listed}")


# --- JSONL ------------------------------------------------------------------------------------------------


def _json_block(block: Block, columns: Sequence[str], repairs: Tally) -> Block:
    taken: tuple[list[str], ...] = tuple([] for _ in columns)
    unusable = dict(block.unusable)
    for i, line in enumerate(block.columns[0]):
        place = f"{block.name}:{block.first + i}"
        row = dict.fromkeys(columns, "") if i in unusable or not line.strip() else _json_row(line, place)
        for column, texts in zip(columns, taken, strict=True):
            text = _json_text(row, column, place)
            if has_breaks(text):
                text = one_line(text, repairs, block.name, block.first + i)
            if not text.isascii() and not _is_unicode(text):
                text, unusable[i] = "", WRONG_ENCODING
            texts.append(text)
    return Block(block.name, block.first, taken, unusable)


def _json_row(line: str, place: str) -> dict[str, Any]:
    try:
        return json_object(line)
    except RequestError as error:
        raise CorpusError(f"{place}: {error}", code=error.code) from None


def json_object(line: str) -> dict[str, Any]:
    """The object in a line of JSONL.

    Raises:
        RequestError: the line is not a JSON object.
    """
    listed = line.lstrip().startswith("[")
    try:
        row = json.loads(line)
    except json.JSONDecodeError as error:
        if not listed:
            problem = f"is not JSON: {error.msg} at character {error.pos + 1}; each line is an object"
            raise RequestError(problem, code="not_json") from None
        row = None  # the first line of a list over several lines
    except RecursionError:
        raise RequestError("is nested too deeply", code="not_json") from None
    except ValueError:  # valid JSON, but Python limits the digits of a number
        raise RequestError("has a number of thousands of digits", code="not_json") from None
    if not isinstance(row, dict):
        hint = "; jq -c '.[]' turns a list into lines" if listed else ""
        raise RequestError(f'is not an object, {{"name": "text", …}}{hint}', code="not_json")
    return row


def _json_text(row: dict[str, Any], column: str, place: str) -> str:
    """The text of a field; numbers and booleans as JSON writes them, null as an empty text."""
    try:
        value = _inside(row, column)
    except KeyError:
        raise CorpusError(f"{place}: {_unknown(column, names_in(row))}", code="unknown_column") from None
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, dict | list):
        kind = "an object" if isinstance(value, dict) else "a list"
        raise CorpusError(f"{place}: {column} is {kind}, not a text", code="not_text")
    return json.dumps(value)


def _inside(row: dict[str, Any], column: str) -> Any:
    """The value of a field, or of `b` in the object `a` for `a.b`; KeyError if there is none."""
    outer, dot, inner = column.partition(".")
    if column not in row and dot and isinstance(row.get(outer), dict):
        return _inside(row[outer], inner)
    return row[column]


def names_in(row: Mapping[str, Any]) -> list[str]:
    """The names of an object's fields; for a field that is an object, `name.inner` for its fields."""
    inner = ((name, list(value) if isinstance(value, dict) else []) for name, value in row.items())
    return [full for name, names in inner for full in [f"{name}.{one}" for one in names] or [name]]


def _is_unicode(text: str) -> bool:
    """Whether a text can be written in UTF-8: JSON can contain half a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
