"""JSONL: an object on each line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from regard.errors import RequestError
from regard.text.files.formats.format import Format, Reading, Records
from regard.text.files.lines import NOT_AN_OBJECT, read_lines


class Jsonl(Format):
    """An object on each line."""

    kind, suffixes = "jsonl", (".jsonl", ".ndjson")

    def read(self, path: Path | str, reading: Reading, wanted: Sequence[str] = ()) -> Iterator[Records]:  # noqa: ARG002
        """The objects; a blank line is an empty row."""
        for block in read_lines(path, reading.repairs, name=reading.name, on_invalid=reading.on_invalid):
            rows, unusable = [], dict(block.unusable)
            for i, line in enumerate(block.columns[0]):
                row: dict[str, Any] = {}
                if i not in unusable and line.strip():
                    try:
                        row = json_object(line)
                    except RequestError as error:
                        unusable[i] = reading.judge(NOT_AN_OBJECT, block.first + i, str(error), error.code)
                rows.append(row)
            yield Records(rows, range(block.first, block.first + len(block)), unusable)


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


def names_in(row: Mapping[str, Any]) -> list[str]:
    """The names of an object's fields; for a field that is an object, `name.inner` for its fields."""
    inner = ((name, list(value) if isinstance(value, dict) else []) for name, value in row.items())
    return [full for name, names in inner for full in [f"{name}.{one}" for one in names] or [name]]
