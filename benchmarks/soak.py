"""Mixed load for minutes: good and bad requests, clients that leave; no surprise, and memory stays flat."""

from __future__ import annotations

import asyncio
import json
import random
import re
import time
import urllib.request
from collections import Counter
from collections.abc import Sequence

from benchmarks.peers.http_client import Client

CLIENTS = 32
WARM_UP = 0.3
"""Share of the time after which memory must stay where it is …"""
GROWTH = 0.05
"""… but for this share of it."""
LOOK_S = 2.0
OTHER = "another answer than offline"
TIPPED = 0.01
"""Share of answers that rounding in batches of other shapes may change at int8."""


async def soak(port: int, texts: Sequence[str], expected: Sequence[str], seconds: float) -> int:
    """Load a server, report, and return 1 if something was not as it should be."""
    end = time.monotonic() + seconds
    done: Counter[str] = Counter()
    wrong: list[str] = []
    memory: list[tuple[float, float]] = []

    async def watch() -> None:
        while time.monotonic() < end:
            memory.append((time.monotonic(), await asyncio.to_thread(_memory, port)))
            await asyncio.sleep(LOOK_S)

    async def client(number: int) -> None:
        chance, connection = random.Random(number), Client(port)
        while time.monotonic() < end:
            (act,) = chance.choices(ACTS, WEIGHTS)
            i = chance.randrange(len(texts))
            try:
                problem = await act(connection, texts[i], expected[i])
            except Exception as error:
                problem = f"{type(error).__name__}: {error}"
                connection.close()
            done[act.__name__] += 1
            if problem:
                wrong.append(f"{act.__name__}: {problem}")
        connection.close()

    await asyncio.gather(watch(), *(client(number) for number in range(CLIENTS)))
    return _report(done, wrong, memory, end - seconds + WARM_UP * seconds)


def _report(done: Counter[str], wrong: list[str], memory: list[tuple[float, float]], warm: float) -> int:
    for name, n in done.most_common():
        print(f"{n:8,} {name}")
    for problem, n in Counter(wrong).most_common(10):
        print(f"{n:8,} times {problem}")
    later = [size for moment, size in memory if moment >= warm]
    growth = max(later[-3:]) / later[0] - 1
    print(f"memory: {later[0] / 1e6:.0f} MB when warm, {later[-1] / 1e6:.0f} MB at the end: {growth:+.1%}")
    tipped = sum(problem.endswith(OTHER) for problem in wrong)
    return int(len(wrong) > tipped or tipped > TIPPED * done["good"] or growth > GROWTH)


# --- what clients do: each returns what was wrong with the answer -------------------------------------------


async def good(connection: Client, text: str, expected: str) -> str | None:
    status, content = await connection.post("/api/v1/translate", _body(text=text))
    if status != 200:
        return str(status)
    return None if json.loads(content)["items"][0]["text"] == expected else OTHER


async def like_libretranslate(connection: Client, text: str, expected: str) -> str | None:
    body = _body(q=[text, text], source="auto", target="en")
    status, content = await connection.post("/translate", body)
    if status == 400:
        return None  # a text that does not tell its language
    answers = json.loads(content)["translatedText"]
    return None if answers in ([expected] * 2, [text] * 2) else OTHER


async def no_json(connection: Client, text: str, _expected: str) -> str | None:
    status, _ = await connection.post("/api/v1/translate", text.encode()[:-1])
    return None if status in (400, 422) else str(status)


async def too_long(connection: Client, text: str, _expected: str) -> str | None:
    status, _ = await connection.post("/api/v1/translate", _body(text=text * 200_000)[: 1 << 20])
    return None if status in (400, 413) else str(status)


async def bad_value(connection: Client, text: str, _expected: str) -> str | None:
    status, _ = await connection.post("/api/v1/translate", _body(text=text, beam=-1))
    return None if status == 422 else str(status)


async def leaving(connection: Client, text: str, _expected: str) -> str | None:
    await connection.send("/api/v1/translate", _body(text=text))
    connection.close()
    return None


async def leaving_a_stream(connection: Client, text: str, _expected: str) -> str | None:
    reader, _ = await connection.send("/api/v1/translate", _body(text=text, stream=True))
    head = await reader.readuntil(b"\r\n\r\n")
    connection.close()
    return None if b" 200 " in head else head.decode()


async def looking(connection: Client, text: str, _expected: str) -> str | None:
    body = _body(source=text.split("\n")[0], target=text[:20])
    status, _ = await connection.post("/api/v1/traces", body)
    return None if status in (201, 503, 504) else str(status)  # it comes after all translations


ACTS = (good, like_libretranslate, no_json, too_long, bad_value, leaving, leaving_a_stream, looking)
WEIGHTS = (70, 8, 4, 2, 4, 5, 5, 2)


def _body(**fields: object) -> bytes:
    return json.dumps(fields).encode()


def _memory(port: int) -> float:
    """Memory of the server, without the traces that it keeps on purpose and up to a limit."""
    metrics = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60).read().decode()
    found = dict(re.findall(r"^(regard_\w+_bytes) (\S+)$", metrics, re.MULTILINE))
    return float(found["regard_memory_bytes"]) - float(found["regard_trace_bytes"])
