"""Lines of output, and reports on stderr meanwhile: warnings, the engine in use, and progress."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from regard.cli.shared.options import with_flags

if TYPE_CHECKING:
    from regard.engine.translator import OutputLine

UNREADABLE_INPUT = 2
"""Exit status when a line could not be processed: the same as for other mistakes in the input."""
MOST_WARNINGS = 20
"""Most warnings printed, and most characters listed in one; the rest are counted."""
_INTERVAL = 0.2
"""Seconds between two updates of the progress."""


def unseen_characters_warning(characters: Sequence[str]) -> str:
    """The warning that a vocabulary lacks characters of a text."""
    problem = f"{len(characters):,} characters are in no subword, and were read as bytes"
    return f"{problem}: {' '.join(characters[:MOST_WARNINGS])}"


class LineReporter:
    """Prints the warnings of processed lines, the engines used, and the progress."""

    def __init__(self, *, progress: bool, engines: bool) -> None:
        # Output on the same terminal shows the progress already.
        self._shows_progress = progress and sys.stderr.isatty() and not sys.stdout.isatty()
        self._shows_engines = engines
        self._engines: set[str] = set()
        self._n_warnings = self._n_problems = self._n_lines = 0
        self._started = self._updated = time.monotonic()
        self.n_unreadable = 0
        """Lines that could not be processed."""

    def add(self, written: OutputLine) -> None:
        """Report the warnings and the engine of one line."""
        self.n_unreadable += written.failed
        if self._shows_engines and written.engine not in {*self._engines, ""}:
            self._engines.add(written.engine)
            self._print(f"engine: {written.engine}")
        for note in written.notes:
            # Counted apart, so that warnings never hide that a line was not processed.
            self._n_problems += written.failed
            self._n_warnings += not written.failed
            if (self._n_problems if written.failed else self._n_warnings) <= MOST_WARNINGS:
                self._print(with_flags(note))

    def advance(self, n_lines: int) -> None:
        """Count processed lines, and update the progress."""
        self._n_lines += n_lines
        now = time.monotonic()
        if self._shows_progress and now - self._updated > _INTERVAL:
            self._updated = now
            speed = self._n_lines / (now - self._started)
            text = f"\r{self._n_lines:,} lines, {speed:,.0f} a second\033[K"
            print(text, end="", file=sys.stderr, flush=True)

    def close(self, notes: Iterable[str] = ()) -> None:
        """Remove the progress, and print how many warnings were left out, and notes about the whole."""
        if self._shows_progress:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
        left_out = sum(max(0, count - MOST_WARNINGS) for count in (self._n_problems, self._n_warnings))
        if left_out:
            self._print(f"{left_out:,} more like these")
        for note in notes:
            self._print(note)

    def _print(self, text: str) -> None:
        clear = "\r\033[K" if self._shows_progress else ""
        print(f"{clear}regard: {text}", file=sys.stderr, flush=True)


def print_lines(
    blocks: Iterable[Sequence[OutputLine]],
    *,
    progress: bool = False,
    engines: bool = False,
    at_end: Callable[[], Iterable[str]] = tuple,
) -> None:
    """Print lines of output as they come, with their warnings on stderr.

    Args:
        blocks: the lines; the empty text of one that failed is printed, too, so that lines stay in step.
        progress: show the progress on stderr.
        engines: print which engines run.
        at_end: what to report about the whole.

    Raises:
        typer.Exit: a line could not be processed; others were.
    """
    reporter = LineReporter(progress=progress, engines=engines)
    for block in blocks:
        for line in block:
            reporter.add(line)
            print(with_flags(line.text) if line.failed else line.text)
        sys.stdout.flush()
        reporter.advance(len(block))
    reporter.close(at_end())
    if reporter.n_unreadable:
        raise typer.Exit(UNREADABLE_INPUT)


class DocumentProgress:
    """Shows on a terminal how much of each document is translated, and prints reports."""

    def __init__(self, n_files: int) -> None:
        self._n_files, self._n, self._updated = n_files, 0, 0.0
        self._shows = sys.stderr.isatty()

    def __enter__(self) -> DocumentProgress:
        return self

    def __exit__(self, *_: object) -> None:
        self._clear()

    def of(self, path: Path) -> Callable[[int, int], None]:
        """What shows the progress of the next document."""
        self._n += 1
        place = f"{self._n}/{self._n_files} " if self._n_files > 1 else ""

        def show(done: int, total: int) -> None:
            now = time.monotonic()
            if self._shows and (now - self._updated > _INTERVAL or done == total):
                self._updated = now
                width = 20 * done // max(1, total)
                bar = "█" * width + "░" * (20 - width)
                text = f"\r{place}{path.name} {bar} {done:,} of {total:,} segments\033[K"
                print(text, end="", file=sys.stderr, flush=True)

        return show

    def print(self, text: str) -> None:
        """Print a line of a report."""
        self._clear()
        print(f"regard: {with_flags(text)}", file=sys.stderr, flush=True)

    def print_result(self, text: str) -> None:
        """Print a line of output."""
        self._clear()
        print(text, flush=True)

    def _clear(self) -> None:
        if self._shows:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
