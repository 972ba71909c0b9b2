"""Lines in, lines out: what is printed for each line, and what people should know about it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

from regard.engine.result import Result
from regard.engine.translator import Translator
from regard.errors import RequestError
from regard.text.files.lines import InputLine


class Written(NamedTuple):
    """What became of a line."""

    text: str
    """What is printed, without the break at its end."""
    engine: str = ""
    notes: tuple[str, ...] = ()
    """What people should know, each with its place."""
    spoilt: bool = False
    """Whether it could not be read; then nothing is printed, and the note says why."""


class LineByLine:
    """Translates lines, of which each has one line of output, whatever is in it."""

    def __init__(
        self, translator: Translator, *, strictly: bool = False, scores: bool = False, as_json: bool = False
    ) -> None:
        """Prepare to write translations.

        Args:
            translator: the way to translate.
            strictly: whether a line that is too long for the model counts as one that cannot be read.
            scores: put its score and a tab before each translation.
            as_json: write a JSON object instead.
        """
        self._translator, self._strictly = translator, strictly
        self._scores, self._as_json = scores, as_json

    def __call__(self, lines: Sequence[InputLine]) -> list[Written]:
        """What becomes of each line.

        Raises:
            RequestError: what is asked for cannot be done.
        """
        told = [self._told(line) for line in lines]
        results = iter(self._translator([line.text for line in told if line.problem is None]))
        return [self._spoilt(line) if line.problem else self._written(line, next(results)) for line in told]

    def _told(self, line: InputLine) -> InputLine:
        """A line as it came; one that does not tell which way to translate it cannot be read."""
        if line.problem is not None:
            return line
        try:
            self._translator.direction(line.text)
            if self._strictly:
                self._translator.check(line.text)
        except RequestError as error:
            return line._replace(text="", problem=f"{line.where}{error}")
        return line

    def _spoilt(self, line: InputLine) -> Written:
        problem = line.problem or ""
        text = json.dumps({"text": "", "error": problem}, ensure_ascii=False) if self._as_json else ""
        return Written(text, notes=(problem,), spoilt=True)

    def _written(self, line: InputLine, result: Result) -> Written:
        text = json.dumps(_table(result), ensure_ascii=False) if self._as_json else self._columns(result)
        problems = _problems(result)
        if result.engine and not result.text.strip():
            problems.append("the model wrote nothing for it")
        return Written(text, result.engine, tuple(line.where + problem for problem in problems))

    def _columns(self, result: Result) -> str:
        every = [result, *result.alternatives]
        if not result.text.strip() or (not self._scores and len(every) == 1):
            return result.text
        columns = [
            column
            for each in every
            for column in ((f"{each.score:.4f}",) if self._scores else ()) + (each.text,)
        ]
        return "\t".join(column.replace("\t", " ") for column in columns)


def _table(result: Result) -> dict[str, Any]:
    return {**asdict(result), "alternatives": [_table(each) for each in result.alternatives]}


def _problems(result: Result) -> list[str]:
    found = []
    if result.split > 1:
        found.append(f"too long for the model, so it was translated in {result.split} pieces")
    if result.missing:
        found.append(f"the translation does not contain {', '.join(map(repr, result.missing))}")
    if result.repetitive:
        found.append("the translation goes round in a loop")
    if result.unfinished:
        found.append("the translation did not end before its limit of length")
    return found
