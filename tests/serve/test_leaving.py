"""Clients that leave, read slowly, or are many when the server must stop."""

import asyncio
import json
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from starlette.requests import Request

from regard.serve.http.dependencies import AppState
from regard.serve.http.limits import Limits
from regard.serve.http.metrics import Metrics
from tests.refusals import refused
from tests.serve.running import PATIENCE_S, running


def connect(server, path, body):
    """A request over a bare socket, without waiting for the answer."""
    client = socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S)
    data = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    client.sendall(f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data)
    return client


def until(true, what):
    end = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < end, what
        time.sleep(0.02)


def test_a_client_that_leaves_before_its_batch_is_never_run(gate):
    engine, registry = gate
    with running(registry) as server:
        first = connect(server, "/api/v1/translate", {"text": "三月"})
        assert engine.began.acquire(timeout=PATIENCE_S)
        left = connect(server, "/api/v1/translate", {"text": "三月五日四月"})
        until(lambda: len(server.state.executor) == 2, "the second was not taken on")
        left.close()
        until(lambda: len(server.state.executor) == 1, "the second was not given up")
        engine.let_all()
        assert first.recv(100).startswith(b"HTTP/1.1 200")
        first.close()
        assert len(engine.batches) == 1
        assert 'regard_cancelled_total{reason="client_gone"} 1.0' in server.get("/metrics").text


def test_a_client_that_has_left_already_is_not_taken_on(registry):
    worked = []

    async def left():
        return {"type": "http.disconnect"}

    async def ask():
        request = Request({"type": "http"}, receive=left)
        await AppState(registry, Metrics()).executor.run(request, worked.append)
        raise AssertionError("work was taken on")

    # In a thread: Playwright, in other tests of this process, leaves a loop running in this one.
    with refused("client_gone"), ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, ask()).result()
    assert worked == []


def test_a_client_that_leaves_a_stream_stops_it_at_the_next_token(gate):
    engine, registry = gate
    with running(registry) as server:
        body = {"text": "三月五日四月六日七月", "stream": True, "check_numbers": False}
        client = connect(server, "/api/v1/translate", body)
        engine.go_on.release(2)  # the first token may be a mere space
        data = b""
        while b"event: token" not in data:
            more = client.recv(1000)
            assert more, "the stream ended"
            data += more
        client.close()
        # Read here and not over HTTP: polling would keep a busy machine from noticing.
        until(lambda: b'reason="client_gone"} 1.0' in server.state.metrics.page(), "nobody noticed")
        engine.go_on.release()
        assert engine.ended.acquire(timeout=PATIENCE_S)


def test_a_connection_without_a_request_is_closed(registry):
    with running(registry, limits=Limits(head_s=0.1)) as server:
        with closing(socket.create_connection(("127.0.0.1", server.port), timeout=60)) as halting:
            halting.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert b'{"status":"live"}' in halting.recv(10_000)
            halting.sendall(b"GET /livez HTTP/1.1\r\nHos")
            assert halting.recv(100).startswith(b"HTTP/1.1 408 ")
        with closing(socket.create_connection(("127.0.0.1", server.port), timeout=60)) as silent:
            assert silent.recv(100) == b""


def test_who_has_asked_waits_for_the_answer_without_that_limit(gate):
    engine, registry = gate
    with running(registry) as server, closing(connect(server, "/api/v1/translate", {"text": "三月"})):
        assert engine.began.acquire(timeout=PATIENCE_S)
        (asking,) = server.server.server_state.connections
        assert asking._timeout is None
        engine.let_all()
        until(lambda: asking.cycle.response_complete, "there was no answer")


def test_a_slow_reader_keeps_nobody_waiting(server, offline, sources):
    text = "\n".join(sources[:50])
    slow = connect(server, "/api/v1/translate", {"text": text, "stream": True})
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
    for source in sources[:5]:
        answer = server.post("/api/v1/translate", text=source).json()
        assert answer["items"][0]["text"] == offline.translate(source).text
    data = b""
    while b"event: done" not in data and b"event: error" not in data:
        data += slow.recv(100_000)
    slow.close()
    assert b"event: done" in data


def test_work_that_was_taken_on_is_finished_before_the_end(gate):
    engine, registry = gate
    with running(registry) as server:
        client = connect(server, "/api/v1/translate", {"text": "三月"})
        assert engine.began.acquire(timeout=PATIENCE_S)
        server.server.handle_exit(15, None)
        until(lambda: server.get("/readyz").status_code == 503, "still ready")
        late = server.post("/api/v1/translate", text="三月")
        assert (late.status_code, late.json()["error"]["code"]) == (503, "shutting_down")
        assert int(late.headers["retry-after"]) > 0
        engine.let_all()
        assert client.recv(100).startswith(b"HTTP/1.1 200")
        client.close()


@pytest.mark.slow
def test_sigterm_under_load(run_folder, sources):
    """A process of its own: every request gets a whole answer or none was begun, and it ends by itself."""
    command = [sys.executable, "-m", "regard", "serve", str(run_folder), "--port", "0", "--threads", "2"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    told = ""
    while "serving at" not in told:
        told = process.stderr.readline()
        assert told, "it ended before it served"
    port = int(told.strip().rstrip("/").rpartition(":")[2])
    codes, stop = [], threading.Event()

    def ask(number):
        import httpx

        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60, trust_env=False) as http:
            while not stop.is_set():
                try:
                    answer = http.post("/api/v1/translate", json={"text": sources[number : number + 8]})
                except httpx.ConnectError:
                    return
                except (httpx.RemoteProtocolError, httpx.ReadError):
                    codes.append("closed before an answer began")
                    return
                answer.json()  # whole, whatever it says
                codes.append(answer.status_code)

    asking = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for each in asking:
        each.start()
    until(lambda: codes.count(200) >= 16, "no answers")
    process.terminate()
    assert process.wait(60) == 0
    stop.set()
    for each in asking:
        each.join(60)
    process.stderr.close()
    assert set(codes) <= {200, 503, "closed before an answer began"}
