"""What a format of tables is: a reader that gives the rows of a file in blocks, before columns are chosen."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

from regard.errors import CorpusError
from regard.text.files import display_name
from regard.text.files.lines import OnInvalid, Tally

Fields = Sequence[str]
"""The fields of a row without names."""
Object = Mapping[str, Any]
"""The fields of a row by name."""
SAMPLED = 1000
"""Rows at the beginning of a file in which names of fields are looked up."""


@dataclass(frozen=True, slots=True)
class Records:
    """Consecutive rows of a table, whole: fields in order, or objects by name; an empty row is empty."""

    rows: Sequence[Any]
    lines: Sequence[int]
    """The line of each row; the number of the row in formats that have no lines."""
    unusable: Mapping[int, str] = field(default_factory=dict)
    """Rows that cannot be used, counted from 0, and the reasons; their content means nothing."""


@dataclass(frozen=True, slots=True)
class Reading:
    """How a file is read: its name in messages, what counts repairs, and what to do with a bad row."""

    name: str
    repairs: Tally = field(default_factory=Tally)
    on_invalid: OnInvalid = "refuse"

    @classmethod
    def of(cls, path: Path | str) -> Reading:
        """Reading a file to look at it: bad rows are dropped, nothing is counted."""
        return cls(display_name(path), on_invalid="drop")

    def judge(self, reason: str, line: int, problem: str, code: str) -> str:
        """The reason why a row is dropped.

        Raises:
            CorpusError: bad rows are refused; the message begins with file and line.
        """
        if self.on_invalid == "refuse":
            raise CorpusError(f"{self.name}:{line}: {problem}", code=code)
        return reason


class Format(ABC):
    """A kind of table. A new one is a class in a file of its own, listed in `formats/__init__.py`."""

    kind: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]]
    has_names: ClassVar[bool] = True
    """Whether each row is an object with names; else it is a list of fields, the first perhaps a header."""
    by_language: ClassVar[bool] = False
    """Whether the names are languages, of which `en` includes `en-US`."""
    is_text: ClassVar[bool] = True
    """Whether the file is text, perhaps compressed, which can come from a pipe."""

    @abstractmethod
    def read(self, path: Path | str, reading: Reading, wanted: Sequence[str] = ()) -> Iterator[Records]:
        """The rows of a file, in blocks.

        Args:
            path: the file.
            reading: its name, and what to do with bad rows.
            wanted: the names of the fields that are needed; by default all.

        Raises:
            CorpusError: the file cannot be read, or has a bad row.
        """

    def first_rows(self, path: Path | str, most: int = SAMPLED) -> list[tuple[int, Any]]:
        """The first usable rows that are not empty, with their lines.

        Raises:
            CorpusError: the file cannot be read, or begins with rows that all are bad.
        """
        rows = (
            (line, row)
            for records in self.read(path, Reading.of(path))
            for i, (line, row) in enumerate(zip(records.lines, records.rows, strict=True))
            if row and i not in records.unusable
        )
        found = list(islice(rows, most))
        if not found:  # the message about the first bad row, if there is one
            next(self.read(path, Reading(display_name(path))), None)
        return found
