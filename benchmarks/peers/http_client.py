"""Clients over bare sockets, so that the race measures servers: one connection each, kept open."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Sequence
from typing import Any


class Client:
    """One connection."""

    def __init__(self, port: int, source: str | None = None) -> None:
        """Connect on first use, from an address of this machine."""
        self._port = port
        self._source = None if source is None else (source, 0)
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self.head = b""
        """Status line and headers of the last answer."""

    async def post(self, path: str, body: bytes) -> tuple[int, bytes]:
        """Status and content of an answer."""
        await self.send(path, body)
        return await self.answer()

    async def send(self, path: str, body: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Ask, without waiting for the answer."""
        reader, writer = await self.connect()
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        return reader, writer

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """The connection, which is opened if needed."""
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port, local_addr=self._source)
        return self._streams

    async def answer(self) -> tuple[int, bytes]:
        """Status and content of the next answer."""
        reader, _ = await self.connect()
        self.head = b""
        head = await reader.readuntil(b"\r\n\r\n")
        self.head = head.lower()
        status = int(head.split(maxsplit=2)[1])
        if status < 200:
            return await self.answer()
        content = await self._content(reader, status)
        if b"\r\nconnection: close" in self.head:
            self.close()
        return status, content

    async def _content(self, reader: asyncio.StreamReader, status: int) -> bytes:
        before, given, length = self.head.partition(b"\r\ncontent-length:")
        if given:
            return await reader.readexactly(int(length.split(maxsplit=1)[0]))
        if b"\r\ntransfer-encoding: chunked" not in before:
            return b"" if status in (204, 304) else await reader.read()
        parts = []
        while size := int(await reader.readuntil(b"\r\n"), 16):
            parts.append(await reader.readexactly(size))
            await reader.readexactly(2)
        await reader.readuntil(b"\r\n")
        return b"".join(parts)

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
