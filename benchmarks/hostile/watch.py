"""What is measured beside an attack: `/livez`, honest clients and memory, each apart from the attackers.

The probe and the honest clients are processes of their own, so that work of the attackers does not count as
the server's, except for the cores that they share.
"""

from __future__ import annotations

import http.client
import json
import multiprocessing
import select
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Event
from typing import Any

from benchmarks.hostile.server import Server

PROBE_S = 0.05
"""Seconds between probes of `/livez`."""
PAUSE_S = 0.4
"""Seconds that an honest client pauses: two clients stay below 600 requests a minute."""
N_HONEST = 2
PATIENCE_S = 75.0
"""Seconds that a client waits for an answer: longer than the server's deadline."""
BEGIN_S = 60.0
SAMPLE_S = 0.1
STOP_BYTES, KILL_BYTES = 3 << 30, 6 << 30
"""Memory of the server at which attackers are stopped, and at which it is killed, to spare this machine."""
CONTEXT = multiprocessing.get_context("spawn")


class Worker:
    """A function in a process of its own; it gets an event that tells it to stop, and returns a result."""

    def __init__(self, function: Callable[..., Any], *args: Any) -> None:
        self._begun, self._stop = CONTEXT.Event(), CONTEXT.Event()
        self._received, sender = CONTEXT.Pipe(duplex=False)
        everything = (function, sender, self._begun, self._stop, *args)
        self._process = CONTEXT.Process(target=_work, args=everything, daemon=True)
        self._process.start()
        sender.close()

    def wait_until_begun(self) -> None:
        """Wait until the process has been started, which takes a while on a busy machine."""
        self._begun.wait(BEGIN_S)

    def ask_to_stop(self) -> None:
        """Tell it to stop, without waiting."""
        self._stop.set()

    def result(self, patience: float = PATIENCE_S + 10) -> Any:
        """Its result, after it was told to stop; None if there is none in time."""
        self._stop.set()
        try:
            found = self._received.recv() if self._received.poll(patience) else None
        except EOFError:
            found = None
        self._process.join(5)
        self._process.kill()
        return found


def _work(function: Callable[..., Any], sender: Connection, begun: Event, stop: Event, *args: Any) -> None:
    begun.set()
    sender.send(function(stop, *args))


# --- liveness -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Probe:
    """One request to `/livez`, over a connection of its own."""

    started: float
    seconds: float
    problem: str = ""


def probe(stop: Event, port: int) -> list[Probe]:
    """Ask for `/livez` again and again, at least once."""
    probes = []
    while True:
        started, problem = time.monotonic(), ""
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
        try:
            connection.request("GET", "/livez", headers={"Connection": "close"})
            answer = connection.getresponse()
            answer.read()
            if answer.status != 200:
                problem = str(answer.status)
        except (OSError, http.client.HTTPException) as error:
            problem = type(error).__name__
        finally:
            connection.close()
        probes.append(Probe(started, time.monotonic() - started, problem))
        if stop.wait(PROBE_S):
            return probes


# --- honest clients -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Answer:
    """What an honest client got."""

    seconds: float
    outcome: str
    """`right`, `another` (not what the quiet server gave), `mixed up` (another text's) or a problem."""


RIGHT, ANOTHER, MIXED_UP = "right", "another", "mixed up"


def honest(stop: Event, port: int, key: str, texts: Sequence[str], expected: Sequence[str]) -> list[Answer]:
    """Translate short texts, one after the other, by some clients; each at least once."""
    answers: list[Answer] = []

    def client(number: int) -> None:
        connection = HonestClient(port, key)
        i = number * len(texts) // N_HONEST
        while True:
            started = time.monotonic()
            outcome = judge(connection.translate(texts[i % len(texts)]), i % len(texts), expected)
            answers.append(Answer(time.monotonic() - started, outcome))
            i += 1
            if stop.wait(PAUSE_S):
                return

    threads = [threading.Thread(target=client, args=(number,)) for number in range(N_HONEST)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def judge(answer: str | int, i: int, expected: Sequence[str]) -> str:
    """What to say of the answer to text `i`: a translation, or a status, or 0 for none."""
    if isinstance(answer, int):
        return str(answer or "no answer")
    if answer == expected[i]:
        return RIGHT
    return MIXED_UP if answer in expected else ANOTHER


class HonestClient:
    """A connection that is kept open, and opened again if the server has closed it between requests."""

    def __init__(self, port: int, key: str = "") -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
        self._headers = {"Content-Type": "application/json"}
        if key:
            self._headers["Authorization"] = f"Bearer {key}"

    def translate(self, text: str) -> str | int:
        """The translation; a status if there was none, or 0 without an answer."""
        status, content = self.post("/api/v1/translate", {"text": text})
        if status != 200:
            return status
        translation: str = json.loads(content)["items"][0]["text"]
        return translation

    def post(self, path: str, fields: dict[str, Any]) -> tuple[int, bytes]:
        """Status and content of an answer; status 0 if there was none."""
        return self._request("POST", path, json.dumps(fields).encode())

    def get(self, path: str) -> tuple[int, bytes]:
        """The same for a GET."""
        return self._request("GET", path, None)

    def _request(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes]:
        socket = self._connection.sock
        if socket is not None and select.select([socket], [], [], 0)[0]:
            self._connection.close()  # the server has closed it
        try:
            self._connection.request(method, path, body, self._headers)
            answer = self._connection.getresponse()
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException):
            self._connection.close()
            return 0, b""


# --- memory -------------------------------------------------------------------------------------------------


class MemoryWatch:
    """Samples the memory of a server in a thread, and stops those who would take all of this machine's."""

    def __init__(self, server: Server) -> None:
        self.peak = server.memory()
        self.stopped = ""
        """Why attackers were stopped before their time, if they were."""
        self._server, self._attackers = server, list[Worker]()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def guard_against(self, attackers: Sequence[Worker]) -> None:
        """Stop these if the server grows too large."""
        self._attackers = list(attackers)

    def close(self) -> None:
        """Stop sampling."""
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(SAMPLE_S):
            now = self._server.memory()
            self.peak = max(self.peak, now)
            if now > STOP_BYTES and not self.stopped:
                self.stopped = f"attack stopped at {STOP_BYTES >> 30} GiB"
                for each in self._attackers:
                    each.ask_to_stop()
            if now > KILL_BYTES and self._server.lives:
                self.stopped = f"server killed by the benchmark at {KILL_BYTES >> 30} GiB"
                self._server.kill()
