"""A response that comes before the end of its request reaches the client; the connection is not held."""

import hashlib
import http.client
import shutil
import socket
import subprocess
import urllib.error
import urllib.request
from contextlib import closing

import httpx
import pytest
import requests
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from regard.serve.http import connections
from regard.serve.http import server as server_module
from regard.serve.http.connections import LimitedConnection
from regard.serve.http.keys import Key, KeyRing
from regard.serve.http.limits import Limits
from regard.serve.models import ModelRegistry
from tests.serve.running import PATIENCE_S, running
from tests.serve.test_leaving import until

MOST = 1 << 20
"""Bytes of a body: more than a socket holds, so that a client is still writing."""
PATH = "/api/v1/translate"
HEADERS = {"Authorization": "Bearer secret", "Content-Type": "application/json"}
KEY = "Authorization: Bearer secret\nContent-Type: application/json"


@pytest.fixture(scope="module", params=[H11Protocol, HttpToolsProtocol])
def server(request):
    class Connection(LimitedConnection, request.param):
        pass

    keys = KeyRing([Key("me", hashlib.sha256(b"secret").hexdigest())])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(server_module, "Connection", Connection)
        with running(ModelRegistry([]), limits=Limits(body_bytes=MOST), keys=keys) as found:
            yield found


def chunks(body):
    return (body[i : i + 65536] for i in range(0, len(body), 65536))


def by_http_client(server, body, *, chunked):
    with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_S)) as client:
        headers = {**HEADERS, "Connection": "close"}
        client.request("POST", PATH, chunks(body) if chunked else body, headers, encode_chunked=chunked)
        return client.getresponse().status


def by_urllib(server, body, *, chunked):
    data = chunks(body) if chunked else body
    request = urllib.request.Request(server.url + PATH, data=data, headers=HEADERS)
    with pytest.raises(urllib.error.HTTPError) as error:
        urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request)
    error.value.close()
    return error.value.code


def by_requests(server, body, *, chunked):
    with requests.Session() as session:
        session.trust_env = False
        data, headers = chunks(body) if chunked else body, {**HEADERS, "Connection": "close"}
        return session.post(server.url + PATH, data=data, headers=headers).status_code


def by_httpx(server, body, *, chunked):
    content = chunks(body) if chunked else body
    headers = {**HEADERS, "Connection": "close"}
    with httpx.Client(trust_env=False, timeout=PATIENCE_S) as client:
        return client.post(server.url + PATH, content=content, headers=headers).status_code


def by_curl(server, body, *, chunked):
    """It expects to be told to continue before it sends a long body."""
    if not shutil.which("curl"):
        pytest.skip("curl is not installed")
    header = "Transfer-Encoding: chunked" if chunked else "Connection: close"
    command = ["curl", "-s", "-w", "%{http_code}", "-o", "/dev/null", "--noproxy", "*", "-H", header]
    for name, value in HEADERS.items():
        command += ["-H", f"{name}: {value}"]
    command += ["-H", "Expect: 100-continue", "--data-binary", "@-", server.url + PATH]
    done = subprocess.run(command, input=body, capture_output=True, check=True)
    return int(done.stdout)


def exchange(server, head, body):
    """The status line for a request over a bare socket that writes everything before it reads."""
    with closing(socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S)) as client:
        client.sendall(head.encode().replace(b"\n", b"\r\n") + b"\r\n\r\n")
        client.sendall(body)
        answer = b""
        while more := client.recv(65536):
            answer += more
        return answer.split(b"\r\n")[0].decode()


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("share", [1.1, 10])
@pytest.mark.parametrize("ask", [by_http_client, by_urllib, by_requests, by_httpx, by_curl])
def test_a_client_that_is_still_writing_hears_that_its_body_is_too_large(server, ask, share, chunked):
    assert ask(server, b"x" * int(share * MOST), chunked=chunked) == 413


@pytest.mark.parametrize(
    ("head", "status"),
    [
        ("POST /x HTTP/1.0\nHost: localhost\n{key}\nContent-Length: {n}", 413),
        ("POST /x HTTP/1.1\nHost: localhost\n{key}\nContent-Length: {n}", 413),
        ("POST /x HTTP/1.1\nHost: localhost\n{key}\nExpect: 100-continue\nContent-Length: {n}", 413),
        ("GET /livez HTTP/1.1\nHost: localhost\nContent-Length: {n}", 413),
        ("POST /x HTTP/1.1\nHost: elsewhere\nContent-Length: {n}", 421),
        ("POST /x HTTP/1.1\nHost: localhost\nContent-Length: many", 400),
        ("no HTTP at all", 400),
    ],
)
@pytest.mark.parametrize("share", [1.1, 10])
def test_so_does_one_that_reads_when_it_has_written_everything(server, head, status, share):
    body = b"x" * int(share * MOST)
    assert exchange(server, head.format(n=len(body), key=KEY), body).split()[1] == str(status)


@pytest.mark.parametrize(
    ("line", "status"),
    [
        (f"POST {PATH}", 401),
        ("POST /nothing", 404),
        ("PUT /livez", 405),
        (f"POST {PATH}", 403),
        (f"POST {PATH}", 415),
    ],
)
def test_a_client_that_is_still_writing_reads_every_refusal(server, line, status):
    secret = {403: "wrong", 404: "secret", 415: "secret"}.get(status)
    key = f"\nAuthorization: Bearer {secret}" if secret else ""
    key += "\nContent-Type: application/json" if status == 404 else ""
    body = b"x" * (MOST - 1)
    head = f"{line} HTTP/1.1\nHost: localhost\nConnection: close{key}\nContent-Length: {len(body)}"
    assert exchange(server, head, body).split()[1] == str(status)


@pytest.mark.parametrize(
    "head", ["POST /x HTTP/1.1\nHost: localhost\nContent-Length: 999999999999", "no HTTP"]
)
def test_a_client_that_goes_on_is_cut_off(server, head, monkeypatch):
    monkeypatch.setattr(connections, "LINGER_BYTES", 5 * MOST)
    with pytest.raises((BrokenPipeError, ConnectionResetError)):
        exchange(server, head, b"x" * (100 * MOST))
    until(lambda: not server.server.server_state.connections, "the connection was held")


@pytest.mark.parametrize("sent", [b"", b"x"])
def test_a_client_that_stops_is_not_waited_for(server, sent, monkeypatch):
    monkeypatch.setattr(connections, "LINGER_S", 0.05)
    with closing(socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S)) as client:
        client.sendall(f"POST /x HTTP/1.1\nHost: localhost\n{KEY}\n".replace("\n", "\r\n").encode())
        client.sendall(b"Content-Length: 99999999\r\n\r\n" + sent)
        answer = b""
        while more := client.recv(65536):  # to the end of the output, though this side goes on
            answer += more
        assert answer.startswith(b"HTTP/1.1 413 ")
        assert b"\r\nconnection: close\r\n" in answer
        until(lambda: not server.server.server_state.connections, "the connection was held")


def test_a_connection_stays_open_where_nothing_is_left_to_read(server):
    with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_S)) as client:
        for path, status in (("/livez", 200), ("/nothing", 404), (PATH, 422), ("/livez", 200)):
            client.request("POST" if path == PATH else "GET", path, b"{}" if path == PATH else None, HEADERS)
            answer = client.getresponse()
            assert (answer.status, answer.getheader("Connection")) == (status, None)
            answer.read()


def test_a_key_is_checked_before_the_body_arrives(server):
    with closing(socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S)) as client:
        client.sendall(f"POST {PATH} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n".encode())
        answer = client.recv(65536)  # although no byte of the body was sent
        assert answer.startswith(b"HTTP/1.1 401 ")
        assert b"\r\nconnection: close\r\n" in answer
