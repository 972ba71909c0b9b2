"""Rows with named fields as pairs of input and output texts, by templates like `{question}`.

A field is a text, or a list of texts: of several answers, the first is learned, and all are correct. `turns`
is a list of the turns of a conversation: every turn but the first is learned from those before it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from regard.config.checking import did_you_mean
from regard.config.task import FIELD
from regard.errors import CorpusError, RequestError
from regard.text.files import display_name
from regard.text.files.formats.format import Reading
from regard.text.files.formats.objects import json_object, names_in
from regard.text.files.lines import MEGABYTE, NO_TEXT, Tally, has_breaks, one_line
from regard.text.files.tables import read_objects, table_kind

TURNS, BETWEEN_TURNS = "turns", " ¶ "
"""The field of a conversation, and the separator of its turns."""
_HALF, LOST = re.compile("[\ud800-\udfff]"), "\ufffd"
"""Half a surrogate pair, which JSON can contain but UTF-8 cannot; and its replacement: cleaning drops and
counts texts that contain it."""
LINE = "line"
"""The field with the number of the line that a pair was derived from."""


class MissingFieldError(RequestError):
    """A row lacks a field that the template names."""


def template_fields(template: str) -> list[str]:
    """The names of the fields in a template."""
    return FIELD.findall(template)


def fill_template(template: str, row: Mapping[str, Any]) -> str:
    """A template filled with the fields of a row.

    Raises:
        RequestError: a field is missing, or is not a text.
    """
    return FIELD.sub(lambda field: _text(row, field[1]), template)


def model_input(template: str, row: Mapping[str, Any]) -> str:
    """The input of a model for a row, as in training.

    Raises:
        RequestError: a field is missing, or is not a text.
    """
    if isinstance(turns := row.get(TURNS), list):
        row = {**row, TURNS: BETWEEN_TURNS.join(single_line(str(turn)) for turn in turns)}
    return single_line(fill_template(template, row))


def model_input_of_text(template: str, text: str) -> str:
    """The input of a model for a user's text: the fields of a JSON object; any other text as it is.

    The input is one line, as in training; for a conversation, every line of the text is a turn.

    Raises:
        RequestError: the object lacks a field, or a field is not a text.
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
    """Input and output for each row of a table; see `read_examples`."""
    return ((text, correct[0]) for text, correct in read_examples(path, templates))


def read_examples(path: Path | str, templates: tuple[str, str]) -> Iterator[tuple[str, list[str]]]:
    """The input and all correct outputs, for each row of a table.

    Raises:
        CorpusError: see `read_numbered_examples`.
    """
    return (example for _, example in read_numbered_examples(path, templates))


def read_numbered_examples(
    path: Path | str, templates: tuple[str, str], reading: Reading | None = None, bad: Tally | None = None
) -> Iterator[tuple[int, tuple[str, list[str]]]]:
    """The examples of `read_examples`, with the number of the line that each was derived from.

    Args:
        path: a table: JSONL, unless its name says otherwise.
        templates: the input and the output, with names of fields.
        reading: what to do with a bad row; by default it is refused.
        bad: counts the rows that are dropped.

    Raises:
        CorpusError: a row cannot be read, or lacks a field; the message begins with file and line.
    """
    reading = reading or Reading(display_name(path))
    bad = Tally() if bad is None else bad
    for line, row, why in read_objects(path, reading, table_kind(path) or "jsonl"):
        if why == MEGABYTE and reading.on_invalid == "refuse":
            problem = f"{reading.name}:{line}: {why} or more; shorten it"
            raise CorpusError(problem, code="line_too_long")
        if why is None:
            try:
                yield from ((line, example) for example in list(_examples(row, templates)))
            except RequestError as error:
                hint = ""
                if isinstance(error, MissingFieldError):
                    separator = " " if str(error).endswith("?") else "; "
                    hint = f"{separator}task.input and task.output name the fields"
                why = reading.judge(NO_TEXT, line, f"{error}{hint}", error.code)
        if why is not None:
            bad.add(why, reading.name, line)


def write_pairs(
    out: Path,
    examples: Iterable[tuple[int, tuple[str, Sequence[str]]]],
    repairs: Tally | None = None,
    name: str = "",
) -> Path:
    """Write numbered examples as JSONL with `input`, `output`, every `right` output, and the `line`.

    Reading the file as a corpus gives the texts as they are written: nothing is left to repair.

    Args:
        out: the file to write.
        examples: line numbers, inputs and correct outputs.
        repairs: counts what was repaired.
        name: the name of the file that the examples are from, for the places of repairs.
    """
    out.parent.mkdir(parents=True, exist_ok=True)
    repairs = Tally() if repairs is None else repairs
    with out.open("w", encoding="utf-8") as file:
        for number, (text, correct) in examples:
            read, *outputs = (example_text(each, repairs, name, number) for each in (text, *correct))
            row = {"input": read, "output": outputs[0], "right": outputs}
            line = json.dumps({**row, LINE: number}, ensure_ascii=False)
            file.write(line + "\n")
    return out


def _examples(row: Mapping[str, Any], templates: tuple[str, str]) -> Iterator[tuple[str, list[str]]]:
    if not any(TURNS in template_fields(template) for template in templates):
        yield fill_template(templates[0], row), _every(templates[1], row)
        return
    turns = row.get(TURNS)
    if turns is None:
        form = f'it is a list of the turns of a conversation, {{"{TURNS}": ["Hello.", "Hi."]}}'
        raise RequestError(
            f"there is no text in {TURNS}; the fields are {', '.join(names_in(row))}; {form}",
            code="missing_field",
        )
    if not isinstance(turns, list) or len(turns) < 2 or not all(isinstance(turn, str) for turn in turns):
        raise RequestError(f"{TURNS} is not a list of two texts or more", code="bad_turns")
    for i in range(1, len(turns)):
        read = fill_template(templates[0], {**row, TURNS: BETWEEN_TURNS.join(map(single_line, turns[:i]))})
        yield read, [fill_template(templates[1], {**row, TURNS: turns[i]})]


def _every(template: str, row: Mapping[str, Any]) -> list[str]:
    """A template filled with the first item of each list, with the second, and so on; no duplicates."""
    lists = [value for field in template_fields(template) if isinstance(value := _value(row, field), list)]
    most = max(map(len, lists), default=1)
    texts = (
        FIELD.sub(lambda field, i=i: _text(row, field[1], i), template)  # type: ignore[misc]
        for i in range(max(1, most))
    )
    return list(dict.fromkeys(texts))


def _object(text: str) -> dict[str, Any]:
    """The JSON object in a text; empty if it is not one."""
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
    return row.get(field, row.get(f"{field}s"))  # `answers` gives the `answer`


def _text(row: Mapping[str, Any], field: str, number: int = 0) -> str:
    """The text of a field; of a list, the item of this number, or the last."""
    value = _value(row, field)
    if isinstance(value, list):  # an empty list of answers is an empty text, which cleaning counts
        value = value[min(number, len(value) - 1)] if value else ""
    if isinstance(value, str):
        return value
    if value is not None and not isinstance(value, list | dict):
        return json.dumps(value)
    known = names_in(row)
    near = did_you_mean(field, known) or f"; the fields are {', '.join(known)}"
    raise MissingFieldError(f"there is no text in {field}{near}", code="missing_field")


def example_text(text: str, repairs: Tally | None = None, name: str = "", line: int = 0) -> str:
    """A text of an example as it is trained on and scored: one line that UTF-8 can encode.

    Args:
        text: the text of a field, or a filled template.
        repairs: counts characters that were removed; a line break in a text is a space, and does not count.
        name: the name of the file, for the places of repairs.
        line: the number of the line, likewise.
    """
    return _HALF.sub(LOST, single_line(text, repairs, name, line))


def single_line(text: str, repairs: Tally | None = None, name: str = "", line: int = 0) -> str:
    """A text as one line, without the characters that reading a file removes (`read_lines`)."""
    text = " ".join(text.split())
    if not has_breaks(text):
        return text
    # A removed character may have been a word of its own.
    return " ".join(one_line(text, Tally() if repairs is None else repairs, name, line).split())
