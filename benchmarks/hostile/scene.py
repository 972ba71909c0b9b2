"""A scene: what its attackers send, from how many processes and addresses, and what they count."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.synchronize import Event
from typing import Any, NamedTuple, TypeAlias

from benchmarks.hostile.server import open_many_files
from benchmarks.hostile.watch import PATIENCE_S
from benchmarks.peers.http_client import Client

NICENESS = 10
"""Attackers yield to the server: on a network they would have cores of their own."""
JSON = "Content-Type: application/json"
CLOSED, CUT, NO_ANSWER, REFUSED, RESET = "closed", "cut", "no answer", "refused", "reset"
"""Ends without an answer: closed before it, or within; too late; no connection; reset."""
IN_STREAM = "500 in a stream"


class Reply(NamedTuple):
    """What became of a request."""

    outcome: str
    """The status, or how it ended without one."""
    status: int
    """0 if there was no whole answer."""
    content: bytes


@dataclass(frozen=True)
class Target:
    """The server as the attackers of a scene know it."""

    port: int
    addresses: tuple[str, ...]
    """Their own addresses."""
    texts: tuple[str, ...]
    """Short texts that the server can translate."""
    key: str = ""
    """A valid key, where the scene has keys."""
    trace: str = ""
    """The path of a large trace, where the scene wants one."""


@dataclass
class Tally:
    """What attackers have sent, and what they got."""

    sent: Counter[str] = field(default_factory=Counter)
    answers: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """By what was sent: how often each status, or another end."""
    broken: Counter[str] = field(default_factory=Counter)
    """What the scene does not allow."""
    notes: Counter[str] = field(default_factory=Counter)
    """What else is worth knowing."""

    def add(self, other: Tally) -> None:
        """Count what another process has counted."""
        self.sent += other.sent
        for what, outcomes in other.answers.items():
            self.answers[what] += outcomes
        self.broken += other.broken
        self.notes += other.notes


class Attacker:
    """One process of attackers."""

    def __init__(self, target: Target, number: int) -> None:
        self.target, self.number, self.tally = target, number, Tally()

    def client(self, i: int) -> Client:
        """A client at one of the addresses in turn."""
        addresses = self.target.addresses
        return Client(self.target.port, addresses[(i + self.number) % len(addresses)])

    async def ask(
        self,
        client: Client,
        what: str,
        data: bytes,
        allowed: Callable[[int], bool] = lambda _: True,
        patience: float = PATIENCE_S,
    ) -> Reply:
        """Send bytes and count the answer."""
        self.tally.sent[what] += 1
        status, content = 0, b""
        try:
            async with asyncio.timeout(patience):
                client.head = b""
                _, writer = await client.connect()
                writer.write(data)
                status, content = await client.answer()
                outcome = str(status)
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError) as error:
            outcome = _end(error, client)
            client.close()
        if status == 200 and b'"code":"internal"' in content[-4096:].replace(b" ", b""):
            outcome = IN_STREAM
        self.tally.answers[what][outcome] += 1
        if not allowed(status):
            self.tally.broken[f"{what}: {outcome}"] += 1
        if outcome == REFUSED:
            await asyncio.sleep(0.05)
        return Reply(outcome, status, content)

    async def forever(self, n: int, act: Callable[[Client, int], Awaitable[Any]]) -> None:
        """Let clients act again and again, each over a connection of its own; no two get the same number."""

        async def one(i: int) -> None:
            client = self.client(i)
            for turn in itertools.count(i, n):
                try:
                    await act(client, turn)
                except (OSError, asyncio.IncompleteReadError) as error:
                    self.tally.notes[_end(error, client)] += 1
                    client.close()
                    await asyncio.sleep(0.02)

        await asyncio.gather(*map(one, range(n)))


Attack: TypeAlias = Callable[[Attacker], Awaitable[None]]


@dataclass(frozen=True)
class Scene:
    """One way to attack."""

    name: str
    about: str
    """What is sent, for the table's legend."""
    attack: Attack | None
    """Runs in every process until its time is over; None for a scene that only stops the server."""
    stop: Attack | None = None
    """What goes on while the server is asked to stop, if anything."""
    processes: int = 2
    addresses: int = 4
    keys: bool = False
    """Whether the server wants keys."""
    trace: bool = False
    """Whether a large trace is made before."""


def run_attack(stop: Event, attack: Attack, target: Target, number: int) -> Tally:
    """Attack until told to stop; the process's main function."""
    os.nice(NICENESS)  # relative, as that of the threads of the server
    open_many_files()
    attacker = Attacker(target, number)

    async def until_told() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        attacking = asyncio.ensure_future(attack(attacker))
        while not stop.is_set() and not attacking.done():
            await asyncio.sleep(0.05)
        attacking.cancel()
        with suppress(asyncio.CancelledError):
            await attacking

    asyncio.run(until_told())
    return attacker.tally


def request(line: str, *headers: str, body: bytes | None = None, host: str | None = "localhost") -> bytes:
    """A request as bytes: method and path, and headers as they are written."""
    lines = [f"{line} HTTP/1.1", *([] if host is None else [f"Host: {host}"]), *headers]
    if body is not None:
        lines.append(f"Content-Length: {len(body)}")
    return "".join(f"{each}\r\n" for each in lines).encode("latin-1") + b"\r\n" + (body or b"")


def post(path: str, *headers: str, **fields: Any) -> bytes:
    """A POST of JSON."""
    return request(f"POST {path}", JSON, *headers, body=json.dumps(fields).encode())


def _end(error: Exception, client: Client) -> str:
    if isinstance(error, TimeoutError):
        return NO_ANSWER
    if isinstance(error, ConnectionRefusedError):
        return REFUSED
    if isinstance(error, ConnectionResetError | BrokenPipeError):
        return RESET
    if isinstance(error, asyncio.IncompleteReadError):
        return CUT if client.head or error.partial else CLOSED
    return type(error).__name__
