"""Clients over bare sockets, so that the race measures servers: one connection each, kept open."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Sequence
from typing import Any


class Client:
    """One connection."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def post(self, path: str, body: bytes) -> tuple[int, bytes]:
        """Status and content of an answer."""
        reader, _ = await self.send(path, body)
        head = await reader.readuntil(b"\r\n\r\n")
        lines = head.decode().lower().split("\r\n")
        length = next(int(line[15:]) for line in lines if line.startswith("content-length:"))
        return int(lines[0].split()[1]), await reader.readexactly(length)

    async def send(self, path: str, body: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Ask, without waiting for the answer."""
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        self._streams[1].write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        return self._streams

    def close(self) -> None:
        """Hang up, whatever is on its way."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


async def ask_all(
    port: int, texts: Sequence[str], n_clients: int, outputs: Callable[[Any], list[str]]
) -> tuple[list[str], list[float]]:
    """What a server answers to all texts, and the seconds of each; an answered client asks at once again."""
    found: list[str] = [""] * len(texts)
    seconds: list[float] = []
    waiting = iter(range(len(texts)))

    async def client() -> None:
        connection = Client(port)
        for i in waiting:
            body = json.dumps({"text": texts[i]}).encode()
            started = time.perf_counter()
            status, content = await connection.post("/api/v1/translate", body)
            seconds.append(time.perf_counter() - started)
            assert status == 200, (status, content)
            (found[i],) = outputs(json.loads(content))
        connection.close()

    await asyncio.gather(*(client() for _ in range(n_clients)))
    return found, seconds
