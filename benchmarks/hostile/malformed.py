"""Scenes of messages that are not HTTP, and of pages and forms that are hard to read."""

from __future__ import annotations

import json
from collections.abc import Iterator

from benchmarks.hostile.scene import JSON, Attacker, Scene, post, request
from benchmarks.hostile.strange import FORM, FORM_DATA, LIBRE, NATIVE, in_turn


async def malformed(attacker: Attacker) -> None:
    """Messages that are not HTTP, or that two readers would understand differently."""
    await in_turn(attacker, list(malformed_requests()), reuse=False)


async def pages(attacker: Attacker) -> None:
    """HTML and forms that are deep, long, unclosed or of very many parts."""
    await in_turn(attacker, list(odd_pages()))


# --- pages --------------------------------------------------------------------------------------------------


def odd_pages() -> Iterator[tuple[str, bytes]]:
    """What is odd, and the request."""
    documents = {
        "deep": "<b>" * 16_000 + "猫" + "</b>" * 16_000,
        "deep and unclosed": "<div>" * 19_000,
        "closed only": "</p>" * 24_000,
        "attributes": "<p " + "a=1 " * 24_000 + ">猫",
        "one attribute": f"<p title='{'a' * 99_000}'>猫",
        "unclosed attribute": "<p title='" + "a<" * 49_000,
        "comments": "<!--" * 24_000,
        "declarations": "<!" * 49_000,
        "processing": "<?" * 49_000,
        "brackets": "<" * 99_000,
        "entities": "&amp;" * 19_000,
        "half entities": "&#x" * 33_000,
        "scripts": "<script>" * 12_000,
        "code": "<pre>猫</pre>" * 8_000,
        "paragraphs": "<p>猫" * 20_000,
        "inline": "<p>" + "<i>猫</i>" * 12_000,
        "tables": "<table><tr><td>" * 6_000,
    }
    for what, text in documents.items():
        data = post(LIBRE, q=text, source="zh", target="en", format="html")
        yield f"html, {what}", data
        yield f"file, {what}", _file(f"{what}.html", text.encode())
    for name in (
        "../../etc/passwd.txt",
        "a" * 30_000 + ".txt",
        ".txt",
        "a.html.exe",
        "\\\\host\\a.txt",
        "CON.txt",
    ):
        yield f"file name {name[:20]}", _file(name, "猫".encode())
    part = b'--b\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n'
    yield "many parts", request("POST /translate_file", FORM_DATA, body=part * 30_000 + b"--b--")
    yield "many parts of a form", request(f"POST {LIBRE}", FORM_DATA, body=part * 30_000 + b"--b--")
    long = b"--b\r\nX: " + b"a" * 1_500_000
    yield "a long head of a part", request("POST /translate_file", FORM_DATA, body=long)
    heads = b"--b\r\n" + b"X: a\r\n" * 200_000
    yield "many heads of a part", request("POST /translate_file", FORM_DATA, body=heads)
    yield "a long boundary", request("POST /translate_file", FORM_DATA + "b" * 8_000, body=b"--b" * 500_000)
    yield "many fields", request(f"POST {LIBRE}", FORM, body=b"a=&" * 600_000)
    yield "one field", request(f"POST {LIBRE}", FORM, body=b"q=" + b"%E7" * 600_000)
    yield "a field again and again", request(f"POST {LIBRE}", FORM, body=b"q=a&" * 900)


def _file(name: str, content: bytes) -> bytes:
    parts = [("source", b"zh"), ("target", b"en"), (f'file"; filename="{name}', content)]
    body = b"".join(
        f'--b\r\nContent-Disposition: form-data; name="{field}"\r\n\r\n'.encode() + value + b"\r\n"
        for field, value in parts
    )
    return request("POST /translate_file", FORM_DATA, body=body + b"--b--\r\n")


# --- malformed messages -------------------------------------------------------------------------------------


def malformed_requests() -> Iterator[tuple[str, bytes]]:
    """What is malformed, and the bytes."""
    body = json.dumps({"text": "a"}).encode()
    lengths = (
        "-1",
        "+20",
        "0x14",
        "1e1",
        "20, 20",
        "20, 21",
        "9" * 40,
        "",
        " ",
        "a",
        "20\r\nContent-Length: 21",
    )
    for length in lengths:
        yield (
            f"Content-Length {length[:24]!r}",
            request(f"POST {NATIVE}", JSON, f"Content-Length: {length}") + body,
        )
    for coding in (
        "chunked, chunked",
        "chunked, gzip",
        "gzip",
        "identity",
        "xchunked",
        "\x0bchunked",
        "Chunked",
    ):
        head = request(f"POST {NATIVE}", JSON, f"Transfer-Encoding: {coding}")
        yield f"Transfer-Encoding {coding!r}", head + b"14\r\n" + body + b"\r\n0\r\n\r\n"
    both = request(f"POST {NATIVE}", JSON, "Content-Length: 4", "Transfer-Encoding: chunked")
    yield "both lengths", both + b"0\r\n\r\nGET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"
    for size in ("-1", "zz", "FFFFFFFFFFFFFFFFFF", "0x5", "5 ", ""):
        yield (
            f"chunk size {size!r}",
            (request(f"POST {NATIVE}", JSON, "Transfer-Encoding: chunked") + f"{size}\r\n".encode() + body),
        )
    for line in (
        *(
            "GET",
            "GET /livez",
            "GET  /livez HTTP/1.1",
            "GET /livez HTTP/9.9",
            "GET /livez HTTP/1.0",
            "\x16\x03\x01",
        ),
        *(
            "PRI * HTTP/2.0",
            "CONNECT localhost:443 HTTP/1.1",
            "GET * HTTP/1.1",
            "TRACE / HTTP/1.1",
            "G\0T / HTTP/1.1",
        ),
        *(
            "GET /\x7f HTTP/1.1",
            "GET /\xff HTTP/1.1",
            "GET http:// HTTP/1.1",
            "GET //[::1 HTTP/1.1",
            "get / HTTP/1.1",
        ),
        *("GET /?" + "%" * 1000 + " HTTP/1.1", "POST /livez HTTP/1.1"),
    ):
        data = f"{line}\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode("latin-1")
        yield f"line {line[:24]!r}", data
    for header in (
        "X : a",
        " X: a",
        "X\0: a",
        "X: a\0b",
        ": a",
        "X",
        "X: a\n b",
        "Expect: 100-continue",
        "Expect: x",
    ):
        yield f"header {header!r}", request("GET /livez", header, "Connection: close")
    for upgrade in ("websocket", "h2c", "TLS/1.2"):
        headers = (
            f"Upgrade: {upgrade}",
            "Connection: Upgrade",
            "Sec-WebSocket-Key: YQ==",
            "Sec-WebSocket-Version: 13",
        )
        yield f"upgrade to {upgrade}", request("GET /livez", *headers)
    for host in (
        "",
        "[::1",
        "[::ffff:127.0.0.1]",
        "127.1",
        "localhost:99999999",
        "a@localhost",
        "localhost/x",
        "\xff",
    ):
        yield f"host {host!r}", request("GET /livez", host=host)
    yield "pipelined", request("GET /livez") * 5_000
    yield "noise", bytes(range(256)) * 400


SCENES = (
    Scene("malformed", "lengths, chunks, lines and headers that are not HTTP", malformed),
    Scene("pages", "HTML and forms: deep, unclosed, of very many parts", pages),
)
