"""Rows with named fields as pairs of texts: what is read and what is written, by templates like `{question}`.

A field is a text, or a list of texts: of several answers the first is learned, and each is right. `turns` is
a list of what was said in turn: each of them but the first is learned from those before it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from regard.config.checking import did_you_mean
from regard.config.task import FIELD
from regard.errors import CorpusError, RequestError
from regard.text.files import display_name
from regard.text.files.lines import read_lines
from regard.text.files.tables import json_object, names_in

TURNS, BETWEEN_TURNS = "turns", " ¶ "
"""The field of a conversation, and what stands between its turns."""
_HALF, LOST = re.compile("[\ud800-\udfff]"), "\ufffd"
"""Half of a pair of surrogates, which JSON can spell and no file can hold; and the sign of a lost letter, by
which cleaning drops and counts a text."""
LINE = "line"
"""Where the number of the line that a pair was made from is written down."""


class MissingFieldError(RequestError):
    """A row has not the field that a template names."""


def template_fields(template: str) -> list[str]:
    """The names of the fields that a template has."""
    return FIELD.findall(template)


def fill_template(template: str, row: Mapping[str, Any]) -> str:
    """A template with the fields of a row in their places.

    Raises:
        RequestError: a field is missing, or holds no text.
    """
    return FIELD.sub(lambda field: _text(row, field[1]), template)


def model_input(template: str, row: Mapping[str, Any]) -> str:
    """What a model reads of a row, as it did in training.

    Raises:
        RequestError: a field is missing, or holds no text.
    """
    if isinstance(turns := row.get(TURNS), list):
        row = {**row, TURNS: BETWEEN_TURNS.join(single_line(str(turn)) for turn in turns)}
    return single_line(fill_template(template, row))


def model_input_of_text(template: str, text: str) -> str:
    """What a model reads of what somebody wrote: an object of JSON has the fields, all else stands for them.

    It goes on one line, as in training; of a conversation, each line is a turn.

    Raises:
        RequestError: the object lacks a field, or holds no text in it.
    """
    fields = template_fields(template)
    if (row := _object(text)) and any(_value(row, field) is not None for field in fields):
        return model_input(template, row)
    return (
        BETWEEN_TURNS.join(filter(None, map(single_line, text.splitlines())))
        if TURNS in fields
        else single_line(text)
    )


def read_pairs(path: Path | str, templates: tuple[str, str]) -> Iterator[tuple[str, str]]:
    """What is read and what is to be learned, for each row of a JSONL file; see `read_examples`."""
    return ((read, right[0]) for read, right in read_examples(path, templates))


def read_examples(path: Path | str, templates: tuple[str, str]) -> Iterator[tuple[str, list[str]]]:
    """What is read, and all that would be right to write, for each row of a JSONL file.

    Raises:
        CorpusError: see `read_numbered_examples`.
    """
    return (example for _, example in read_numbered_examples(path, templates))


def read_numbered_examples(
    path: Path | str, templates: tuple[str, str]
) -> Iterator[tuple[int, tuple[str, list[str]]]]:
    """The same with the number of the line that each was made from.

    Raises:
        CorpusError: a row is no object, or has not the fields; the message opens with file and line.
    """
    for block in read_lines(path):
        for i, why in block.spoilt.items():
            raise CorpusError(f"{block.name}:{block.first + i}: a {why} or more is not read; shorten it")
        for number, line in enumerate(block.columns[0], start=block.first):
            if line.strip():
                yield from (
                    (number, each) for each in _examples_in(line, templates, f"{display_name(path)}:{number}")
                )


def _examples_in(line: str, templates: tuple[str, str], place: str) -> Iterator[tuple[str, list[str]]]:
    try:
        yield from _examples(json_object(line), templates)
    except MissingFieldError as error:
        hint = "task.input and task.output say which fields are taken"
        raise CorpusError(f"{place}: {error}{' ' if str(error).endswith('?') else '; '}{hint}") from None
    except RequestError as error:
        raise CorpusError(f"{place}: {error}") from None


def write_pairs(out: Path, path: Path | str, templates: tuple[str, str]) -> Path:
    """Write the pairs of a file as JSONL with `input`, `output`, all that is `right`, and the `line`."""
    out.parent.mkdir(parents=True, exist_ok=True)
    with out.open("w", encoding="utf-8") as file:
        for number, (read, right) in read_numbered_examples(path, templates):
            row = {
                "input": single_line(read),
                "output": single_line(right[0]),
                "right": [single_line(each) for each in right],
            }
            line = json.dumps({**row, LINE: number}, ensure_ascii=False)
            file.write(_HALF.sub(LOST, line) + "\n")
    return out


def _examples(row: dict[str, Any], templates: tuple[str, str]) -> Iterator[tuple[str, list[str]]]:
    if not any(TURNS in template_fields(template) for template in templates):
        yield fill_template(templates[0], row), _every(templates[1], row)
        return
    turns = row.get(TURNS)
    if turns is None:
        wanted = f'it is a list of what was said in turn, {{"{TURNS}": ["Hello.", "Hi."]}}'
        raise RequestError(
            f"there is no text in {TURNS}; the fields are {', '.join(names_in(row))}; {wanted}"
        )
    if not isinstance(turns, list) or len(turns) < 2 or not all(isinstance(turn, str) for turn in turns):
        raise RequestError(f"{TURNS} is not a list of two texts or more")
    for i in range(1, len(turns)):
        read = fill_template(templates[0], {**row, TURNS: BETWEEN_TURNS.join(map(single_line, turns[:i]))})
        yield read, [fill_template(templates[1], {**row, TURNS: turns[i]})]


def _every(template: str, row: Mapping[str, Any]) -> list[str]:
    """A template filled with the first of each list, with the second, and so on, each once."""
    lists = [value for field in template_fields(template) if isinstance(value := _value(row, field), list)]
    most = max(map(len, lists), default=1)
    found = (
        FIELD.sub(lambda field, i=i: _text(row, field[1], i), template)  # type: ignore[misc]
        for i in range(max(1, most))
    )
    return list(dict.fromkeys(found))


def _object(text: str) -> dict[str, Any]:
    """The object that a text is; empty where it is none."""
    if not text.lstrip().startswith("{"):
        return {}
    try:
        return json_object(text)
    except RequestError:
        return {}


def _value(row: Mapping[str, Any], field: str) -> Any:
    outer, dot, inner = field.partition(".")
    if field not in row and dot and isinstance(row.get(outer), dict):
        return _value(row[outer], inner)
    return row.get(field, row.get(f"{field}s"))  # of `answers`, one is the answer


def _text(row: Mapping[str, Any], field: str, number: int = 0) -> str:
    """The text of a field; of a list, the one of this number, or else the last."""
    value = _value(row, field)
    if isinstance(value, list):  # a question may have no answer: an empty text, which cleaning counts
        value = value[min(number, len(value) - 1)] if value else ""
    if isinstance(value, str):
        return value
    if value is not None and not isinstance(value, list | dict):
        return json.dumps(value)
    known = names_in(row)
    near = did_you_mean(field, known) or f"; the fields are {', '.join(known)}"
    raise MissingFieldError(f"there is no text in {field}{near}")


def single_line(text: str) -> str:
    """A text on one line."""
    return " ".join(text.split())
