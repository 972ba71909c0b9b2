"""What is told on stderr while lines go through: what could not be done, which engine runs, how far it is."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from regard.cli.shared.flags import with_flags

if TYPE_CHECKING:
    from regard.engine.line_by_line import Written

SPOILT = 2
"""Exit status when a line could not be read: a mistake in what was given, as elsewhere."""
MOST = 20
"""Lines that something is told of, and characters of one; of the other lines, how many they are."""
_OFTEN = 0.2
"""Seconds between two looks at the progress."""


def read_as_bytes(characters: Sequence[str]) -> str:
    """That a vocabulary lacks some characters of a text."""
    problem = f"{len(characters):,} characters are in no subword, and were read as bytes"
    return f"{problem}: {' '.join(characters[:MOST])}"


class Telling:
    """Hears of every line, and says what people should know."""

    def __init__(self, *, progress: bool, engines: bool) -> None:
        # Where translations go to the same terminal, they are the progress.
        self._shows_progress = progress and sys.stderr.isatty() and not sys.stdout.isatty()
        self._tells_engines = engines
        self._engines: set[str] = set()
        self._n_told = self._n_lines = 0
        self._started = self._shown = time.monotonic()
        self.n_spoilt = 0
        """Lines that could not be read."""

    def hear(self, written: Written) -> None:
        """What became of a line."""
        self.n_spoilt += written.spoilt
        if self._tells_engines and written.engine not in {*self._engines, ""}:
            self._engines.add(written.engine)
            self._say(f"engine: {written.engine}")
        for note in written.notes:
            self._tell(note)

    def progressed(self, n_lines: int) -> None:
        """So many lines more are done."""
        self._n_lines += n_lines
        now = time.monotonic()
        if self._shows_progress and now - self._shown > _OFTEN:
            self._shown = now
            speed = self._n_lines / (now - self._started)
            print(
                f"\r{self._n_lines:,} lines, {speed:,.0f} a second\033[K", end="", file=sys.stderr, flush=True
            )

    def end(self) -> None:
        """Say what was left out."""
        if self._shows_progress:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
        if self._n_told > MOST:
            self._say(f"{self._n_told - MOST:,} more like these")

    def _tell(self, problem: str) -> None:
        self._n_told += 1
        if self._n_told <= MOST:
            self._say(with_flags(problem))

    def _say(self, words: str) -> None:
        clear = "\r\033[K" if self._shows_progress else ""
        print(f"{clear}regard: {words}", file=sys.stderr, flush=True)
