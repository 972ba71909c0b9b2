"""The live panel of a run: progress, numbers, a curve of the loss, a sample."""

from __future__ import annotations

from collections.abc import Iterator
from math import log
from threading import Lock
from typing import Any

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from regard.training.display.standing import Latest, Sample, Standing, duration

BLOCKS = " ▁▂▃▄▅▆▇█"
WIDE = 72
"""Terminal width from which the curve is drawn beside the numbers."""
WIDEST = 110
"""Largest width that is used; longer lines are hard to read."""
CURVE_HEIGHT = 6
SAMPLE_LINES = 2


class Panel:
    """Draws the state of a run at any width. Events and drawings may come from different threads."""

    def __init__(self, standing: Standing) -> None:
        self._standing, self._lock = standing, Lock()

    def hear(self, event: dict[str, Any]) -> None:
        """Hear an event; nothing is drawn."""
        with self._lock:
            self._standing.hear(event)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = min(options.max_width, WIDEST)
        with self._lock:
            drawn = list(console.render(self._parts(width, options), options.update_width(width)))
        yield from drawn

    def _parts(self, width: int, options: ConsoleOptions) -> Group:
        parts: list[RenderableType] = [_heading(self._standing), _progress(self._standing), ""]
        parts += _measures(self._standing, width, blocks=not options.ascii_only)
        if self._standing.sample.outputs:
            parts += ["", _sample(self._standing.sample)]
        return Group(*parts)


def _heading(standing: Standing) -> Table:
    grid = _grid(expand=True)
    grid.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
    grid.add_column(no_wrap=True, justify="right")
    number, *most = standing.steps.partition(" ")
    steps = Text.assemble("step ", (number, "bold"), "".join(most))
    grid.add_row(Text(standing.title, style="bold"), steps)
    return grid


def _progress(standing: Standing) -> Table:
    grid = _grid(expand=True)
    grid.add_column(ratio=1)
    grid.add_column(no_wrap=True, justify="right")
    left = standing.seconds_left
    words = f"{standing.share:.0%}" + ("" if left is None else f"  {duration(left)} left")
    bar = ProgressBar(total=1.0, completed=standing.share, complete_style="cyan", finished_style="green")
    grid.add_row(bar, words)
    return grid


def _measures(standing: Standing, width: int, *, blocks: bool) -> Iterator[RenderableType]:
    """The numbers, with the curve beside them, or below in one line where the terminal is narrow."""
    table = _grid()
    table.add_column(style="dim", no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True, overflow="ellipsis")
    for row in _rows(standing, width):
        table.add_row(*row)
    points = standing.curve.means
    if not blocks or len(points) < 2:
        yield table
    elif width < WIDE:
        yield table
        yield Text(curve(points, width, 1)[0], style="cyan")
    else:
        both = _grid(expand=True)
        both.add_column(no_wrap=True)
        both.add_column(ratio=1)
        both.add_row(table, _Curve(points))
        yield both


def _rows(standing: Standing, width: int) -> Iterator[tuple[str, str, str]]:
    yield "loss", _written(standing.loss, ".3f"), ""
    for name, value in standing.beside_the_loss:
        yield name, value, ""
    yield "learning rate", _written(standing.rate, ".2e"), ""
    yield "tokens/s", _written(standing.speed, ",.0f"), ""
    yield "validation", _written(standing.valid_loss.last, ".3f"), _best(standing.valid_loss, ".3f", width)
    if standing.unit != "token" and standing.valid_accuracy.last is not None:
        latest = standing.valid_accuracy
        yield "  accuracy", _written(latest.last, ".1%"), _best(latest, ".1%", width)
    if standing.valid_bleu.last is not None:
        yield "BLEU", _written(standing.valid_bleu.last, ".2f"), _best(standing.valid_bleu, ".2f", width)
    for name, value in standing.others.items():
        yield name, value, ""
    if standing.averaged:
        count, loss = standing.averaged
        yield "averaged", f"{loss:.3f}", f"mean of {count}"


def _written(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def _best(latest: Latest, form: str, width: int) -> str:
    if latest.best is None:
        return ""
    place = f" at {latest.best_step:,}" if width >= WIDE // 2 + 12 else ""
    return f"best {latest.best:{form}}{place}"


def _sample(sample: Sample) -> Table:
    """Source and reference, then the last outputs, the newest in bold."""
    grid = _grid(expand=True)
    grid.add_column(style="dim", no_wrap=True, justify="right")
    grid.add_column(ratio=1)
    grid.add_row("source", _Clipped(Text(sample.source)))
    grid.add_row("reference", _Clipped(Text(sample.reference)))
    for step, output in sample.outputs:
        style = "bold" if step == sample.outputs[-1][0] else "dim"
        grid.add_row(f"{step:,}", _Clipped(Text(output, style=style)))
    return grid


def _grid(*, expand: bool = False) -> Table:
    return Table.grid(padding=(0, 2, 0, 0), expand=expand)


class _Clipped:
    """A text in a few lines, with an ellipsis if it is longer."""

    def __init__(self, text: Text) -> None:
        self.text = text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = list(self.text.wrap(console, options.max_width))
        if len(lines) > SAMPLE_LINES:
            last = lines[SAMPLE_LINES - 1]
            last.rstrip()
            last.truncate(max(1, options.max_width - 1))
            last.append("…")
        yield Text("\n").join(lines[:SAMPLE_LINES])


class _Curve:
    """The curve in the remaining width, with its highest and lowest value."""

    def __init__(self, points: list[float]) -> None:
        self.points = points

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> RenderResult:
        high, low = (f"{value:.2f}" for value in (max(self.points), min(self.points)))
        beside = max(len(high), len(low)) + 1
        rows = curve(self.points, max(1, options.max_width - beside), CURVE_HEIGHT)
        for i, row in enumerate(rows):
            label = high if i == 0 else low if i == len(rows) - 1 else ""
            yield Text.assemble((f"{label:>{beside - 1}} ", "dim"), (row, "cyan"))


def curve(points: list[float], width: int, height: int) -> list[str]:
    """Rows of block characters, highest first; logarithmic if all values are positive."""
    if min(points) > 0:
        points = [log(point) for point in points]
    low, high = min(points), max(points)
    levels = 8 * height - 1
    eighths = [1 + round(levels * (value - low) / (high - low or 1.0)) for value in _columns(points, width)]
    return [
        "".join(BLOCKS[min(8, max(0, each - 8 * row))] for each in eighths) for row in reversed(range(height))
    ]


def _columns(points: list[float], width: int) -> Iterator[float]:
    """The mean of the points in each column, or the nearest point where points are fewer than columns."""
    count = len(points)
    for column in range(width):
        start = column * count // width
        end = max(start + 1, (column + 1) * count // width)
        yield sum(points[start:end]) / (end - start)
