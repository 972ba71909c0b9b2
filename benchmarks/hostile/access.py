"""Scenes about who may ask: pages of other sites, wrong keys, and requests to a server that stops."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Callable, Iterator

from benchmarks.hostile.heavy import OUTPUT, SENTENCE, TRACED, greedy_request
from benchmarks.hostile.scene import CLOSED, CUT, JSON, RESET, Attacker, Scene, post, request
from benchmarks.hostile.strange import FORM, FORM_DATA, odd_keys
from benchmarks.peers.http_client import Client

Allowed = Callable[[int], bool]
EVIL = "http://evil.example"
RATE = 600
"""Requests a minute that a key has, as documented."""


# --- other sites --------------------------------------------------------------------------------------------


async def cross_site(attacker: Attacker) -> None:
    """What a page of another site can have a browser send; and what must still work."""
    cases = list(cross_site_requests(attacker.target.port))
    random.Random(attacker.number).shuffle(cases)

    async def send(client: Client, turn: int) -> None:
        await attacker.ask(client, *(case := cases[turn % len(cases)]))
        if b"access-control-allow-origin" in client.head:
            attacker.tally.broken[f"{case[0]}: Access-Control-Allow-Origin"] += 1
        client.close()
        await asyncio.sleep(0.05)  # within any limit of rates, so that a refusal has its own reason

    await attacker.forever(2, send)


def refused(status: int) -> bool:
    """A refusal; not that there is no such route."""
    return 400 <= status < 500 and status not in (404, 405, 409)


def allowed(status: int) -> bool:
    """An answer to a request that is in order, on a server that may be busy."""
    return status in (200, 429, 503)


def cross_site_requests(port: int) -> Iterator[tuple[str, bytes, Allowed]]:
    """What is sent, the request, and which status is right."""
    host = f"localhost:{port}"
    own = f"http://{host}"
    foreign = {
        "foreign origin": [f"Origin: {EVIL}"],
        "origin null": ["Origin: null"],
        "same host, other port": [f"Origin: http://localhost:{port + 1}", "Sec-Fetch-Site: same-site"],
        "own origin and more": [f"Origin: {own}.evil.example"],
        "Sec-Fetch-Site: cross-site": ["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors"],
        "Sec-Fetch-Site: same-site": ["Sec-Fetch-Site: same-site"],
    }
    for who, headers in foreign.items():
        for what, line, more, body in work():
            yield f"{what}, {who}", request(line, *more, *headers, body=body, host=host), refused
    for what, line, more, body in work():
        if more == [JSON] or body is None:
            headers = [f"Origin: {own}", "Sec-Fetch-Site: same-origin"]
            yield f"{what}, own page", request(line, *more, *headers, body=body, host=host), allowed
            yield f"{what}, no browser", request(line, *more, body=body), allowed
    yield "form, no browser", request("POST /translate", FORM, body=b"q=a&source=en&target=zh"), allowed
    text = json.dumps({"q": "a", "source": "en", "target": "zh", "text": "a"}).encode()
    for path in ("/translate", "/api/v1/translate", "/detect"):
        for kind in (
            [],
            ["Content-Type: text/plain"],
            ["Content-Type: application/jsonp"],
            ["Content-Type: x"],
        ):
            what = f"POST {path} of {kind[0] if kind else 'no type'}"
            yield what, request(f"POST {path}", *kind, body=text), refused
    line = "POST /translate"
    for other in ("evil.example", f"evil.example:{port}", "localhost.evil.example", "localhost@evil.example"):
        yield f"Host: {other}", request(line, JSON, body=text, host=other), refused
    yield "a second Host", request(line, JSON, "Host: evil.example", body=text), refused
    yield (
        "a second Host, first",
        request(line, "Host: localhost", JSON, body=text, host="evil.example"),
        refused,
    )
    yield "no Host", request(line, JSON, body=text, host=None), refused
    for named in ("evil.example", host):
        absolute = request(f"POST {EVIL}/translate", JSON, body=text, host=named)
        yield f"absolute URL, Host: {named.partition(':')[0]}", absolute, refused
    preflight = ["Access-Control-Request-Method: POST", "Access-Control-Request-Headers: content-type"]
    data = request("OPTIONS /api/v1/translate", f"Origin: {EVIL}", *preflight)
    yield "preflight", data, lambda status: 400 <= status < 500


def work() -> Iterator[tuple[str, str, list[str], bytes | None]]:
    """Requests that make the server work: what, the first line, headers, the body."""
    fields = {"q": SENTENCE, "source": "zh", "target": "en"}
    chat = {"model": "zh-en", "messages": [{"role": "user", "content": SENTENCE}]}
    for path, body in (
        ("/translate", fields),
        ("/detect", {"q": SENTENCE}),
        ("/api/v1/translate", {"text": SENTENCE}),
        ("/api/v1/tokenize", {"text": SENTENCE}),
        ("/v1/chat/completions", chat),
    ):
        yield f"POST {path}", f"POST {path}", [JSON], json.dumps(body).encode()
    text = json.dumps(fields).encode()
    yield "text/plain", "POST /translate", ["Content-Type: text/plain"], text
    yield "form", "POST /translate", [FORM], b"q=a&source=en&target=zh"
    yield "no type", "POST /translate", [], text
    part = b'--b\r\nContent-Disposition: form-data; name="q"\r\n\r\na\r\n--b--\r\n'
    yield "form data", "POST /translate", [FORM_DATA], part
    for path in ("/api/v1/neighbours?text=a", "/api/v1/positions?length=7"):
        yield f"GET {path}", f"GET {path}", [], None


# --- keys ---------------------------------------------------------------------------------------------------


async def wrong_keys(attacker: Attacker) -> None:
    """Guesses of keys and requests without one, as fast as they go; one valid key beyond its rate."""
    chance, started = random.Random(attacker.number), time.monotonic()
    odd = [data for _, data in odd_keys()]

    async def guess(client: Client, turn: int) -> None:
        key = f"regard-{chance.getrandbits(256):064x}"
        in_body = post("/translate", q="a", source="en", target="zh", api_key=key)
        what, data = (
            ("wrong key", request("GET /api/v1/models", f"Authorization: Bearer {key}")),
            ("wrong key", in_body),
            ("no key", request("GET /api/v1/models")),
            ("odd key", odd[turn // 4 % len(odd)]),
        )[turn % 4]
        await attacker.ask(client, what, data, lambda status: status not in (200, 500))

    async def spend(client: Client, _turn: int) -> None:
        data = request("GET /api/v1/models", f"Authorization: Bearer {attacker.target.key}")
        await attacker.ask(client, "valid key", data)

    try:
        await asyncio.gather(attacker.forever(16, guess), attacker.forever(2, spend))
    finally:
        answers = attacker.tally.answers
        if answers["wrong key"]["429"] < answers["wrong key"].total() / 2:
            attacker.tally.broken["wrong key: most are not answered 429"] += 1
        if answers["valid key"]["200"] > RATE * (1.1 + (time.monotonic() - started) / 60):
            attacker.tally.broken[f"valid key: more than {RATE} requests a minute"] += 1


# --- a server that stops ------------------------------------------------------------------------------------

LOST = (RESET, CLOSED, CUT)


async def working(attacker: Attacker) -> None:
    """Good requests, one after the other, each to be answered; and connections that do nothing."""
    idle = [attacker.client(i) for i in range(30)]
    for client in idle:
        await client.connect()
    data = [post("/api/v1/translate", text=text) for text in attacker.target.texts]

    async def send(client: Client, turn: int) -> None:
        reader, _ = await client.connect()
        if reader.at_eof():
            client.close()  # closed while idle, before a request was sent
            return
        await _answered(attacker, client, "short text", data[turn % len(data)])
        if turn % 5 == 0:
            client.close()

    await attacker.forever(16, send)


async def endless_work(attacker: Attacker) -> None:
    """The largest work of each kind, so that much of it is unfinished at the end."""
    terms = {f"term{i}": "t" for i in range(100_000)}
    requests = (
        ("greedy", greedy_request(attacker.target.texts, attacker.number)),
        ("trace", post("/api/v1/traces", source=TRACED, target=OUTPUT)),
        ("every head", post("/api/v1/ablate", source=TRACED, target=OUTPUT, effects=True)),
        ("glossary", post("/api/v1/translate", text=SENTENCE, glossary=terms)),
        ("stream", post("/api/v1/translate", text=SENTENCE * 500, stream=True)),
    )

    async def send(client: Client, turn: int) -> None:
        await _answered(attacker, client, *requests[turn % len(requests)])

    await attacker.forever(10, send)


async def _answered(attacker: Attacker, client: Client, what: str, data: bytes) -> None:
    reply = await attacker.ask(client, what, data)
    if reply.outcome in LOST:
        attacker.tally.broken[f"{what}: {reply.outcome} instead of answered"] += 1


SCENES = (
    Scene("cross-site", "what pages of other sites can send: origins, types, hosts", cross_site),
    Scene("wrong-keys", "32 clients that guess keys, 4 that exceed the rate of one", wrong_keys, keys=True),
    Scene("stop", "SIGTERM while 32 clients send and 60 connections are idle", None, stop=working),
    Scene(
        "stop-large",
        "SIGTERM while the largest work of each kind is in progress",
        None,
        stop=endless_work,
    ),
)
