"""The training that the page can start: who may start it, what it leaves, and how it ends."""

import asyncio
import json
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from regard.data.numerals import Pair
from regard.serve.demonstration import PAIRS, Demonstration, date_pairs
from regard.serve.http.app import create_app
from regard.serve.http.dependencies import AppState
from regard.serve.http.errors import ApiError
from regard.serve.http.keys import KeyRing, new_key
from regard.serve.http.limits import Limits
from regard.serve.http.metrics import Metrics
from regard.serve.models import ModelRegistry
from tests.serve.running import PATIENCE_S, running

PATH = "/api/v1/demonstration"


@pytest.fixture
def models():
    return ModelRegistry([])


def until(found, patience=PATIENCE_S):
    end = time.monotonic() + patience
    while not (result := found()):
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.1)
    return result


def asked(state, method, *, client="127.0.0.1", host="localhost", hosts=(), **headers):
    """Send a request as a client at some address would."""
    app = create_app(state, hosts=hosts)

    async def send():
        transport = httpx.ASGITransport(app, client=(client, 50_000))
        async with httpx.AsyncClient(transport=transport, base_url=f"http://{host}") as http:
            body = {"json": {}} if method == "POST" else {}
            return await http.request(method, PATH, headers=headers, **body)

    with ThreadPoolExecutor(1) as thread:  # this one may have an event loop, that of Playwright
        return thread.submit(asyncio.run, send()).result()


class Idle(Demonstration):
    """Counts how often a training would start."""

    def __init__(self):
        super().__init__(1.0)
        self.starts = []

    def start(self, client):
        self.starts.append(client)


@pytest.mark.parametrize(
    ("client", "host", "allowed"),
    [
        ("127.0.0.1", "localhost", True),
        ("127.0.0.1", "127.0.0.1:8000", True),
        ("::1", "[::1]:8000", True),
        ("192.168.1.7", "127.0.0.1", False),
        ("10.0.0.1", "10.0.0.2:8000", False),
        ("127.0.0.1", "10.0.0.2", False),  # through a proxy on this machine
        ("127.0.0.1", "mt.example", False),
    ],
)
def test_without_keys_only_this_machine_may_train(models, client, host, allowed):
    state = AppState(models, Metrics())
    state.demonstration = Idle()
    answer = asked(state, "POST", client=client, host=host, hosts=["mt.example"])
    assert answer.status_code == (201 if allowed else 403)
    assert len(state.demonstration.starts) == allowed
    if not allowed:
        assert answer.json()["error"]["code"] == "not_allowed"
    seen = asked(state, "GET", client=client, host=host, hosts=["mt.example"])
    assert seen.json()["allowed"] == allowed


def test_with_keys_a_key_is_needed_also_on_this_machine(models, tmp_path):
    path = tmp_path / "keys.jsonl"
    key = new_key(path, "phone")
    state = AppState(models, Metrics(), keys=KeyRing.of_file(path))
    state.demonstration = Idle()
    assert asked(state, "POST").status_code == 401
    assert asked(state, "POST", authorization="Bearer wrong").status_code == 403
    assert state.demonstration.starts == []
    far = asked(state, "POST", client="10.0.0.1", host="10.0.0.2", authorization=f"Bearer {key}")
    assert far.status_code == 201
    assert state.demonstration.starts == ["key phone"]
    state.keys.close()


def test_a_page_of_another_site_and_a_body_with_fields_start_nothing(models):
    with running(models) as server:
        server.state.demonstration = Idle()
        foreign = {"Origin": "https://evil.example"}
        assert server.http.post(PATH, json={}, headers=foreign).status_code == 403
        assert server.http.delete(PATH, headers=foreign).status_code == 403
        assert server.post(PATH, steps=10**9).status_code == 422
        assert server.http.post(PATH, content=b"x").status_code == 415
        server.state.executor.draining = True
        assert server.post(PATH).status_code == 503
        server.state.executor.draining = False
        assert server.state.demonstration.starts == []


@pytest.mark.slow
def test_it_trains_one_at_a_time_and_can_be_followed_and_stopped(models):
    with running(models) as server:
        assert server.get(PATH).json()["phase"] == "none"
        started = server.post(PATH)
        run = started.json()["run"]
        assert (started.status_code, started.json()["phase"]) == (201, "running")
        assert server.get("/api/v1/runs/dates-0/curve").status_code == 404
        again = server.post(PATH)
        assert (again.status_code, again.json()["error"]["code"]) == (409, "training_in_progress")
        with pytest.raises(ApiError, match="only that one"):
            server.state.demonstration.stop("someone else")
        curve = lambda: server.get(f"/api/v1/runs/{run}/curve").json()["entries"]  # noqa: E731
        assert until(curve)[0]["step"] <= 20
        steps = until(lambda: server.get(f"/api/v1/runs/{run}/probes").json()["steps"])
        shown = server.get(f"/api/v1/runs/{run}/probes/{steps[0]}/0").json()
        assert shown["inputs"]["tokens"]
        stopped = server.http.delete(PATH).json()
        assert (stopped["phase"], stopped["run"]) == ("stopped", run)
        assert stopped["seconds"] < stopped["most_seconds"] == Limits().training_s
        assert curve(), "what it has learned stays visible"
        folder = server.state.demonstration.folder
        assert server.post(PATH).json()["run"] != run
        assert not folder.exists(), "a new training replaces the old one"
        process = server.state.demonstration._process
        place = server.state.demonstration.folder.parent
        server.state.close(10)
        assert process.returncode is not None
        assert not place.exists()
        assert server.post(PATH).status_code == 409, "nothing starts on a server that has ended"


@pytest.mark.slow
def test_it_finishes_and_has_learned():
    found = Demonstration(PATIENCE_S * 4)
    found.start("one")
    until(lambda: found.phase != "running", PATIENCE_S * 4)
    log = (found.folder.parent / "log.txt").read_text(encoding="utf-8")
    assert found.phase == "finished", log
    last = [json.loads(line) for line in (found.folder / "journal.jsonl").read_text().splitlines()][-1]
    assert last["valid_accuracy"] > 0.9
    found.close()


@pytest.mark.slow
def test_it_ends_when_its_time_is_over():
    found = Demonstration(0.3)
    found.start("one")
    until(lambda: found.phase == "stopped")
    assert 0.3 <= found.to_json()["seconds"] < PATIENCE_S
    found.close()


def test_the_dates_are_different_and_right():
    pairs = date_pairs(PAIRS, seed=1)
    assert len(set(pairs)) == len(pairs) == PAIRS
    assert date_pairs(5, seed=1) == pairs[:5] != date_pairs(5, seed=2)
    known = {Pair(*pair) for pair in date_pairs(366 * 8, seed=3)}
    assert Pair("二月二十九日", "the twenty-ninth of February") in known
    assert Pair("七月七日星期二", "Tuesday, the seventh of July") in known
