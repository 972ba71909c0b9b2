"""What a scene measured, the bars, and the table."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks.hostile.watch import ANOTHER, PROBE_S, RIGHT, Answer, Probe

LIVE_S = 0.2
"""Longest time that `/livez` may take."""
PEAK_BYTES = 1_500_000_000
BACK = 1.1
"""Memory afterwards, as a share of what it was before."""
SLOWER = 5.0
"""The median of honest clients, as a multiple of the quiet one."""
TIPPED = 0.01
"""Share of answers that rounding in batches of other shapes may change at int8."""
LOG_BYTES = 1_000_000
STOP_S = 10.0
"""Seconds that a stop may take beyond the drain."""


@dataclass(frozen=True)
class Liveness:
    """Answers to `/livez`."""

    n: int = 0
    p99: float = 0.0
    worst: float = 0.0
    problems: dict[str, int] = field(default_factory=dict)

    @staticmethod
    def of(probes: Sequence[Probe]) -> Liveness:
        """The numbers of some probes."""
        seconds = without_omission([each.seconds for each in probes], PROBE_S)
        problems = Counter(each.problem for each in probes if each.problem)
        return Liveness(len(probes), percentile(seconds, 99), max(seconds, default=0.0), dict(problems))


@dataclass(frozen=True)
class Honesty:
    """Answers to honest clients."""

    n: int = 0
    another: int = 0
    """Translations that the quiet server did not give; rounding at int8 explains a few."""
    problems: dict[str, int] = field(default_factory=dict)
    """Other statuses, and answers that belong to another text."""
    median: float = math.inf

    @staticmethod
    def of(answers: Sequence[Answer]) -> Honesty:
        """The numbers of some answers."""
        outcomes = Counter(each.outcome for each in answers)
        problems = {name: n for name, n in outcomes.items() if name not in (RIGHT, ANOTHER)}
        good = [each.seconds for each in answers if each.outcome in (RIGHT, ANOTHER)]
        median = statistics.median(good) if good else math.inf
        return Honesty(len(answers), outcomes[ANOTHER], problems, median)


@dataclass
class Result:
    """One scene."""

    name: str
    about: str
    seconds: float = 0.0
    attacked: bool = True
    """Whether there was an attack before the stop; else only the stop counts."""
    sent: dict[str, int] = field(default_factory=dict)
    answers: dict[str, dict[str, int]] = field(default_factory=dict)
    broken: dict[str, int] = field(default_factory=dict)
    notes: dict[str, int] = field(default_factory=dict)
    crash: str = ""
    """How the process ended before it was asked to."""
    errors: int = 0
    """Answers of status 500, as clients or as the server counted them, whichever are more."""
    live: Liveness = field(default_factory=Liveness)
    live_quiet: Liveness = field(default_factory=Liveness)
    before: int = 0
    peak: int = 0
    after: int = 0
    honest: Honesty = field(default_factory=Honesty)
    honest_quiet: Honesty = field(default_factory=Honesty)
    log_bytes: int = 0
    stopped_s: float | None = None
    """Seconds from SIGTERM to the end; None if it had to be killed."""
    drain_s: float = 30.0

    @property
    def ratio(self) -> float:
        """Median of honest clients, as a multiple of the quiet one."""
        return self.honest.median / self.honest_quiet.median

    def outcomes(self) -> Counter[str]:
        """All answers by status, and requests that had none at the end."""
        total = sum(map(Counter, self.answers.values()), Counter[str]())
        return total + Counter({"pending": sum(self.sent.values()) - total.total()})

    def to_json(self) -> dict[str, Any]:
        """Everything, and what was missed; JSON has no infinity, so a median without answers is null."""
        values = asdict(self) | {"missed": list(missed(self))}
        for name in ("honest", "honest_quiet"):
            if math.isinf(values[name]["median"]):
                values[name]["median"] = None
        return values


def missed(result: Result) -> Iterator[str]:
    """The bars that a scene missed."""
    if result.crash:
        yield f"the process ended: {result.crash}"
    if result.errors:
        yield f"{result.errors} answers of status 500"
    if result.log_bytes >= LOG_BYTES:
        yield f"a log of {result.log_bytes / 1e6:.1f} MB"
    for what, n in sorted(result.broken.items(), key=lambda item: -item[1])[:5]:
        yield f"{n} × {what}"
    if len(result.broken) > 5:
        yield f"{len(result.broken) - 5} more kinds that are not allowed"
    if result.attacked:
        yield from _missed_while_attacked(result)
    if result.stopped_s is None and not result.crash:
        yield "did not stop after SIGTERM"
    elif result.stopped_s is not None and result.stopped_s > result.drain_s + STOP_S:
        yield f"stopped only {result.stopped_s:.1f} s after SIGTERM"


def _missed_while_attacked(result: Result) -> Iterator[str]:
    if result.live.worst >= LIVE_S:
        yield f"/livez took {1000 * result.live.worst:,.0f} ms"
    if result.live.problems:
        yield f"/livez failed: {_counts(result.live.problems)}"
    if result.peak >= PEAK_BYTES:
        yield f"memory reached {result.peak / 1e6:,.0f} MB"
    if result.after > BACK * result.before:
        yield f"memory stayed {result.after / result.before - 1:+.0%}"
    if result.honest.problems or not result.honest.n:
        yield f"honest clients: {_counts(result.honest.problems) or 'no answer'}"
    if result.honest.another > max(1, TIPPED * result.honest.n):
        yield f"{result.honest.another} of {result.honest.n} honest answers are others than before"
    if result.ratio >= SLOWER:
        yield f"honest clients wait {result.ratio:.1f} times as long"


# --- numbers ------------------------------------------------------------------------------------------------


def percentile(values: Sequence[float], percent: float) -> float:
    """The nearest rank; 0 without values."""
    if not values:
        return 0.0
    return sorted(values)[max(0, math.ceil(len(values) * percent / 100) - 1)]


def without_omission(seconds: Sequence[float], interval: float) -> list[float]:
    """What probes would have seen if each had been sent in time, not after the one before it.

    A stall of ten seconds holds up one probe, and would have held up all that were due in it.
    """
    found = []
    for each in seconds:
        found.append(each)
        found += [each - n * interval for n in range(1, math.ceil(each / interval))]
    return found


# --- the table ----------------------------------------------------------------------------------------------

COLUMNS = (
    *(
        "scene",
        "sent",
        "answers",
        "lived",
        "500",
        "/livez ms: quiet worst, p99, worst",
        "MB before, peak, after",
    ),
    *("honest: right, another, failed", "median ms, quiet", "ratio", "log MB", "stop s", "bars missed"),
)


def header() -> str:
    """The first two lines."""
    return f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}"


def row(result: Result) -> str:
    """A scene as a line of Markdown."""
    honest, quiet = result.honest, result.honest_quiet
    failed = sum(honest.problems.values())
    stopped = "killed" if result.stopped_s is None else f"{result.stopped_s:.1f}"
    cells = [
        result.name,
        f"{sum(result.sent.values()):,}",
        _counts(result.outcomes()),
        "no" if result.crash else "yes",
        str(result.errors),
        ", ".join(map(_ms, (result.live_quiet.worst, result.live.p99, result.live.worst))),
        ", ".join(f"{size / 1e6:,.0f}" for size in (result.before, result.peak, result.after)),
        f"{honest.n - honest.another - failed}, {honest.another}, {failed}",
        f"{_ms(honest.median)}, {_ms(quiet.median)}",
        f"{result.ratio:.1f}" if math.isfinite(result.ratio) else "–",
        f"{result.log_bytes / 1e6:.2f}",
        stopped,
        str(len(list(missed(result)))),
    ]
    if not result.attacked:
        cells[5:10] = ["–"] * 5
    if result.crash:
        cells[11] = "–"
    return f"| {' | '.join(cells)} |"


def verdict(results: Sequence[Result]) -> str:
    """For each scene, what it does and the bars that it missed."""
    lines = []
    for result in results:
        bars = list(missed(result))
        lines.append(f"{'MISSED' if bars else 'ok    '} {result.name}: {result.about}")
        lines += [f"       - {each}" for each in bars]
        if result.notes:
            lines.append(f"       ({_counts(result.notes)})")
    n = sum(not list(missed(result)) for result in results)
    return "\n".join([*lines, "", f"{n} of {len(results)} scenes met all bars."])


def _counts(counts: Counter[str] | dict[str, int]) -> str:
    return ", ".join(f"{n:,} × {what}" for what, n in sorted(counts.items(), key=lambda item: -item[1]))


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:,.0f}" if math.isfinite(seconds) else "–"
