"""Scenes of values and messages that no good client sends. None may end in a 500 or in a cut stream."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from benchmarks.hostile.scene import CUT, IN_STREAM, JSON, Attacker, Scene, post, request
from benchmarks.peers.http_client import Client

HALF = "\ud83d"
"""A lone surrogate: JSON can express it, UTF-8 cannot."""
STRINGS = (
    HALF,
    f"猫{HALF}",
    "\udc00\ud800",
    "\0",
    "猫\0",
    "\ufeff",
    "\uffff",
    "",
    " ",
    "\u2028",
    "a" * 300,
)
NUMBERS = ("1e-300", "5e-324", "1e308", "1e999", "NaN", "Infinity", "-Infinity", "-1", "0", "0.5", "1e400")
LARGE = ("16", "17", "256", "2147483648", "9223372036854775808", "9" * 400, "9" * 5000, "true", '"1"', "null")
NATIVE, LIBRE, CHAT, COMPLETE = "/api/v1/translate", "/translate", "/v1/chat/completions", "/v1/completions"
STREAM = "encoder.layers.0.add_and_norm.1.output"
WIDTH = 384
"""d_model of the bundled model."""
FORM = "Content-Type: application/x-www-form-urlencoded"
FORM_DATA = "Content-Type: multipart/form-data; boundary=b"


async def odd(attacker: Attacker) -> None:
    """Odd strings and numbers in every field."""
    await in_turn(attacker, list(odd_requests()))


async def in_turn(attacker: Attacker, cases: list[tuple[str, bytes]], *, reuse: bool = True) -> None:
    """Send one after the other, each over a connection of its own or one that may have served others."""
    random.Random(1).shuffle(cases)

    async def send(client: Client, turn: int) -> None:
        what, data = cases[(turn + attacker.number * len(cases) // 2) % len(cases)]
        reply = await attacker.ask(client, what, data, lambda status: status != 500)
        is_stream = b"text/event-stream" in client.head
        if reply.outcome in (CUT, IN_STREAM) or (is_stream and not is_whole(reply.content)):
            attacker.tally.broken[f"{what}: a stream is cut, or has an internal error"] += 1
        if reply.status in (0, 400) or not reuse:
            client.close()  # what follows a malformed message has no meaning

    await attacker.forever(4, send)


def is_whole(stream: bytes) -> bool:
    """Whether a stream of events has an end."""
    return any(end in stream for end in (b"event: done", b"event: error", b"[DONE]", b'"error"'))


# --- odd values ---------------------------------------------------------------------------------------------


def odd_requests() -> Iterator[tuple[str, bytes]]:
    """What is odd, and the request."""
    for text in STRINGS:
        shown = f"{text[:6]!a} × {len(text)}"
        for what, path, fields in with_string(text):
            yield f"{path} {what} {shown}", post(path, **fields)
    for field, values in (
        *((each, NUMBERS) for each in ("temperature", "top_p", "min_p", "length_penalty", "deadline_ms")),
        *((each, LARGE) for each in ("beam", "n_best", "top_k", "seed", "deadline_ms", "text", "glossary")),
    ):
        for value in values:
            for sample in ("false", "true"):
                body = f'{{"text":"猫","sample":{sample},"{field}":{value}}}'
                yield f"{field} {value[:20]}", request(f"POST {NATIVE}", JSON, body=body.encode())
    for value in (*NUMBERS, *LARGE):
        for field in ("temperature", "top_p", "seed", "n", "max_tokens", "stop", "stream_options"):
            message = '"messages":[{"role":"user","content":"猫"}]'
            body = f'{{"model":"zh-en",{message},"stream":true,"{field}":{value}}}'
            yield f"openai {field} {value[:20]}", request(f"POST {CHAT}", JSON, body=body.encode())
    yield from odd_changes()
    yield from odd_ids()
    yield from odd_keys()
    yield from odd_bytes()


def with_string(text: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """A string in every field that takes one: the field, the path, the body."""
    for field in ("text", "source", "target", "prefix", "model", "glossary", "keep"):
        yield field, NATIVE, {"text": "猫", field: text}
    yield "texts", NATIVE, {"text": ["猫", text, "狗"], "alignment": True, "tokens": True, "scores": True}
    yield "row", NATIVE, {"text": {text: text}}
    yield "glossary key", NATIVE, {"text": f"猫{text[:99]}", "glossary": {text: "cat"}}
    yield "glossary value", NATIVE, {"text": "猫", "glossary": {"猫": text}}
    yield "keep list", NATIVE, {"text": f"猫{text[:99]}", "keep": [text]}
    yield "stream", NATIVE, {"text": f"{text}猫{text[:9]}", "stream": True}
    yield "stream of a search", NATIVE, {"text": f"{text}猫{text[:9]}", "stream": True, "beam": 2}
    yield "stream prefix", NATIVE, {"text": "猫", "prefix": text, "stream": True}
    yield "unknown field", NATIVE, {"text": "猫", text: 1}
    for field in ("q", "source", "target", "api_key", "format"):
        yield field, LIBRE, {"q": "猫", "source": "zh", "target": "en", field: text}
    for page in (
        f"<p>{text}</p>",
        f"<p title='{text}'>猫</p>",
        f"<{text}>猫",
        "&#xD83D;",
        "&#x110000;",
        "&#0;",
    ):
        yield "html", LIBRE, {"q": page, "source": "zh", "target": "en", "format": "html"}
    yield "detect", "/detect", {"q": [text, text]}
    yield "message", CHAT, {"model": "zh-en", "messages": [{"role": "user", "content": text}]}
    yield "part", CHAT, {"model": "zh-en", "messages": [{"role": "user", "content": [{"text": text}]}]}
    yield "role", CHAT, {"model": "zh-en", "messages": [{"role": text, "content": "猫"}]}
    yield "stop", COMPLETE, {"model": "zh-en", "prompt": "猫", "stop": [text], "stream": True}
    yield "prompt", COMPLETE, {"model": "zh-en", "prompt": text, "stream": True}
    yield "model", COMPLETE, {"model": text, "prompt": "猫"}
    yield "extra", COMPLETE, {"model": "zh-en", "prompt": "猫", "suffix": text}
    yield "score", "/api/v1/score", {"source": text, "target": text, "to": text}
    yield "tokenize", "/api/v1/tokenize", {"text": text}
    yield "prompt", "/api/v1/generate", {"prompt": text, "stop": [text]}
    yield "inputs", "/predict", {"inputs": text}
    yield "trace", "/api/v1/traces", {"source": text}
    yield "trace target", "/api/v1/traces", {"source": "猫", "target": text, "to": text}
    change = {"op": text, "at": text, "by": text, "head": text}
    yield "intervention", "/api/v1/traces", {"source": "猫", "target": "cat", "interventions": [change]}
    mean = {"op": "ablate", "at": STREAM, "by": "mean", "texts": [text]}
    yield "ablate", "/api/v1/ablate", {"source": "猫", "target": text, "interventions": [[mean]]}


def odd_changes() -> Iterator[tuple[str, bytes]]:
    """Interventions that overflow, or that have no values or those of another shape."""
    values: tuple[Any, ...] = ([], [[]], [[1]], [[1e308] * WIDTH], [[0.0] * WIDTH], [["a"] * WIDTH], None, 1)
    for value in values:
        for scale in (1, 1e308, -1e308, float("inf"), float("nan")):
            change = {"op": "add", "at": STREAM, "values": value, "scale": scale}
            what = f"add {str(value)[:12]} × {scale}"
            yield what, post("/api/v1/traces", source="猫", target="cat", interventions=[change])
            yield what, post("/api/v1/traces", source="猫", interventions=[change])
            yield what, post("/api/v1/ablate", source="猫", interventions=[[change]])
    for change in (
        {"op": "pin", "kind": "encoder", "layer": 0, "head": 0, "query": 10**30, "key": -1},
        {"op": "head-off", "kind": "cross", "layer": -1, "head": 10**9},
        {"op": "mask-source", "token": 2**63},
        {"op": "patch", "at": STREAM, "trace": "x" * 9000},
        {"op": "skip-block", "kind": {}, "layer": None},
    ):
        yield str(change)[:40], post("/api/v1/traces", source="猫", target="cat", interventions=[change])


def odd_ids() -> Iterator[tuple[str, bytes]]:
    """Ids, indices and paths out of range."""
    for ids in (
        "[]",
        "[-1]",
        "[0]",
        "[23999]",
        "[24000]",
        "[2147483647]",
        f"[{10**30}]",
        '["a"]',
        "[null]",
        "[1.5]",
    ):
        for path, field, rest in (
            ("/api/v1/detokenize", "ids", ""),
            ("/api/v1/traces", "target", ',"source":"猫"'),
            ("/api/v1/traces", "prefix", ',"source":"猫"'),
            ("/api/v1/ablate", "target", ',"source":"猫"'),
        ):
            body = f'{{"{field}":{ids}{rest}}}'.encode()
            yield f"{path} {field} {ids[:20]}", request(f"POST {path}", JSON, body=body)
    for path in (
        *("positions?length=-1", "positions?length=0", "positions?length=99999999999999999999"),
        *("neighbours?text=", "neighbours?text=%ED%A0%80", "neighbours?text=%FF", "neighbours?text=%00&n=0"),
        *(
            "models/%ED%A0%80",
            "models/..%2F..%2Fetc",
            "traces/%00",
            "traces/x/walk",
            "traces/x/influence?row=-1",
        ),
        *("positions?model=%FF", "positions?model=" + "a" * 9000, "runs/..%2F..", "experiments?x=%FF", "%FF"),
    ):
        yield path[:40], request(f"GET /api/v1/{path}")
    for path in (
        "/page/x/..%2F..%2Fetc%2Fpasswd",
        "/page/%FF/%00",
        "/download_file/%ED%A0%80",
        "//",
        "/%2e%2e/",
    ):
        yield path, request(f"GET {path}")
        yield f"OPTIONS {path}", request(f"OPTIONS {path}")


def odd_keys() -> Iterator[tuple[str, bytes]]:
    """`api_key` of every type, and odd credentials."""
    for key in ("1", "[]", "{}", "null", "true", "1e999", f'"{"k" * 9000}"', '"\\ud83d"', "[[1]]"):
        for path in (LIBRE, "/detect"):
            body = f'{{"q":"猫","source":"zh","target":"en","api_key":{key}}}'.encode()
            yield f"{path} api_key {key[:10]}", request(f"POST {path}", JSON, body=body)
    for value in ("Bearer", "Bearer ", "Bearer \xff\xfe", "Basic YTpi", "bearer a b c", "\xa0"):
        yield f"Authorization {value!r}", request("GET /api/v1/models", f"Authorization: {value}")


def odd_bytes() -> Iterator[tuple[str, bytes]]:
    """Bodies that are not what their type says."""
    bodies = {
        "empty": b"",
        "null": b"null",
        "list": b"[]",
        "string": b'"a"',
        "invalid UTF-8": b'{"text":"\xff\xfe","q":"\xed\xa0\x80"}',
        "UTF-16": '{"text":"猫","q":"猫"}'.encode("utf-16"),
        "UTF-32": '{"text":"猫","q":"猫"}'.encode("utf-32"),
        "byte order mark": b'\xef\xbb\xbf{"text":"a"}',
        "NUL": b'{"text":"a\0"}',
        "two values": b'{"text":"a"}{"text":"b"}',
        "twice a field": b'{"text":"a","text":"b"}',
        "unfinished": b'{"text":"a',
        "unfinished escape": b'{"text":"\\ud83',
        "form": b"q=%FF%FE&source=%00&target=%ED%A0%80&api_key=a&api_key=b",
        "form of bytes": b"q=\xff&source=\0&target=en",
        "parts": b'--b\r\nContent-Disposition: form-data; name="file"; filename="\xff\0.txt"\r\n\r\n\xff',
    }
    kinds = (JSON, FORM, FORM_DATA, "Content-Type: application/json; charset=utf-16", "Content-Type: \xff")
    for what, body in bodies.items():
        for kind in kinds:
            for path in (NATIVE, LIBRE, "/translate_file", "/detect", CHAT, "/predict"):
                yield f"{path} {what} as {kind[14:40]!r}", request(f"POST {path}", kind, body=body)


SCENES = (Scene("odd", "surrogates, NUL, NaN, huge and tiny numbers in every field", odd),)
