"""Scenes about connections: endless heads, slow bodies, slow readers, and connections in great numbers."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import struct
from itertools import count

from benchmarks.hostile.heavy import BODY
from benchmarks.hostile.scene import CLOSED, JSON, RESET, Attacker, Scene, post, request
from benchmarks.peers.http_client import Client

N_SLOW = 150
"""Connections of each of two processes."""
N_IDLE = 1500
BLOCK = 1 << 16
ESTABLISHED = 1
"""State of a TCP connection that nobody has closed, in Linux's `struct tcp_info`."""
AT_ONCE = 64
"""Connections that are opened at a time, below usual backlogs."""


# --- heads --------------------------------------------------------------------------------------------------

POST_CHUNKED = request("POST /api/v1/translate", JSON, "Transfer-Encoding: chunked")
ENDLESS = {
    "header line": (b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX-A: ", b"a" * BLOCK),
    "headers": (b"GET /livez HTTP/1.1\r\nHost: localhost\r\n", b"X-A: b\r\n" * (BLOCK // 8)),
    "headers of other names": (b"GET /livez HTTP/1.1\r\nHost: localhost\r\n", b""),
    "request line": (b"GET /", b"a" * BLOCK),
    "query": (b"GET /api/v1/neighbours?", b"text=a&" * (BLOCK // 7)),
    "method": (b"", b"A" * BLOCK),
    "empty lines": (b"", b"\r\n" * (BLOCK // 2)),
    "chunk extension": (POST_CHUNKED + b"1;", b"a" * BLOCK),
    "chunk extensions": (POST_CHUNKED, b"1;a=b\r\n1\r\n" * (BLOCK // 10)),
    "chunk size": (POST_CHUNKED, b"0" * BLOCK),
    "trailer": (POST_CHUNKED + b"0\r\nX-A: ", b"a" * BLOCK),
    "trailers": (POST_CHUNKED + b"0\r\n", b"X-A: b\r\n" * (BLOCK // 8)),
    "authorization": (
        b"GET /api/v1/models HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ",
        b"a" * BLOCK,
    ),
}
"""How an endless request begins, and what is sent again and again; without it, lines with a number."""


async def heads(attacker: Attacker) -> None:
    """Requests whose heads, chunks or trailers never end."""
    kinds = list(ENDLESS)

    async def send(client: Client, turn: int) -> None:
        what = kinds[turn % len(kinds)]
        start, block = ENDLESS[what]
        attacker.tally.sent[what] += 1
        reader, writer = await client.connect()
        writer.write(start)

        async def write() -> None:
            for n in count():
                writer.write(block or numbered(n))
                await writer.drain()
                attacker.tally.notes["blocks of 64 kB"] += 1

        reading, writing = asyncio.ensure_future(reader.read(BLOCK)), asyncio.ensure_future(write())
        await asyncio.wait([reading, writing], return_when="FIRST_COMPLETED")
        if not reading.done():
            await asyncio.wait([reading], timeout=1)  # an answer may come before a reset
        attacker.tally.answers[what][outcome_of(reading)] += 1
        for task in (reading, writing):
            task.cancel()
        await asyncio.gather(reading, writing, return_exceptions=True)
        client.close()

    await attacker.forever(20, send)


def outcome_of(reading: asyncio.Future[bytes]) -> str:
    """The status of an answer of which some bytes were read, or how the connection ended."""
    if not reading.done() or isinstance(reading.exception(), OSError):
        return RESET
    found = re.match(rb"HTTP/1.1 (\d+)", reading.result())
    return found[1].decode() if found else CLOSED


def numbered(block: int) -> bytes:
    """Headers of names that do not come twice."""
    return b"".join(b"X-%d: b\r\n" % i for i in range(block * 4096, block * 4096 + 4096))


# --- slow bodies --------------------------------------------------------------------------------------------


async def slow_bodies(attacker: Attacker) -> None:
    """Bodies that stall before, in or shortly before the end of the 2 MB that they declare."""
    headers = ["Authorization: Bearer wrong"] if attacker.number % 2 else []
    head = request("POST /api/v1/translate", JSON, *headers)[:-2] + b"Content-Length: %d\r\n\r\n" % BODY
    chunked = request("POST /api/v1/translate", JSON, *headers, "Transfer-Encoding: chunked")
    kinds = {
        "nothing": (head, b""),
        "all but the end": (head + b'{"text":"' + b"a" * (BODY - 20), b""),
        "a byte at a time": (head + b'{"text":"', b"a"),
        "a chunk at a time": (chunked, b"1\r\na\r\n"),
    }
    names = [*kinds, "all but the end", "all but the end"]  # which costs the server most

    async def send(client: Client, turn: int) -> None:
        what = names[turn % len(names)]
        start, piece = kinds[what]
        attacker.tally.sent[what] += 1
        _, writer = await client.connect()
        writer.write(start)
        answering = asyncio.ensure_future(client.answer())
        try:
            while not answering.done():
                if piece:
                    writer.write(piece)
                await asyncio.wait([answering], timeout=1)
            status, _ = answering.result()
            attacker.tally.answers[what][str(status)] += 1
        except (OSError, asyncio.IncompleteReadError):
            attacker.tally.answers[what][CLOSED] += 1
        finally:
            answering.cancel()
            client.close()
        await asyncio.sleep(0.2)

    await attacker.forever(N_SLOW, send)


# --- slow readers -------------------------------------------------------------------------------------------


async def slow_readers(attacker: Attacker) -> None:
    """Connections that ask for the largest answers, and read nothing or a byte a second."""
    path = attacker.target.trace
    large = {
        "trace file": request(f"GET {path}/file"),
        "attention": request(f"GET {path}/attention?kind=encoder&layer=1&head=*&dtype=f32"),
        "openapi.json 500 times": request("GET /openapi.json") * 500,
        "page 2,000 times": request("GET /") * 2_000,
        "walk 50 times": request(f"GET {path}/walk?kind=cross&layer=0&head=0&query=3") * 50,
        "stream": post("/api/v1/translate", text="\n".join(attacker.target.texts), stream=True),
    }
    names = list(large)
    gate = asyncio.Semaphore(AT_ONCE)

    async def read_slowly(i: int) -> None:
        what = names[i % len(names)]
        while True:
            async with gate:
                stranger = await plain_socket(attacker, i)
            attacker.tally.sent[what] += 1
            end = RESET
            try:
                await asyncio.get_running_loop().sock_sendall(stranger, large[what])
                end = await _a_byte_a_second(stranger) if i % 2 else await _nothing(stranger)
            except OSError:
                pass
            attacker.tally.answers[what][end] += 1
            stranger.close()

    await asyncio.gather(*map(read_slowly, range(N_SLOW)))


async def _a_byte_a_second(stranger: socket.socket) -> str:
    loop = asyncio.get_running_loop()
    while await loop.sock_recv(stranger, 1):
        await asyncio.sleep(1)
    return CLOSED


async def _nothing(stranger: socket.socket) -> str:
    """Wait until the server drops the connection; its state shows that without reading."""
    while stranger.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == ESTABLISHED:
        await asyncio.sleep(1)
    return "dropped"


async def plain_socket(attacker: Attacker, i: int) -> socket.socket:
    """A connection without a reader behind it, and with a small buffer; tries again until it is accepted."""
    loop, addresses = asyncio.get_running_loop(), attacker.target.addresses
    while True:
        stranger = socket.socket()
        stranger.setblocking(False)
        stranger.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        stranger.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        try:
            stranger.bind((addresses[i % len(addresses)], 0))
            await loop.sock_connect(stranger, ("127.0.0.1", attacker.target.port))
        except OSError:
            stranger.close()
            await asyncio.sleep(0.2)
        else:
            return stranger


# --- connections --------------------------------------------------------------------------------------------


async def connections(attacker: Attacker) -> None:
    """Thousands of idle connections; some that come and go; clients that leave in the middle of a stream."""
    await asyncio.gather(_idle(attacker), _come_and_go(attacker), _leave_streams(attacker))


async def _idle(attacker: Attacker) -> None:
    gate = asyncio.Semaphore(AT_ONCE)

    async def wait(i: int) -> None:
        while True:
            async with gate:
                stranger = await plain_socket(attacker, i)
            attacker.tally.sent["idle connection"] += 1
            try:
                end = "answered" if await asyncio.get_running_loop().sock_recv(stranger, 1) else CLOSED
            except OSError:
                end = RESET
            attacker.tally.answers["idle connection"][end] += 1
            stranger.close()
            await asyncio.sleep(1)

    await asyncio.gather(*map(wait, range(N_IDLE)))


async def _come_and_go(attacker: Attacker) -> None:
    for i in count():
        (await plain_socket(attacker, i)).close()
        attacker.tally.sent["connect and leave"] += 1
        attacker.tally.answers["connect and leave"]["left"] += 1
        await asyncio.sleep(0.002)


async def _leave_streams(attacker: Attacker) -> None:
    body = json.dumps({"text": "\n".join(attacker.target.texts[:20]), "stream": True}).encode()

    async def leave(client: Client, turn: int) -> None:
        attacker.tally.sent["leave a stream"] += 1
        reader, _ = await client.send("/api/v1/translate", body)
        await reader.readuntil(b"\r\n\r\n")
        if turn % 2:
            await reader.read(100)
        client.close()
        attacker.tally.answers["leave a stream"]["left"] += 1

    await attacker.forever(8, leave)


SCENES = (
    Scene("heads", "40 connections with endless lines, headers, chunk extensions, trailers", heads),
    Scene("slow-bodies", "300 connections with bodies of 2 MB that stall", slow_bodies),
    Scene("slow-bodies-keys", "the same without a key, at a server with keys", slow_bodies, keys=True),
    Scene(
        "slow-readers", "300 connections that ask for large answers and do not read", slow_readers, trace=True
    ),
    Scene("connections", "3,000 idle connections, others that come and go or leave streams", connections),
)
