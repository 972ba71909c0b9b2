"""What an experiment found: numbers in tables, lines for a picture, and what they say, in two languages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isfinite
from statistics import fmean
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Both:
    """The same in English and in Chinese."""

    en: str
    zh: str


Label = str | Both
"""What names a number. A sign, such as d_k, is the same in both languages."""


def label_in(language: Literal["en", "zh"], label: Label) -> str:
    """A label as one language has it."""
    return label if isinstance(label, str) else label.en if language == "en" else label.zh


def in_both(label: Label, between: str = " · ") -> str:
    """A label as both languages have it, once where they agree."""
    return label if isinstance(label, str) else f"{label.en}{between}{label.zh}"


@dataclass(frozen=True, slots=True)
class PerSeed:
    """One number for each seed, in the order of the seeds."""

    values: tuple[float, ...]

    @staticmethod
    def of(values: Iterable[float]) -> PerSeed:
        """From any numbers."""
        return PerSeed(tuple(map(float, values)))

    @property
    def mean(self) -> float:
        """Over the seeds."""
        return fmean(self.values)

    @property
    def low(self) -> float:
        """The least."""
        return min(self.values)

    @property
    def high(self) -> float:
        """The greatest."""
        return max(self.values)

    def below(self, other: PerSeed) -> bool:
        """Whether it is the smaller one for every seed."""
        return all(mine < others for mine, others in zip(self.values, other.values, strict=True))


Cell = Label | int | float | PerSeed


@dataclass(frozen=True, slots=True)
class Table:
    """Numbers with names."""

    name: Label
    columns: tuple[Label, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def __post_init__(self) -> None:
        widths = {len(row) for row in self.rows}
        assert widths <= {len(self.columns)}, (
            f"{self.name}: {len(self.columns)} columns, but rows of {widths}"
        )


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a chart: a name, and a number for each seed at each place."""

    name: Label
    x: Sequence[float]
    y: Sequence[PerSeed]

    def __post_init__(self) -> None:
        assert len(self.x) == len(self.y) > 0, f"{self.name}: {len(self.x)} places, {len(self.y)} numbers"


@dataclass(frozen=True, slots=True)
class Chart:
    """Lines that share their axes."""

    name: Label
    x_name: Label
    lines: tuple[Line, ...]
    log_x: bool = False
    log_y: bool = False


@dataclass(frozen=True, slots=True)
class Judgement:
    """One assertion, and whether the numbers bear it out."""

    holds: bool
    seen: Both
    """The assertion, then the numbers that were seen; it must read well behind "holds" and "does not"."""


@dataclass(frozen=True, slots=True)
class Findings:
    """All that came out of a run."""

    tables: tuple[Table, ...]
    charts: tuple[Chart, ...]
    verdict: tuple[Judgement, ...]


def as_document(value: Any) -> Any:
    """Findings, or a part of them, as JSON has it; what is no number there is null."""
    match value:
        case PerSeed():
            numbers = {"mean": value.mean, "low": value.low, "high": value.high, "values": value.values}
            return as_document(numbers)
        case float():
            return float(f"{value:.6g}") if isfinite(value) else None
        case dict():
            return {key: as_document(each) for key, each in value.items()}
        case list() | tuple() | range():
            return [as_document(each) for each in value]
        case Both() | Table() | Line() | Chart() | Judgement() | Findings():
            return {name: as_document(getattr(value, name)) for name in value.__slots__}
        case _:
            return value
