"""Clients share the lanes by cost; short items do not wait for long ones; and nothing delays the exit."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from types import SimpleNamespace

import pytest

from regard.engine.engines.protocol import Request, Search
from regard.engine.options import GenerateOptions
from regard.serve.http.dependencies import AppState
from regard.serve.http.errors import client_gone
from regard.serve.http.limits import Limits, Pacing
from regard.serve.http.metrics import Metrics
from regard.serve.work.items import ContinueItem, DecodeItem
from regard.serve.work.jobs import RequestJob
from regard.serve.work.pool import Pool
from regard.serve.work.scheduler import PAUSED, Scheduler, WorkQueue
from regard.serve.work.turns import IDLE_CLIENTS, FairQueue, Turns, Turnstile
from tests.refusals import refused
from tests.serve.running import PATIENCE_S, Gated, running
from tests.serve.sockets import connected, read_all
from tests.serve.test_leaving import until

CAPACITY = 60


def item(length, beam=1):
    return DecodeItem(Request(ids=(7,) * (length - 1)), Search(beam_size=beam), CAPACITY)


def put(queue, client, *items, now=0.0):
    job = RequestJob(client)
    queue.put(job, items, job.expect(len(items)), now)


def in_a_thread(function, *arguments):
    """A test process that has driven a browser has an event loop already."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(function, *arguments).result(PATIENCE_S)


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
from regard.serve.http.dependencies import AppState
from regard.serve.http.errors import client_gone
from regard.serve.http.limits import Limits, Pacing
from regard.serve.http.metrics import Metrics
from regard.serve.http.middleware import Turnstile
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


# --- what strangers must not hold up ---------------------------------------------------------------------


def test_errors_in_a_row_are_delayed_and_other_clients_are_not():
    now = 100.0
    pacing = Pacing(10, lambda: now)
    assert [pacing.delay("a") for _ in range(10)] == [0.0] * 10
    assert pacing.delay("a") == pytest.approx(0.1)
    assert pacing.delay("a") == pytest.approx(0.2)
    for _ in range(100):
        last = pacing.delay("a")
    assert 1.0 <= last <= Pacing.LONGEST_S
    assert pacing.delay("b") == 0.0
    now += 2 * Pacing.LONGEST_S
    assert pacing.delay("a") == 0.0


def test_a_client_waits_for_its_errors(gate):
    _, registry = gate
    with running(registry, limits=Limits(errors_a_second=4)) as server:
        started = time.monotonic()
        statuses = [server.post("/api/v1/translate", text="x", beam=99).status_code for _ in range(6)]
        assert time.monotonic() - started > 0.4
        assert statuses == [422] * 6
        assert server.get("/livez").status_code == 200


def test_a_client_waits_for_refusals_of_what_is_not_http(gate):
    _, registry = gate
    with running(registry, limits=Limits(errors_a_second=4)) as server:
        started, answers = time.monotonic(), []
        for _ in range(6):
            with connected(server) as client:
                client.sendall(b"NOT HTTP\r\n\r\n")
                answers.append(read_all(client)[:12])
        assert time.monotonic() - started > 0.4
        assert answers == [b"HTTP/1.1 400"] * 6
        with connected(server) as client:  # 17 requests at a time, while the first one is answered
            client.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n" * 40)
            assert read_all(client).count(b"200 OK") < 17
        assert server.get("/livez").status_code == 200


def test_many_connections_are_accepted_together(server):
    with ExitStack() as several:
        clients = [several.enter_context(connected(server)) for _ in range(150)]
        for client in clients:
            client.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert all(read_all(client).startswith(b"HTTP/1.1 200") for client in clients)


def test_requests_that_arrive_together_begin_a_few_in_every_turn():
    async def turns():
        turnstile, turn, entered = Turnstile(), 0, []

        async def enter(i):
            await turnstile.enter("b" if i == 10 else "a")
            entered.append((i, turn))

        tasks = [asyncio.create_task(enter(i)) for i in range(11)]
        tasks[9].cancel()
        while len(entered) < 10:
            turn += 1
            await asyncio.sleep(0)
        return entered

    entered = in_a_thread(asyncio.run, turns())
    assert sorted(i for i, _ in entered) == [*range(9), 10]
    assert next(turn for i, turn in entered if i == 10) == min(turn for i, turn in entered if i >= 4)
    assert max(Counter(turn for _, turn in entered).values()) <= Turnstile.PER_TURN


def test_what_a_client_did_alone_does_not_count_against_it_later():
    async def order():
        turnstile, found = Turnstile(), []
        for _ in range(50):  # nobody waits
            turnstile.begin("honest", lambda: None)
            await asyncio.sleep(0)
        for client in ["attacker"] * 40 + ["honest"]:
            turnstile.begin(client, partial(found.append, client))
        while len(found) < 41:
            await asyncio.sleep(0)
        return found.index("honest")

    assert in_a_thread(asyncio.run, order()) <= 2 * Turnstile.PER_TURN


def test_a_client_with_few_requests_finds_a_place(registry):
    executor = AppState(registry, Metrics(), limits=Limits(waiting=64, waiting_per_client=64)).executor
    for client, n in (("a", 24), ("b", 24)):
        for _ in range(n):
            executor._new_job(client, lambda: None)
    for client in ("a", "b"):
        with refused("busy"):
            executor.check(client)
    for _ in range(3):
        executor.check("honest")
        executor._new_job("honest", lambda: None)


def test_jobs_run_one_at_a_time_except_while_they_wait():
    turns, inside, seen = Turns(PATIENCE_S), [], []
    both = threading.Barrier(2, timeout=PATIENCE_S)

    def work(job):
        with job.in_turn():
            inside.append(job)
            seen.append(len(inside))
            time.sleep(0.05)
            inside.remove(job)
            with job.waiting(), job.waiting():  # the inner one has no turn to give back
                both.wait()  # passed only if both wait at a time
            inside.append(job)
            seen.append(len(inside))
            inside.remove(job)

    threads = [threading.Thread(target=work, args=(RequestJob("a", turns),)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert seen == [1] * 4


def test_a_cancelled_job_does_not_wait_for_its_turn_and_takes_none():
    turns, failed = Turns(PATIENCE_S), []
    waiting = RequestJob("a", turns)

    def wait():
        with refused("client_gone"), waiting.in_turn():
            raise AssertionError("it must not begin")
        failed.append(waiting)

    with RequestJob("a", turns).in_turn():
        thread = threading.Thread(target=wait)
        thread.start()
        while not turns._waiting:
            time.sleep(0.001)
        waiting.cancel(client_gone())
        thread.join(PATIENCE_S)
        assert failed == [waiting]
    with RequestJob("b", turns).in_turn():
        pass


def test_a_turn_that_does_not_end_keeps_nobody_waiting():
    turns, began = Turns(0.02), []
    with RequestJob("a", turns).in_turn():
        for _ in range(3):
            in_a_thread(partial(_note_turn, RequestJob("b", turns), began))
    assert len(began) == 3
    with RequestJob("a", turns).in_turn():
        assert turns._current is not None


def _note_turn(job, began):
    with job.in_turn():
        began.append(job)


def test_the_client_that_has_had_least_is_next():
    queue = FairQueue()
    for client in "aaab":
        queue.put(client, client)
    order = [queue.pop(1) for _ in range(2)]
    queue.put("c", "c")  # begins where the others are, not at nothing
    while queue:
        order.append(queue.pop(1))
    assert order == ["a", "b", "c", "a", "a"]


def test_a_client_that_waited_for_nothing_gains_nothing():
    queue = FairQueue()
    for _ in range(100):
        queue.put("busy", "busy")
        queue.pop(1)
    for client in ("idle", "busy", "idle", "busy", "idle"):
        queue.put(client, client)
    assert [queue.pop(1) for _ in range(4)] != ["idle"] * 3 + ["busy"]
    for i in range(5000):
        queue.put(f"{i}", i)
        queue.pop(1)
    assert len(queue._had) <= IDLE_CLIENTS + 2  # who waits is remembered, too


def test_what_nobody_waits_for_is_not_calculated(registry):
    calculated = []
    pool = AppState(registry, Metrics()).executor
    pool._threads = Pool(1, "request")
    release = threading.Event()

    async def scene():
        async def never():
            await asyncio.sleep(PATIENCE_S)

        def request():
            state = SimpleNamespace(client="a", size=0)
            return SimpleNamespace(state=state, receive=never)

        def slow(_):
            release.wait(PATIENCE_S)

        first = asyncio.create_task(pool.run(request(), slow))
        await asyncio.sleep(0.02)  # the only thread is busy now
        others = [pool.run(request(), calculated.append, deadline_ms=50) for _ in range(3)]
        found = await asyncio.gather(*others, return_exceptions=True)
        release.set()
        await first
        while len(pool):
            await asyncio.sleep(0.01)
        return [error.code for error in found]

    assert in_a_thread(asyncio.run, scene()) == ["deadline"] * 3
    assert calculated == []
