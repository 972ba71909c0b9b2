"""The server under attack: a process, its memory and its log. Linux only, as it reads /proc."""

from __future__ import annotations

import re
import resource
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
START_S = 120.0
OPEN_FILES = 1024
"""Soft limit of open files, as in most shells. The server may raise it; attackers do."""


class Server:
    """`regard serve` in a process of its own."""

    def __init__(self, log: Path, *, keys: Path | None = None) -> None:
        """Start it, with the bundled model, and wait until it answers."""
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port: int = free.getsockname()[1]
        options = [] if keys is None else ["--keys", str(keys)]
        command = [sys.executable, "-m", "regard", "serve", "--port", str(self.port), *options]
        self._log = log
        with log.open("wb") as stderr:
            self._process = subprocess.Popen(command, cwd=ROOT, stderr=stderr, stdout=stderr)
        self._wait()

    @property
    def lives(self) -> bool:
        """Whether the process runs."""
        return self._process.poll() is None

    @property
    def exit_code(self) -> int | None:
        """Its exit code; negative for a signal, None while it runs."""
        return self._process.poll()

    @property
    def log_bytes(self) -> int:
        """Size of what it has written to its log."""
        return self._log.stat().st_size

    def memory(self) -> int:
        """Resident bytes of the process and its children; 0 after its end."""
        return sum(_resident(pid) for pid in _family(self._process.pid))

    def statuses(self) -> Counter[int]:
        """Answers by status as the server counts them, also those that no client has read."""
        found: Counter[int] = Counter()
        for code, n in re.findall(r'^regard_requests_total\{code="(\d+)".*\} (\S+)$', self._metrics(), re.M):
            found[int(code)] += int(float(n))
        return found

    def kept_bytes(self) -> int:
        """Size of the traces that it keeps on purpose, up to a limit."""
        found = re.search(r"^regard_trace_bytes (\S+)$", self._metrics(), re.M)
        return int(float(found[1])) if found else 0

    def terminate(self, patience: float) -> float | None:
        """Seconds from SIGTERM to the end; None if it had to be killed after `patience`."""
        started = time.monotonic()
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(patience)
        except subprocess.TimeoutExpired:
            self.kill()
            return None
        return time.monotonic() - started

    def kill(self) -> None:
        """End it at once."""
        self._process.kill()
        self._process.wait()

    def _metrics(self) -> str:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=20) as answer:
                return str(answer.read().decode())
        except OSError:
            return ""

    def _wait(self) -> None:
        end = time.monotonic() + START_S
        while time.monotonic() < end:
            assert self.lives, f"the server did not start: {self._log.read_text()}"
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}/readyz", timeout=5).read()
            except OSError:
                time.sleep(0.1)
            else:
                return
        self.kill()
        raise AssertionError("the server did not start in time")


def new_key(file: Path, name: str) -> str:
    """A new key of a key file."""
    command = [sys.executable, "-m", "regard", "serve", "--keys", str(file), "--new-key", name]
    output = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return output.split()[-1]


def limit_open_files() -> None:
    """Give processes that are started from now on the usual limit of open files."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(OPEN_FILES, hard), hard))


def open_many_files() -> None:
    """Allow this process as many connections as the system does."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _resident(pid: int) -> int:
    try:
        pages = Path(f"/proc/{pid}/statm").read_text().split()[1]
    except (OSError, IndexError):
        return 0
    return int(pages) * resource.getpagesize()


def _family(pid: int) -> list[int]:
    """A process and all that descend from it."""
    found = [pid]
    for parent in found:
        for task in Path(f"/proc/{parent}/task").glob("*/children"):
            try:
                found += map(int, task.read_text().split())
            except OSError:
                continue
    return found
