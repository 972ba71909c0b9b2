"""The training that the page can start: a small translator of dates, in a process of its own.

Nothing of it comes from a request: the data are made here, and sizes and steps are fixed. The process has
a low priority and one thread; the server ends it after a while, and it ends itself when the server does.
"""

from __future__ import annotations

import os
import random
import secrets
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from regard.data.numerals.chinese import chinese_date
from regard.data.numerals.english import english_date
from regard.data.numerals.words import WEEKDAYS
from regard.serve.http.errors import ApiError

SETTINGS = {
    "model.vocab_size": 420,
    "training.max_steps": 240,
    "training.warmup_steps": 30,
    "training.learning_rate": 4e-3,
    "training.validate_every": 20,
    "training.checkpoint_every": 240,
}
"""Those of examples/dates.toml, with a validation every few seconds."""
PAIRS = 1200
NICENESS = 5
"""The process gets a quarter of a core that others use, and all of a free one."""
ENDING_S = 5.0
"""Seconds for the process to end by itself."""

Phase = Literal["none", "running", "finished", "stopped", "failed"]


class Demonstration:
    """The training of one server: at most one runs at a time, and the newest is kept."""

    def __init__(self, seconds: float) -> None:
        """`seconds` is the longest time that it may run."""
        self._seconds = seconds
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = self._closed = False
        self._began = self._ended = 0.0
        self._client = ""
        self.run = ""
        """The id of the newest run, another one each time, so that clients can cache what belongs to it."""
        self.folder: Path | None = None

    def start(self, client: str) -> None:
        """Start to train, and discard what was trained before.

        Raises:
            ApiError: a training is in progress.
        """
        with self._lock:
            if self._closed or self.phase == "running":
                message = "A model is being trained already, one at a time. Follow it, or stop it first."
                raise ApiError(409, message, code="training_in_progress")
            self._discard()
            place = Path(tempfile.mkdtemp(prefix="regard-dates-"))
            self.folder, self._client, self._stopped = place / "run", client, False
            self.run = f"dates-{secrets.token_hex(4)}"
            self._began, self._ended = time.monotonic(), 0.0
            with (place / "log.txt").open("wb") as log:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", "regard.serve.demonstration", str(place)],
                    stdin=subprocess.PIPE,  # its end tells the process to stop, also if this one is killed
                    stdout=log,
                    stderr=log,
                )
            threading.Thread(target=self._watch, args=(self._process,), daemon=True).start()

    def stop(self, client: str) -> None:
        """Stop the training that this client has started.

        Raises:
            ApiError: another client has started it.
        """
        with self._lock:
            if self.phase != "running":
                return
            if client != self._client:
                message = "Another client has started this training, and only that one can stop it."
                raise ApiError(403, message, code="not_yours")
            self._stopped = True
            process = self._process
        _end(process)

    def close(self) -> None:
        """End the process and delete its files."""
        with self._lock:
            self._closed = True
            _end(self._process, at_once=True)
            self._discard()

    @property
    def phase(self) -> Phase:
        """What the newest training does now."""
        if self._process is None:
            return "none"
        status = self._process.poll()
        if status is None:
            return "running"
        return "stopped" if self._stopped else "finished" if status == 0 else "failed"

    def to_json(self) -> dict[str, Any]:
        """Its phase, times and size, for the page."""
        until = self._ended or time.monotonic()
        return {
            "run": self.run or None,
            "phase": self.phase,
            "seconds": round(until - self._began, 1) if self._began else 0.0,
            "most_seconds": self._seconds,
            "steps": SETTINGS["training.max_steps"],
        }

    def _watch(self, process: subprocess.Popen[bytes]) -> None:
        """Wait for the end of the process, or end it when its time is over."""
        with suppress(subprocess.TimeoutExpired):
            process.wait(self._seconds)
        if process.poll() is None:
            self._stopped = True
            _end(process)
        if process is self._process:
            self._ended = time.monotonic()
        if process.stdin is not None:
            process.stdin.close()

    def _discard(self) -> None:
        if self.folder is not None:
            shutil.rmtree(self.folder.parent, ignore_errors=True)
            self.folder = None


def _end(process: subprocess.Popen[bytes] | None, *, at_once: bool = False) -> None:
    """Ask a process to end, and end it if it does not."""
    if process is None or process.poll() is not None:
        return
    if at_once:
        process.kill()
    assert process.stdin is not None
    with suppress(OSError):
        process.stdin.close()
    try:
        process.wait(ENDING_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def date_pairs(n: int, seed: int) -> list[tuple[str, str]]:
    """Different dates in Chinese and in English, with a weekday or without one."""
    days = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
    dates = [(month, day) for month, last in enumerate(days, 1) for day in range(1, last + 1)]
    pairs = []
    for month, day in dates:
        chinese, english = chinese_date(month, day), english_date(month, day)
        pairs.append((chinese, english))
        pairs += [(f"{chinese}{week.chinese}", f"{week.english}, {english}") for week in WEEKDAYS]
    return random.Random(seed).sample(pairs, n)


def main(place: Path) -> None:
    """Train in a folder until the end, or until the standard input ends."""
    from regard.training.run import train

    with suppress(AttributeError, OSError):
        os.nice(NICENESS)
    stop = threading.Event()

    def wait_for_the_server() -> None:
        # Unbuffered: a thread that holds the lock of a buffer would abort the interpreter at its end.
        while os.read(sys.stdin.fileno(), 64):
            pass
        stop.set()

    threading.Thread(target=wait_for_the_server, daemon=True).start()
    pairs = date_pairs(PAIRS, seed=1)
    files = [place / "dates.zh", place / "dates.en"]
    for i, file in enumerate(files):
        file.write_text("".join(f"{pair[i]}\n" for pair in pairs), encoding="utf-8")
    options: dict[str, Any] = {"preset": "numerals", "settings": SETTINGS, "device": "cpu", "threads": 1}
    train(*files, out=place / "run", stop=stop, **options)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
