"""The attack on a server: what it counts, the bars, and that its requests are what they say."""

import asyncio
import json
import math
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from benchmarks.attack import SCENES
from benchmarks.hostile.access import allowed, cross_site_requests, refused
from benchmarks.hostile.heavy import CHARACTERS, dear_bodies, greedy_request, hard_texts
from benchmarks.hostile.report import (
    COLUMNS,
    Honesty,
    Liveness,
    Result,
    header,
    missed,
    percentile,
    row,
    verdict,
    without_omission,
)
from benchmarks.hostile.scene import Attacker, Tally, Target, post, request
from benchmarks.hostile.strange import odd_requests
from benchmarks.hostile.watch import ANOTHER, MIXED_UP, RIGHT, Answer, Probe, judge
from benchmarks.peers.http_client import Client
from tests.architecture.sources import ROOT

CALM = Result(
    name="scene",
    about="what is sent",
    sent={"a": 3, "b": 2},
    answers={"a": {"200": 2, "422": 1}, "b": {"200": 1}},
    live=Liveness(7, 0.011, 0.013),
    before=700_000_000,
    peak=800_000_000,
    after=710_000_000,
    honest=Honesty(n=100, median=0.05),
    honest_quiet=Honesty(n=100, median=0.04),
    stopped_s=1.3,
)


def test_a_percentile_is_the_nearest_rank():
    values = [5.0, 1.0, 4.0, 2.0, 3.0]
    assert [percentile(values, each) for each in (1, 20, 21, 99, 100)] == [1.0, 1.0, 2.0, 5.0, 5.0]
    assert percentile([], 99) == 0.0


def test_a_stall_counts_for_all_probes_that_were_due_in_it():
    assert without_omission([0.25, 4.0, 0.5], 1.0) == [0.25, 4.0, 3.0, 2.0, 1.0, 0.5]


def test_numbers_of_probes():
    live = Liveness.of([Probe(0.0, 0.01), Probe(0.05, 0.03, "503"), Probe(0.1, 0.02)])
    assert live == Liveness(3, 0.03, 0.03, {"503": 1})


def test_numbers_of_honest_answers():
    outcomes = [(0.1, RIGHT), (0.5, ANOTHER), (0.3, RIGHT), (0.001, "503"), (0.2, MIXED_UP)]
    honest = Honesty.of([Answer(*each) for each in outcomes])
    assert honest == Honesty(5, 1, {"503": 1, MIXED_UP: 1}, 0.3)
    assert math.isinf(Honesty.of([Answer(0.001, "503")]).median)  # a quick refusal is no quick answer


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [("one", MIXED_UP), ("two", RIGHT), ("three", ANOTHER), (503, "503"), (0, "no answer")],
)
def test_an_honest_answer_is_compared_with_the_quiet_one(answer, outcome):
    assert judge(answer, 1, ["one", "two"]) == outcome


def test_a_calm_server_meets_all_bars():
    assert list(missed(CALM)) == []
    assert "1 of 1 scenes met all bars" in verdict([CALM])


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"crash": "exit code -6"}, "exit code -6"),
        ({"errors": 3}, "3 answers of status 500"),
        ({"live": Liveness(7, 0.01, 0.2)}, "/livez took 200 ms"),
        ({"live": Liveness(7, 0.01, 0.01, {"503": 2})}, "/livez failed: 2 × 503"),
        ({"peak": 1_500_000_000}, "memory reached 1,500 MB"),
        ({"after": 777_000_000}, "memory stayed +11%"),
        ({"honest": Honesty(n=100, another=2, median=0.05)}, "2 of 100 honest answers"),
        ({"honest": Honesty(n=100, problems={MIXED_UP: 1}, median=0.05)}, "1 × mixed up"),
        ({"honest": Honesty(n=100, median=0.2)}, "5.0 times as long"),
        ({"log_bytes": 2_000_000}, "log of 2.0 MB"),
        ({"broken": {"form: 200": 5}}, "5 × form: 200"),
        ({"stopped_s": None}, "did not stop"),
        ({"stopped_s": 40.1}, "40.1 s after SIGTERM"),
    ],
)
def test_a_missed_bar_is_named(change, says):
    (bar,) = missed(replace(CALM, **change))
    assert says in bar
    assert f"- {bar}" in verdict([replace(CALM, **change)])


def test_clients_that_get_no_answer_miss_two_bars():
    assert len(list(missed(replace(CALM, honest=Honesty())))) == 2


def test_a_scene_that_only_stops_has_no_bars_of_an_attack():
    stop = replace(CALM, attacked=False, live=Liveness(), honest=Honesty(), honest_quiet=Honesty(), after=0)
    assert list(missed(stop)) == []
    assert row(stop).count("|") == len(COLUMNS) + 1


def test_a_row_has_all_columns():
    assert {line.count("|") for line in [*header().splitlines(), row(CALM)]} == {len(COLUMNS) + 1}
    assert "3 × 200, 1 × 422, 1 × pending" in row(CALM)


def test_results_are_json_also_without_answers():
    result = replace(CALM, honest=Honesty())
    assert json.loads(json.dumps(result.to_json(), allow_nan=False))["honest"]["median"] is None


def test_tallies_of_processes_are_added():
    one, two = Tally(), Tally()
    for tally, outcome in ((one, "200"), (two, "200"), (two, "503")):
        tally.sent["a"] += 1
        tally.answers["a"][outcome] += 1
    one.add(two)
    assert one.sent["a"] == 3
    assert one.answers == {"a": {"200": 2, "503": 1}}


# --- requests -----------------------------------------------------------------------------------------------


def test_a_request_is_written_as_it_is_given():
    written = request("GET /a", "X: 1", "Host: b", host=None)
    assert written == b"GET /a HTTP/1.1\r\nX: 1\r\nHost: b\r\n\r\n"
    head, _, body = post("/a", text="\ud83d").partition(b"\r\n\r\n")
    assert head.endswith(b"Content-Length: 18")
    assert body == b'{"text": "\\ud83d"}'


def test_other_sites_are_to_be_refused_and_own_pages_to_be_served():
    rules = {what: allows for what, _, allows in cross_site_requests(1)}
    assert rules["POST /translate, foreign origin"] is refused
    assert rules["POST /translate, own page"] is allowed
    assert rules["form, no browser"] is allowed
    assert rules["no type, foreign origin"] is refused
    assert "no type, own page" not in rules
    assert (refused(403), refused(200), refused(404), refused(500)) == (True, False, False, False)


def test_heavy_requests_stay_below_the_limits_that_would_refuse_them_at_once():
    sizes = [len(body) for _, _, body in dear_bodies()]
    assert 1 << 19 < sorted(sizes)[len(sizes) // 2] <= max(sizes) <= 2 << 20
    assert all(CHARACTERS // 2 < len(text) <= CHARACTERS for text in hard_texts())
    body = json.loads(greedy_request(("一百", "二百五十"), 1).partition(b"\r\n\r\n")[2])
    assert len(body["text"]) == 256
    assert sum(map(len, body["text"])) <= CHARACTERS


def test_names_of_scenes_and_of_odd_requests_tell_them_apart():
    assert len({scene.name for scene in SCENES}) == len(SCENES)
    assert len({data for _, data in odd_requests()}) > 1_000


# --- over a socket ------------------------------------------------------------------------------------------

ANSWERS = {
    b"length": (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", "200", b"abc"),
    b"chunks": (
        b"HTTP/1.1 201 x\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n",
        "201",
        b"abc",
    ),
    b"continue": (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n", "204", b""),
    b"internal": (
        b'HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n{"code": "internal"}',
        "500 in a stream",
        b'{"code": "internal"}',
    ),
    b"end": (b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nabc", "200", b"abc"),
    b"cut": (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc", "cut", b""),
    b"nothing": (b"", "closed", b""),
}


def test_answers_are_read_and_counted_as_they_end():
    async def serve(reader, writer):
        while line := await reader.readline():
            await reader.readuntil(b"\r\n\r\n")
            name = line.split()[1][1:]
            writer.write(ANSWERS[name][0])
            if name in (b"end", b"cut", b"nothing"):
                break
        writer.close()

    async def ask():
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        attacker, client = Attacker(Target(port, ("127.0.0.1",), ()), 0), Client(port)
        for name, (_, outcome, content) in ANSWERS.items():
            reply = await attacker.ask(
                client, "a", request(f"GET /{name.decode()}"), lambda status: status > 0
            )
            assert (reply.outcome, reply.content) == (outcome, content), name
        client.close()
        server.close()
        await server.wait_closed()
        refused = await attacker.ask(client, "b", request("GET /"))
        assert refused.outcome == "refused"
        return attacker.tally

    # In a thread: Playwright, in other tests of this process, leaves a loop running in this one.
    with ThreadPoolExecutor(1) as thread:
        tally = thread.submit(asyncio.run, ask()).result()
    assert tally.sent == {"a": 7, "b": 1}
    assert tally.broken == {"a: cut": 1, "a: closed": 1}


@pytest.mark.slow
def test_a_short_scene_measures_a_server(tmp_path):
    words = ["--scene", "cross-site", "--seconds", "2", "--settle", "0", "--quiet", "1"]
    command = [sys.executable, "benchmarks/attack.py", *words, "--json", str(tmp_path / "found.json")]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    (scene,) = json.loads((tmp_path / "found.json").read_text())
    assert done.returncode == bool(scene["missed"]), done.stderr
    assert scene["crash"] == ""
    assert scene["stopped_s"] is not None
    in_order = [
        found for what, found in scene["answers"].items() if what.endswith(("no browser", "own page"))
    ]
    assert all(set(found) == {"200"} for found in in_order)
    assert sum(scene["sent"].values()) > 0
    assert 0 < scene["before"] <= scene["peak"]
    assert scene["live"]["n"] > 0
    assert scene["honest"]["n"] > 0
    assert scene["honest"]["median"] > 0
    assert scene["honest"]["problems"] == {}
    assert f"| {scene['name']} |" in done.stdout
