"""Many clients, a few lanes: who is merged, who is dropped, who hears what."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from regard.engine.engines.protocol import Engines, Request, Search
from regard.errors import RequestError
from regard.serve.http.errors import client_gone
from regard.serve.work.items import DecodeItem, ScheduledEngines
from regard.serve.work.jobs import RequestJob
from regard.serve.work.scheduler import Scheduler
from tests.refusals import refused
from tests.serve.running import Gated

SEARCH = Search(beam_size=1)


def scheduler_of(engine, on_batch=lambda _: None):
    engines = Engines([lambda: engine])
    return Scheduler(engines.first.lanes, engines.lane, on_batch)


@pytest.fixture
def gated():
    engine = Gated()
    scheduler = scheduler_of(engine)
    yield engine, scheduler
    engine.let_all()
    scheduler.close()


def request(n):
    return DecodeItem(Request(ids=(7,) * n), SEARCH, 100)


def test_what_came_while_a_batch_ran_makes_the_next_one(gated):
    engine, scheduler = gated
    first = scheduler.submit(RequestJob(), [request(3)])
    assert engine.began.acquire(timeout=30)
    others = [scheduler.submit(RequestJob(), [request(n)]) for n in (3, 4, 5)]
    engine.let_all()
    results = [parts.all.result(30)[0].hypotheses[0].ids for parts in (first, *others)]
    assert [len(ids) for ids in results] == [3, 3, 4, 5]
    assert engine.batches[0] == [3]
    assert sorted(engine.batches[1]) == [3, 4, 5]


class TwoLanes(Gated):
    lanes = 2


def test_lanes_work_side_by_side_and_one_that_is_free_takes_what_comes():
    engine = TwoLanes()
    scheduler = scheduler_of(engine)
    first = scheduler.submit(RequestJob(), [request(3)])
    assert engine.began.acquire(timeout=30)
    second = scheduler.submit(RequestJob(), [request(4)])
    assert engine.began.acquire(timeout=30), "the second lane waits for the first"
    assert sorted(engine.batches) == [[3], [4]]
    assert not first.all.done()
    engine.let_all()
    assert len(first.all.result(30)) == len(second.all.result(30)) == 1
    scheduler.close()


def test_what_waits_is_shared_among_the_lanes_that_are_free():
    engine = TwoLanes()
    scheduler = scheduler_of(engine)
    parts = scheduler.submit(RequestJob(), [request(3) for _ in range(6)])
    assert engine.began.acquire(timeout=30)
    assert engine.began.acquire(timeout=30), "one lane took all"
    assert engine.batches == [[3, 3, 3], [3, 3, 3]]
    engine.let_all()
    assert len(parts.all.result(30)) == 6
    scheduler.close()


def test_a_mistake_of_ours_costs_no_lane():
    engine, heard = Gated(), []

    def hear(batch):
        heard.append(batch.tokens)
        if len(heard) == 1:
            raise ZeroDivisionError

    engine.let_all()
    scheduler = scheduler_of(engine, hear)
    with pytest.raises(ZeroDivisionError):
        scheduler.submit(RequestJob(), [request(3)]).all.result(30)
    assert len(scheduler.submit(RequestJob(), [request(5)]).all.result(30)) == 1
    assert heard == [4, 6]
    scheduler.close()


def test_a_job_that_is_over_before_its_batch_never_runs(gated):
    engine, scheduler = gated
    scheduler.submit(RequestJob(), [request(3)])
    assert engine.began.acquire(timeout=30)
    left = RequestJob()
    parts = scheduler.submit(left, [request(4)])
    left.cancel(client_gone())
    with refused("client_gone"):
        parts.all.result(30)
    engine.let_all()
    scheduler.submit(RequestJob(), [request(5)]).all.result(30)
    assert [4] not in engine.batches
    with refused("client_gone"):
        scheduler.submit(left, [request(4)])


def test_a_stream_that_nobody_hears_stops_at_the_next_token(gated):
    engine, scheduler = gated
    job = RequestJob()
    engines = ScheduledEngines(scheduler, job, Engines([lambda: engine]))
    tokens = engines.choose(None, SEARCH).stream(Request(ids=(5, 6, 7, 8, 9)), SEARCH)
    engine.go_on.release(2)
    assert next(tokens) == 5
    job.cancel(client_gone())
    engine.go_on.release(2)
    with refused("client_gone"):
        list(tokens)
    assert engine.ended.acquire(timeout=30)
    assert scheduler.submit(RequestJob(), []).all.result() == []  # and the lane is free


class Choosy(Gated):
    """Does not do with requests of seven tokens."""

    def decode(self, requests, search):
        if any(len(each.ids) == 7 for each in requests):
            raise RequestError("no sevens")
        return super().decode(requests, search)


def test_whoever_is_to_blame_the_others_get_their_results():
    engine = Choosy()
    scheduler = scheduler_of(engine)
    first = scheduler.submit(RequestJob(), [request(3)])
    assert engine.began.acquire(timeout=30)
    good, bad = scheduler.submit(RequestJob(), [request(6)]), scheduler.submit(RequestJob(), [request(7)])
    engine.let_all()
    assert len(first.all.result(30)) == len(good.all.result(30)) == 1
    with pytest.raises(RequestError, match="no sevens"):
        bad.all.result(30)
    scheduler.close()


def test_a_closed_scheduler_finishes_what_waits_and_takes_nothing_more(gated):
    engine, scheduler = gated
    waiting = [scheduler.submit(RequestJob(), [request(3)]) for _ in range(3)]
    closing = threading.Thread(target=scheduler.close)
    closing.start()
    engine.let_all()
    assert all(len(parts.all.result(30)) == 1 for parts in waiting)
    closing.join(30)
    assert not closing.is_alive()
    with refused("shutting_down"):
        scheduler.submit(RequestJob(), [request(3)])


@pytest.mark.slow
def test_nobody_s_result_depends_on_who_else_asks(registry, offline, sources):
    (served,) = registry
    ways = [{}, {"beam_size": 1}, {"n_best": 3}, {"prefix": "the"}, {"beam_size": 2, "token_scores": True}]
    expected = [[each.text for each in offline.translate(sources[:60], **way)] for way in ways]

    def ask(i):
        way, texts = i % len(ways), sources[(i * 7) % 60 : (i * 7) % 60 + 1 + i % 5]
        found = served.for_job(RequestJob()).translate(texts, **ways[way])
        start = (i * 7) % 60
        return [each.text for each in found], expected[way][start : start + len(texts)]

    with ThreadPoolExecutor(24) as pool:
        for found, wanted in pool.map(ask, range(120)):
            assert found[: len(wanted)] == wanted


def test_scores_and_streams_are_those_of_the_model_alone(registry, offline, sources):
    (served,) = registry
    model = served.for_job(RequestJob())
    assert "".join(model.stream(sources[0])) == "".join(offline.stream(sources[0]))
    ours = model.score(sources[:9], ["the third"] * 9)
    alone = offline.score(sources[:9], ["the third"] * 9)
    assert [each.log_prob for each in ours] == pytest.approx([each.log_prob for each in alone], abs=1e-3)
