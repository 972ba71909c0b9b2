"""Connections and heads of requests have limits."""

import socket
import time
from contextlib import ExitStack, closing

import pytest

from regard.serve.http import connections
from regard.serve.http.limits import Limits
from tests.serve.running import PATIENCE_S, running
from tests.serve.sockets import connected, flood, read_all
from tests.serve.test_leaving import until

HEAD = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n"
BODY = b"\r\n".join(
    [
        b"POST /x HTTP/1.1",
        b"Host: localhost",
        b"Content-Type: application/json",
        b"Transfer-Encoding: chunked",
        b"",
        b"",
    ]
)


@pytest.mark.parametrize(
    ("start", "piece"),
    [
        (b"GET /", b"x" * 1000),
        (HEAD + b"A: ", b"x" * 1000),
        (HEAD, b"A: x\r\n" * 200),
        (HEAD + b"".join(b"A%d: x\r\n" % i for i in range(25)) + b"\r\n", b""),
        (HEAD + b"A: " + b"x" * 6000 + b"\r\n\r\n", b""),
    ],
)
def test_a_head_has_a_limit(bare, start, piece):
    assert flood(bare, start, piece) in (400, 431)
    assert bare.get("/livez").status_code == 200


@pytest.mark.parametrize(
    ("start", "piece"),
    [
        (BODY + b"1;", b"x" * 1000),
        (BODY, b"1;xxxxxxxxxxxxxxxxxxxxxxxxxx\r\n1\r\n" * 50),
        (BODY + b"0\r\n", b"A: x\r\n" * 200),
        (BODY + b"0\r\nA: ", b"x" * 1000),
        (BODY, b"1\r\nx\r\n" * 200),
    ],
)
def test_what_surrounds_a_body_has_a_limit(bare, start, piece):
    assert flood(bare, start, piece) in (0, 400, 413, 415)
    until(lambda: len(bare.server._connections) <= 1, "a connection was held")  # but for that of our client
    assert bare.get("/livez").status_code == 200


def test_pipelined_requests_have_a_limit(bare, monkeypatch):
    monkeypatch.setattr(connections, "PIPELINED", 3)
    with connected(bare) as client:
        client.sendall(HEAD + b"\r\n" + (HEAD + b"\r\n") * 2)
        while b"live" not in (data := client.recv(65536)):
            assert data
    flood(bare, (HEAD + b"\r\n") * 100, b"")
    assert bare.get("/livez").status_code == 200


def test_connections_have_a_limit(bare):
    book = bare.server._connections
    until(lambda: len(book) <= 1, "a connection was held")  # but for that of our client
    with ExitStack() as stack:
        before = len(book)
        for _ in range(11 - before):
            stack.enter_context(connected(bare))
        with connected(bare) as one_more:
            assert b" 429 " in read_all(one_more)
    until(lambda: len(book) <= before, "a connection was held")
    with pytest.MonkeyPatch.context() as patch, connected(bare):
        patch.setattr(book, "limits", Limits(connections=before + 1))
        with connected(bare) as another:
            assert b" 503 " in read_all(another)
        patch.setattr(connections, "SPARE", 0)
        with ExitStack() as stack:
            far_too_many = [stack.enter_context(connected(bare)) for _ in range(5)]
            assert read_all(far_too_many[-1]) == b"", "then there is not even an answer"


def test_the_last_connections_are_for_those_who_have_few(bare, monkeypatch):
    book = bare.server._connections
    until(lambda: len(book) <= 1, "a connection was held")
    monkeypatch.setattr(connections, "FEW", 2)
    monkeypatch.setattr(book, "limits", Limits(connections=8))
    with ExitStack() as stack:
        for _ in range(6 - len(book)):
            stack.enter_context(connected(bare))
        with connected(bare) as one_more:
            assert b" 503 " in read_all(one_more)
        other = socket.create_connection(
            ("127.0.0.1", bare.port), timeout=PATIENCE_S, source_address=("127.0.0.2", 0)
        )
        with closing(other):
            other.sendall(HEAD + b"Connection: close\r\n\r\n")
            assert b" 200 " in read_all(other)


def test_a_body_must_arrive_in_time(bare):
    with connected(bare) as client:
        client.sendall(BODY + b"1\r\nx\r\n")
        assert read_all(client).startswith(b"HTTP/1.1 408 ")


def test_a_client_that_does_not_read_is_dropped(registry, monkeypatch):
    monkeypatch.setattr(connections, "PROGRESS", 1 << 30)
    with running(registry, limits=Limits(write_s=0.2)) as server:
        with connected(server) as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            for _ in range(5):
                client.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 15)
                time.sleep(0.01)
            until(lambda: not len(server.server._connections), "the connection was held")
        big = server.get("/openapi.json")
        assert (big.status_code, len(big.content)) == (200, int(big.headers["content-length"]))
