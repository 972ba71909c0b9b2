"""One comparison of a benchmark, and how benchmarks hand theirs to the table. Standard library only."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Result:
    """This project and one other, at the same work."""

    what: str
    unit: str
    ours: float
    peer: str
    theirs: float
    ratio: float
    """How many times as fast, or as small, this project is: above 1 is better, whatever the unit."""

    @staticmethod
    def of_rates(what: str, unit: str, ours: Sequence[float], peer: str, theirs: Sequence[float]) -> Result:
        """Medians of rounds; the ratio is the median of the rounds' own, as noise comes by rounds."""
        ratio = statistics.median(a / b for a, b in zip(ours, theirs, strict=True))
        return Result(what, unit, statistics.median(ours), peer, statistics.median(theirs), ratio)

    @staticmethod
    def of_costs(what: str, unit: str, ours: Sequence[float], peer: str, theirs: Sequence[float]) -> Result:
        """The same where less is better: seconds, bytes."""
        ratio = statistics.median(b / a for a, b in zip(ours, theirs, strict=True))
        return Result(what, unit, statistics.median(ours), peer, statistics.median(theirs), ratio)


def write_results(path: Path | None, results: Iterable[Result]) -> None:
    """Keep results for the table, where a path was asked for."""
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps([asdict(each) for each in results], indent=1), encoding="utf-8")


def read_results(path: Path) -> list[Result]:
    """What `write_results` wrote."""
    return [Result(**values) for values in json.loads(path.read_text(encoding="utf-8"))]
