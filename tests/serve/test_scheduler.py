"""Many clients, a few lanes: who is merged, who is dropped, who hears what."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from regard.engine.engines.protocol import Engines, Request, Search
from regard.errors import RequestError
from regard.serve.http.errors import Refusal, gone
from regard.serve.work.job import Job
from regard.serve.work.scheduler import Scheduler
from regard.serve.work.tasks import Decode
from regard.serve.work.turns import Scheduled
from tests.serve.running import Gated

SEARCH = Search(beam_size=1)


@pytest.fixture
def gated():
    engine = Gated()
    scheduler = Scheduler(Engines([lambda: engine]))
    yield engine, scheduler
    engine.let_all()
    scheduler.close()


def request(n):
    return Decode(Request(ids=(7,) * n), SEARCH)


def test_what_came_while_a_batch_ran_makes_the_next_one(gated):
    engine, scheduler = gated
    first = scheduler.submit(Job(), [request(3)])
    assert engine.began.acquire(timeout=30)
    others = [scheduler.submit(Job(), [request(n)]) for n in (3, 4, 5)]
    engine.let_all()
    results = [parts.all.result(30)[0].hypotheses[0].ids for parts in (first, *others)]
    assert [len(ids) for ids in results] == [3, 3, 4, 5]
    assert engine.batches[0] == [3]
    assert sorted(engine.batches[1]) == [3, 4, 5]


class TwoLanes(Gated):
    lanes = 2


def test_lanes_work_side_by_side_and_one_that_is_free_takes_what_comes():
    engine = TwoLanes()
    scheduler = Scheduler(Engines([lambda: engine]))
    first = scheduler.submit(Job(), [request(3)])
    assert engine.began.acquire(timeout=30)
    second = scheduler.submit(Job(), [request(4)])
    assert engine.began.acquire(timeout=30), "the second lane waits for the first"
    assert sorted(engine.batches) == [[3], [4]]
    assert not first.all.done()
    engine.let_all()
    assert len(first.all.result(30)) == len(second.all.result(30)) == 1
    scheduler.close()


def test_what_waits_is_shared_among_the_lanes_that_are_free():
    engine = TwoLanes()
    scheduler = Scheduler(Engines([lambda: engine]))
    parts = scheduler.submit(Job(), [request(3) for _ in range(6)])
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
    scheduler = Scheduler(Engines([lambda: engine]), hear)
    with pytest.raises(ZeroDivisionError):
        scheduler.submit(Job(), [request(3)]).all.result(30)
    assert len(scheduler.submit(Job(), [request(5)]).all.result(30)) == 1
    assert heard == [4, 6]
    scheduler.close()


def test_a_job_that_is_over_before_its_batch_never_runs(gated):
    engine, scheduler = gated
    scheduler.submit(Job(), [request(3)])
    assert engine.began.acquire(timeout=30)
    left = Job()
    parts = scheduler.submit(left, [request(4)])
    left.end(gone())
    with pytest.raises(Refusal, match="left"):
        parts.all.result(30)
    engine.let_all()
    scheduler.submit(Job(), [request(5)]).all.result(30)
    assert [4] not in engine.batches
    with pytest.raises(Refusal, match="left"):
        scheduler.submit(left, [request(4)])


def test_a_stream_that_nobody_hears_stops_at_the_next_token(gated):
    engine, scheduler = gated
    job = Job()
    tokens = Scheduled(scheduler, job).choose(None, SEARCH).stream(Request(ids=(5, 6, 7, 8, 9)), SEARCH)
    engine.go_on.release(2)
    assert next(tokens) == 5
    job.end(gone())
    engine.go_on.release(2)
    with pytest.raises(Refusal, match="left"):
        list(tokens)
    assert engine.ended.acquire(timeout=30)
    assert scheduler.submit(Job(), []).all.result() == []  # and the lane is free


class Choosy(Gated):
    """Does not do with requests of seven tokens."""

    def decode(self, requests, search):
        if any(len(each.ids) == 7 for each in requests):
            raise RequestError("no sevens")
        return super().decode(requests, search)


def test_whoever_is_to_blame_the_others_get_their_results():
    engine = Choosy()
    scheduler = Scheduler(Engines([lambda: engine]))
    first = scheduler.submit(Job(), [request(3)])
    assert engine.began.acquire(timeout=30)
    good, bad = scheduler.submit(Job(), [request(6)]), scheduler.submit(Job(), [request(7)])
    engine.let_all()
    assert len(first.all.result(30)) == len(good.all.result(30)) == 1
    with pytest.raises(RequestError, match="no sevens"):
        bad.all.result(30)
    scheduler.close()


def test_a_closed_scheduler_finishes_what_waits_and_takes_nothing_more(gated):
    engine, scheduler = gated
    waiting = [scheduler.submit(Job(), [request(3)]) for _ in range(3)]
    closing = threading.Thread(target=scheduler.close)
    closing.start()
    engine.let_all()
    assert all(len(parts.all.result(30)) == 1 for parts in waiting)
    closing.join(30)
    assert not closing.is_alive()
    with pytest.raises(Refusal, match="shutting down"):
        scheduler.submit(Job(), [request(3)])


@pytest.mark.slow
def test_nobody_s_result_depends_on_who_else_asks(catalogue, offline, sources):
    (served,) = catalogue
    ways = [{}, {"beam_size": 1}, {"n_best": 3}, {"prefix": "the"}, {"beam_size": 2, "token_scores": True}]
    expected = [[each.text for each in offline.translate(sources[:60], **way)] for way in ways]

    def ask(i):
        way, texts = i % len(ways), sources[(i * 7) % 60 : (i * 7) % 60 + 1 + i % 5]
        found = served.for_job(Job()).translate(texts, **ways[way])
        start = (i * 7) % 60
        return [each.text for each in found], expected[way][start : start + len(texts)]

    with ThreadPoolExecutor(24) as pool:
        for found, wanted in pool.map(ask, range(120)):
            assert found[: len(wanted)] == wanted


def test_scores_and_streams_are_those_of_the_model_alone(catalogue, offline, sources):
    (served,) = catalogue
    model = served.for_job(Job())
    assert "".join(model.stream(sources[0])) == "".join(offline.stream(sources[0]))
    ours = model.score(sources[:9], ["the third"] * 9)
    alone = offline.score(sources[:9], ["the third"] * 9)
    assert [each.log_prob for each in ours] == pytest.approx([each.log_prob for each in alone], abs=1e-3)
