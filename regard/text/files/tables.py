"""Tables of text: TSV with or without a head, and JSONL; some of their columns, in the order asked for.

A TSV has one row a line, fields between tabs and no quotes: a quotation mark is a quotation mark. Columns
asked for by name stand in its first line; columns asked for by number, from 1, are those of a table without a
head. In JSONL, `translation.zh` is the `zh` of the object `translation`.
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
"""A column's name, or its number in a table without a head."""

_SUFFIXES: dict[str, TableKind] = {".tsv": "tsv", ".tab": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl"}


def table_kind(path: Path | str) -> TableKind | None:
    """What kind of table a file is, as its name tells: `train.tsv`, `train.jsonl.gz`."""
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
    """Some columns of a table, in blocks; without `kind`, the file's name or its first sign tells it.

    Raises:
        CorpusError: the file cannot be read or is not UTF-8; a column does not exist; a row has more or fewer
            fields than the first one, or is not JSON. The message opens with file and line.
    """
    name = name or display_name(path)
    repairs = Tally() if repairs is None else repairs
    kind = kind or table_kind(path) or table_kind_by_content(path)
    blocks = read_lines(path, repairs, name=name, on_invalid=on_invalid)
    if kind == "jsonl":
        return (_json_block(block, [str(column) for column in columns], repairs) for block in blocks)
    return _tsv_blocks(blocks, columns, name)


def table_kind_by_content(path: Path | str) -> TableKind:
    """What kind of table a file is, as it begins; of what can be read only once, TSV."""
    if not Path(path).is_file():
        return "tsv"  # whoever reads it names its kind
    with open_unpacked(path) as stream:
        start = stream.read(64).lstrip(b"\xef\xbb\xbf \t\r\n")
    # A list of objects is no JSONL either, but what reads that can say so.
    return "jsonl" if re.match(rb"(\[\s*)?\{", start) else "tsv"


# --- TSV --------------------------------------------------------------------------------------------------


def _tsv_blocks(blocks: Iterator[Block], columns: Sequence[Column], name: str) -> Iterator[Block]:
    places: list[int] = []
    width = first = 0
    for block in blocks:
        if not places:  # the head, or the first row, is the first line that is not blank
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
                if i in block.spoilt or row == [""]:  # an empty line is an empty row
                    rows[i] = [""] * width
                    continue
                told = f"has {counted(len(row), 'field')}, and line {first} has {width}"
                raise CorpusError(f"{name}:{block.first + i}: {told}; fields are parted by tabs")
        if rows:
            taken = tuple([row[place] for row in rows] for place in places)
            yield Block(name, block.first, taken, block.spoilt)


def _places(head: list[str], columns: Sequence[Column], place: str) -> list[int]:
    """Where the columns asked for stand."""
    if len(head) == 1 and "," in head[0] and list(columns) != [1]:
        raise CorpusError(f"{place}: has no tab; fields are parted by tabs, and not by commas")
    places = []
    for column in columns:
        if isinstance(column, int):
            if not 1 <= column <= len(head):
                raise CorpusError(f"{place}: has no column {column}; it has {counted(len(head), 'field')}")
            places.append(column - 1)
        elif column in head:
            places.append(head.index(column))
        else:
            raise CorpusError(f"{place}: {_unknown(column, head)}")
    return places


def _unknown(column: str, known: list[str]) -> str:
    """That a column does not exist, and which ones do."""
    near = did_you_mean(column, known)
    listed = f"he columns are {', '.join(known)}"
    return f"there is no column {column}" + (f"{near} T{listed}" if near else f"; t{listed}")


# --- JSONL ------------------------------------------------------------------------------------------------


def _json_block(block: Block, columns: Sequence[str], repairs: Tally) -> Block:
    taken: tuple[list[str], ...] = tuple([] for _ in columns)
    spoilt = dict(block.spoilt)
    for i, line in enumerate(block.columns[0]):
        place = f"{block.name}:{block.first + i}"
        row = dict.fromkeys(columns, "") if i in spoilt or not line.strip() else _json_row(line, place)
        for column, texts in zip(columns, taken, strict=True):
            text = _json_text(row, column, place)
            if has_breaks(text):
                text = one_line(text, repairs, block.name, block.first + i)
            if not text.isascii() and not _is_unicode(text):
                text, spoilt[i] = "", WRONG_ENCODING
            texts.append(text)
    return Block(block.name, block.first, taken, spoilt)


def _json_row(line: str, place: str) -> dict[str, Any]:
    try:
        return json_object(line)
    except RequestError as error:
        raise CorpusError(f"{place}: {error}") from None


def json_object(line: str) -> dict[str, Any]:
    """The object that a line of JSONL is.

    Raises:
        RequestError: it is none.
    """
    listed = line.lstrip().startswith("[")
    try:
        row = json.loads(line)
    except json.JSONDecodeError as error:
        if not listed:
            told = f"is not JSON: {error.msg} at character {error.pos + 1}"
            raise RequestError(f"{told}; each line is an object") from None
        row = None  # the first line of a list that goes on
    except RecursionError:
        raise RequestError("is nested too deeply") from None
    except ValueError:  # JSON it is, with a number that Python does not read
        raise RequestError("has a number of thousands of digits") from None
    if not isinstance(row, dict):
        hint = "; jq -c '.[]' makes lines of a list" if listed else ""
        raise RequestError(f'is not an object, {{"name": "text", …}}{hint}')
    return row


def _json_text(row: dict[str, Any], column: str, place: str) -> str:
    """The text under a name; a number or a truth value as JSON writes it, null as no text at all."""
    try:
        value = _inside(row, column)
    except KeyError:
        raise CorpusError(f"{place}: {_unknown(column, names_in(row))}") from None
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, dict | list):
        kind = "an object" if isinstance(value, dict) else "a list"
        raise CorpusError(f"{place}: {column} is {kind}, and a text is wanted")
    return json.dumps(value)


def _inside(row: dict[str, Any], column: str) -> Any:
    """What stands under a name, or under `a.b` in the object `a`; KeyError if nothing does."""
    outer, dot, inner = column.partition(".")
    if column not in row and dot and isinstance(row.get(outer), dict):
        return _inside(row[outer], inner)
    return row[column]


def names_in(row: Mapping[str, Any]) -> list[str]:
    """The names in an object and, where one of them is an object, those in that."""
    inner = ((name, list(value) if isinstance(value, dict) else []) for name, value in row.items())
    return [each for name, names in inner for each in [f"{name}.{one}" for one in names] or [name]]


def _is_unicode(text: str) -> bool:
    """Whether a text can be written in UTF-8: JSON can spell half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
