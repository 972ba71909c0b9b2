"""Clients share the lanes by cost; short items do not wait for long ones; and nothing delays the exit."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from regard.engine.engines.protocol import Request, Search
from regard.engine.options import GenerateOptions
from regard.serve.http.limits import Limits
from regard.serve.work.items import ContinueItem, DecodeItem
from regard.serve.work.jobs import RequestJob
from regard.serve.work.pool import Pool
from regard.serve.work.scheduler import PAUSED, Scheduler, WorkQueue
from tests.serve.running import PATIENCE_S, Gated, running
from tests.serve.sockets import connected, read_all
from tests.serve.test_leaving import until

CAPACITY = 60


def item(length, beam=1):
    return DecodeItem(Request(ids=(7,) * (length - 1)), Search(beam_size=beam), CAPACITY)


def put(queue, client, *items, now=0.0):
    job = RequestJob(client)
    queue.put(job, items, job.expect(len(items)), now)


def order(queue, capacity=1):
    """The clients of all items, in the order in which they run."""
    found = []
    while (first := queue.first()) is not None:
        found += [queued.job.client for queued in queue.take(first, capacity)]
    return found


def test_a_newcomer_does_not_wait_for_all_that_was_there_before():
    queue = WorkQueue()
    put(queue, "greedy", *[item(30)] * 100)
    assert [queued.job.client for queued in queue.take(queue.first(), 30 * 10)] == ["greedy"] * 10
    put(queue, "new", item(30), now=5.0)
    assert order(queue)[:2].count("new") == 1


def test_many_requests_of_one_client_have_one_share():
    queue = WorkQueue()
    for _ in range(50):
        put(queue, "greedy", item(30))
    put(queue, "honest", *[item(30)] * 10, now=1.0)
    first = order(queue)[:20]
    assert first.count("honest") == 10


def test_the_share_is_one_of_cost():
    queue = WorkQueue()
    put(queue, "wide", *[item(30, beam=8)] * 20)
    put(queue, "narrow", *[item(30, beam=2)] * 40)
    first = order(queue)[:25]
    assert 4 <= first.count("wide") <= 6
    queue = WorkQueue()
    put(queue, "long", *[item(50)] * 20)
    put(queue, "short", *[item(10)] * 100)
    assert 9 <= order(queue)[:60].count("long") <= 11


def test_a_batch_is_shared_too():
    queue = WorkQueue()
    put(queue, "a", *[item(10)] * 50)
    put(queue, "b", *[item(10)] * 50, now=1.0)
    clients = [queued.job.client for queued in queue.take(queue.first(), 200)]
    assert (clients.count("a"), clients.count("b")) == (10, 10)


def test_a_client_cannot_save_up_shares():
    queue = WorkQueue()
    put(queue, "busy", *[item(30)] * 100)
    for _ in range(50):
        queue.take(queue.first(), 1)
    put(queue, "late", *[item(30)] * 100, now=1.0)
    assert 9 <= order(queue)[:20].count("late") <= 11


class Lanes(Gated):
    lanes = 1

    def __init__(self):
        super().__init__()
        self.urgent = Gated()


@pytest.fixture
def lanes():
    engine = Lanes()
    scheduler = Scheduler(1, lambda: GatedLane(engine), open_express=lambda: GatedLane(engine.urgent))
    yield engine, scheduler
    engine.let_all()
    engine.urgent.let_all()
    scheduler.close()


class GatedLane:
    """The engines of a lane."""

    def __init__(self, engine):
        self._engine = engine

    def decode(self, requests, search):
        return self._engine.decode(requests, search)


def test_short_items_take_the_express_lane_while_all_others_are_busy(lanes):
    engine, scheduler = lanes
    long = scheduler.submit(RequestJob("a"), [item(50, beam=16)])
    assert engine.began.acquire(timeout=PATIENCE_S)
    long_too = scheduler.submit(RequestJob("a"), [item(50, beam=16)])
    short = scheduler.submit(RequestJob("b"), [item(5)])
    assert engine.urgent.began.acquire(timeout=PATIENCE_S), "the short item waits for a long one"
    engine.urgent.let_all()
    assert short.all.result(PATIENCE_S)
    assert not long.all.done()
    assert engine.urgent.batches == [[4]]
    engine.let_all()
    assert long.all.result(PATIENCE_S)
    assert long_too.all.result(PATIENCE_S)
    assert len(engine.batches) == 2


def test_a_batch_of_the_express_lane_is_small(lanes):
    engine, scheduler = lanes
    scheduler.submit(RequestJob("a"), [item(50, beam=16)])
    assert engine.began.acquire(timeout=PATIENCE_S)
    short = scheduler.submit(RequestJob("b"), [item(5)] * 12)
    engine.urgent.let_all()
    assert short.all.result(PATIENCE_S)
    assert [len(batch) for batch in engine.urgent.batches] == [3, 3, 3, 3]
    engine.let_all()


def test_a_free_lane_comes_before_the_express_lane(lanes):
    engine, scheduler = lanes
    engine.let_all()
    for _ in range(20):
        assert scheduler.run(RequestJob("a"), [item(5)])
    assert engine.urgent.batches == []


def test_a_continuation_that_pauses_goes_on_where_it_was(monkeypatch):
    monkeypatch.setattr("regard.serve.work.items.QUANTUM_S", 0.0)
    written = []

    class Counting:
        """A generator of ten pieces."""

        def stream(self, _prompt, _options, wanted):
            class Stream:
                pieces = iter("abcdefghij")
                result = "whole"

                def __iter__(self):
                    return self

                def __next__(self):
                    assert wanted()
                    written.append(next(self.pieces))
                    return written[-1]

            return Stream()

    contended = iter([False, True, False, False, True] + [False] * 9)
    one = ContinueItem(Counting(), "x", GenerateOptions(), RequestJob(), lambda: next(contended))
    assert one.run(None, [one]) == [PAUSED]
    assert one.run(None, [one]) == [PAUSED]
    assert one.run(None, [one]) == ["whole"]
    assert "".join(written) == "abcdefghij"


def test_an_item_that_pauses_runs_after_those_that_wait():
    said = []

    class Pausing:
        key, length, capacity, cost = "pausing", 1, 1, 0.01

        def run(self, _lane, _batch):
            said.append("part")
            return [PAUSED] if said.count("part") < 3 else ["done"]

    class Other:
        key, length, capacity, cost = "other", 1, 1, 0.01

        def run(self, _lane, _batch):
            said.append("other")
            return ["other"]

    gate = threading.Event()
    scheduler = Scheduler(1, gate.wait)
    results = scheduler.submit(RequestJob("a"), [Pausing()])
    others = scheduler.submit(RequestJob("b"), [Other()])
    gate.set()
    assert results.all.result(PATIENCE_S) == ["done"]
    assert others.all.result(PATIENCE_S) == ["other"]
    assert said == ["part", "other", "part", "part"]
    assert scheduler.close()


def test_threads_of_a_pool_are_few_and_do_not_delay_the_exit():
    pool, go_on = Pool(3, "test"), threading.Event()
    running_now = [pool.submit(go_on.wait) for _ in range(7)]
    until(lambda: sum(each.running() for each in running_now) == 3, "three calls do not run")
    until(lambda: pool.is_busy, "no call runs")
    running_now[-1].cancel()
    go_on.set()
    assert all(each.result(PATIENCE_S) for each in running_now[:-1])
    until(lambda: not pool.is_busy, "the pool is still busy")

    def broken():
        raise ValueError

    assert isinstance(pool.submit(broken).exception(PATIENCE_S), ValueError)
    assert pool.submit(threading.current_thread).result(PATIENCE_S).daemon


# --- the end ------------------------------------------------------------------------------------------------


def test_a_stopping_server_answers_what_was_sent(gate):
    engine, registry = gate
    with running(registry, limits=Limits(drain_s=PATIENCE_S)) as server, connected(server) as idle:
        answers = []

        def ask():
            answers.append(server.post("/api/v1/translate", text="三月").status_code)

        asking = threading.Thread(target=ask)
        asking.start()
        assert engine.began.acquire(timeout=PATIENCE_S)
        server.server.handle_exit(signal.SIGTERM, None)
        body = b'{"text": "x"}'
        head = b"POST /api/v1/translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        idle.sendall(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        answer = read_all(idle)
        assert answer.startswith(b"HTTP/1.1 503 ")
        assert b"\r\nconnection: close\r\n" in answer
        with connected(server) as late:
            late.sendall(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert read_all(late).startswith(b"HTTP/1.1 503 ")
        engine.let_all()
        asking.join()
        assert answers == [200]


ENDLESS = """
import sys, threading
from pathlib import Path
import regard
from regard.serve.http import server
from regard.serve.http.limits import Limits
from regard.serve.work import items

def never(*_):
    print("began", flush=True)
    threading.Event().wait()

items.DecodeItem.run = never
settings = server.ServerSettings(port=int(sys.argv[2]), limits=Limits(drain_s=0.2))
server.serve([Path(sys.argv[1])], settings)
"""


@pytest.mark.slow
def test_a_request_that_does_not_end_does_not_delay_the_exit(run_folder, tmp_path):
    from regard.serve.http.server import listen

    with listen("127.0.0.1", 0) as free:
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-c", ENDLESS, str(run_folder), str(port)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"REGARD_CACHE": str(tmp_path)},
    )
    with process:
        lines = iter(process.stderr.readline, b"")
        assert any(b"serving at" in line for line in lines)
        server = type("Server", (), {"port": port})
        with connected(server) as client:
            body = b'{"text": "x", "source": "zh", "target": "en"}'
            head = b"POST /api/v1/translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            client.sendall(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
            assert process.stdout.readline() == b"began\n"
            started = time.monotonic()
            process.send_signal(signal.SIGTERM)
            answer = read_all(client)
            assert answer.startswith(b"HTTP/1.1 503 ")
            assert process.wait(PATIENCE_S) == 0
            assert time.monotonic() - started < 30


def test_a_thread_that_does_not_end_delays_no_answer(gate):
    """The waiting client is answered after the drain, with a stream as without."""
    _, registry = gate
    began, go_on = threading.Semaphore(0), threading.Event()

    def work(*_):
        began.release()
        return [go_on.wait(PATIENCE_S)]

    with running(registry, limits=Limits(drain_s=0.1)) as server, pytest.MonkeyPatch.context() as patch:
        patch.setattr("regard.serve.routes.native.translate", work)
        patch.setattr("regard.serve.routes.native.stream", work)
        answers = []

        def ask(*, stream):
            answers.append(server.post("/api/v1/translate", text="三月", stream=stream))

        asking = [threading.Thread(target=ask, kwargs={"stream": stream}) for stream in (False, True)]
        for thread in asking:
            thread.start()
        assert all(began.acquire(timeout=PATIENCE_S) for _ in asking)
        server.server.handle_exit(signal.SIGTERM, None)
        for thread in asking:
            thread.join(PATIENCE_S)
        assert sorted(answer.status_code for answer in answers) == [200, 503]
        assert all("shutting_down" in answer.text for answer in answers)
        go_on.set()
