"""The numbers of a view, for other programs: as a table in CSV, as arrays in one .npz file."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np


class Numbers(Protocol):
    """What can be written as a table and as arrays."""

    def csv(self) -> str:
        """A table, with a line of names first."""

    def arrays(self) -> dict[str, np.ndarray]:
        """Arrays by name."""


@dataclass(frozen=True, eq=False, slots=True)
class Labelled:
    """An array whose axes have names, and a label for each place."""

    values: np.ndarray
    axes: Mapping[str, Sequence[str]]

    def csv(self) -> str:
        """The last axis goes across; the others are columns of labels, at the left."""
        *down, across = self.axes.values()
        names = [*self.axes][:-1]
        rows = (
            [*(labels[i] for labels, i in zip(down, place, strict=True)), *map(_written, self.values[place])]
            for place in np.ndindex(self.values.shape[:-1])
        )
        return _table([*names, *across], rows)

    def arrays(self) -> dict[str, np.ndarray]:
        """`values`, and the labels of each axis under its name."""
        return {"values": self.values, **{name: np.array(list(each)) for name, each in self.axes.items()}}


@dataclass(frozen=True, slots=True)
class Records:
    """Lines that have the same fields."""

    fields: tuple[str, ...]
    rows: Sequence[tuple[Any, ...]]

    def csv(self) -> str:
        """A column for each field."""
        return _table(self.fields, ([_written(value) for value in row] for row in self.rows))

    def arrays(self) -> dict[str, np.ndarray]:
        """An array for each field."""
        columns = zip(*self.rows, strict=True) if self.rows else ([] for _ in self.fields)
        return {name: np.array(column) for name, column in zip(self.fields, columns, strict=True)}


def _written(value: Any) -> str:
    """As short as float32 allows, which is what models compute in."""
    return str(np.float32(value)) if isinstance(value, float | np.floating) else str(value)


def _table(names: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(names)
    writer.writerows(rows)
    return written.getvalue()
