"""An experiment about a claim, and its findings: tables, charts and judgements, in two languages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

from regard.config import SimilarityName


@dataclass(frozen=True, slots=True)
class Both:
    """A text in English and in Chinese."""

    en: str
    zh: str


Label = str | Both
"""The name of a number; one string if both languages share it, such as d_k."""


def label_in(language: Literal["en", "zh"], label: Label) -> str:
    """A label in one language."""
    return label if isinstance(label, str) else label.en if language == "en" else label.zh


def in_both(label: Label, between: str = " · ") -> str:
    """A label in both languages, or once if they share it."""
    return label if isinstance(label, str) else f"{label.en}{between}{label.zh}"


@dataclass(frozen=True, slots=True)
class PerSeed:
    """One number per seed, in the order of the seeds."""

    values: tuple[float, ...]

    @staticmethod
    def of(values: Iterable[float]) -> PerSeed:
        """Any numbers, as floats."""
        return PerSeed(tuple(map(float, values)))

    @property
    def mean(self) -> float:
        """The mean over the seeds."""
        return fmean(self.values)

    @property
    def low(self) -> float:
        """The smallest value."""
        return min(self.values)

    @property
    def high(self) -> float:
        """The largest value."""
        return max(self.values)

    def below(self, other: PerSeed) -> bool:
        """Whether it is smaller than another for every seed."""
        return all(mine < others for mine, others in zip(self.values, other.values, strict=True))


Cell = Label | int | float | PerSeed


@dataclass(frozen=True, slots=True)
class ResultTable:
    """A table of results."""

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
    """A line of a chart: at every x, one number per seed."""

    name: Label
    x: Sequence[float]
    y: Sequence[PerSeed]

    def __post_init__(self) -> None:
        assert len(self.x) == len(self.y) > 0, f"{self.name}: {len(self.x)} x, {len(self.y)} y"


@dataclass(frozen=True, slots=True)
class Chart:
    """Lines on the same axes."""

    name: Label
    x_name: Label
    lines: tuple[Line, ...]
    log_x: bool = False
    log_y: bool = False


@dataclass(frozen=True, slots=True)
class Judgement:
    """An assertion, and whether the numbers support it."""

    holds: bool
    seen: Both
    """The assertion and its numbers; a sentence that follows "holds:" or "does not hold:"."""


@dataclass(frozen=True, slots=True)
class Findings:
    """The results of a run."""

    tables: tuple[ResultTable, ...]
    charts: tuple[Chart, ...]
    verdict: tuple[Judgement, ...]


def as_document(value: Any) -> Any:
    """Findings, or a part of them, as JSON values; infinite and NaN become null."""
    match value:
        case PerSeed():
            numbers = {"mean": value.mean, "low": value.low, "high": value.high, "values": value.values}
            return as_document(numbers)
        case float():
            return float(f"{value:.8g}") if isfinite(value) else None
        case dict():
            return {key: as_document(item) for key, item in value.items()}
        case list() | tuple() | range():
            return [as_document(item) for item in value]
        case Both() | ResultTable() | Line() | Chart() | Judgement() | Findings():
            return {name: as_document(getattr(value, name)) for name in value.__slots__}
        case _:
            return value


Size = Literal["short", "normal", "long"]
"""Seconds, to try it; minutes, the default; or as long as a reliable result takes."""


@dataclass(frozen=True, slots=True)
class Experiment:
    """A claim, and the program that tests it."""

    name: str
    claim: Both
    """The claim."""
    run: Callable[[Size, Sequence[int]], Findings]
    """Runs it in a size, once per seed."""
    on_model: Callable[[Path], Experiment] | None = None
    """The experiment on a given model folder; None if it trains its own models."""
    seeded: bool = True
    """Whether it trains or draws something; if not, there are no seeds."""


@dataclass(frozen=True, slots=True)
class ExperimentRun:
    """A finished run of an experiment."""

    experiment: Experiment
    size: Size
    seeds: tuple[int, ...]
    findings: Findings

    def document(self) -> dict[str, Any]:
        """The run as a JSON object."""
        return {
            "name": self.experiment.name,
            "claim": as_document(self.experiment.claim),
            "size": self.size,
            "seeds": list(self.seeds),
            **as_document(self.findings),
        }


def run_experiment(experiment: Experiment, size: Size, n_seeds: int) -> ExperimentRun:
    """Run an experiment with the seeds 1, 2, 3, …, if it has seeds."""
    seeds = tuple(range(1, n_seeds + 1)) if experiment.seeded else ()
    return ExperimentRun(experiment, size, seeds, experiment.run(size, seeds))


LOSS_LABEL = Both("loss, nats per token", "损失，奈特/词元")
SIMILARITY = Both("similarity", "相似度")
PARAMETERS = Both("parameters", "参数")

SIMILARITIES: dict[SimilarityName, Both] = {
    "scaled-dot": Both("scaled-dot", "缩放点积"),
    "dot": Both("dot", "点积"),
    "cosine": Both("cosine", "余弦"),
    "additive": Both("additive", "加性"),
    "bilinear": Both("bilinear", "双线性"),
}


def reversing_for(steps: int) -> Both:
    """The task and the number of training steps."""
    return Both(f"reversing, {steps} steps", f"倒序，{steps} 步")
