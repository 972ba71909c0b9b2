"""The journal of a run over HTTP: what is there, what comes, and what is taken back."""

import json
import threading

import httpx
import numpy as np
import pytest

import regard
from regard.look.trace.probes import Probe, probe_file, write_probes
from regard.serve.http.limits import Limits
from regard.serve.http.metrics import Metrics
from regard.serve.models import load_models
from regard.serve.routes.runs import read_journal
from tests.serve.running import running


def test_runs_and_their_curves(server, run_folder):
    assert server.get("/api/v1/runs").json() == {"runs": [{"id": "zh-en", "model": "zh-en"}]}
    entries = [json.loads(line) for line in (run_folder / "journal.jsonl").read_text().splitlines()]
    assert server.get("/api/v1/runs/zh-en/curve").json() == {"id": "zh-en", "entries": entries}
    assert server.get("/api/v1/runs/none/curve").status_code == 404


def test_a_model_without_a_run(run_folder, tmp_path):
    import shutil

    alone = shutil.copytree(run_folder / "best", tmp_path / "alone")
    registry = load_models([alone], Metrics())
    with running(registry) as server:
        assert server.get("/api/v1/runs").json() == {"runs": []}
        answer = server.get("/api/v1/runs/alone/curve")
        assert (answer.status_code, answer.json()["error"]["param"]) == (404, "run")
    registry.close()


def test_probes_play_attention_through_training(server, run_folder):
    """What the trainer stores at a validation, stored here by hand at two steps."""
    model = regard.load(run_folder)
    stored = [Probe.of_trace(model.look(text, "the third of May")) for text in ("三月", "五月三日")]
    for step in (10, 20):
        path = probe_file(run_folder, step)
        path.parent.mkdir(exist_ok=True)
        write_probes(path, stored)
    told = server.get("/api/v1/runs/zh-en/probes").json()
    assert told["steps"] == [10, 20]
    assert [each["outputs"] for each in told["probes"]] == [each.outputs.to_json() for each in stored]
    one = server.get("/api/v1/runs/zh-en/probes/10/1").json()
    assert one["likeliest"] == list(stored[1].likeliest)
    answer = server.get("/api/v1/runs/zh-en/probes/10/1/attention", kind="cross", layer=0, head=1)
    shape = [int(size) for size in answer.headers["x-shape"].split(",")]
    weights = np.frombuffer(answer.content, "u1").reshape(shape) * float(answer.headers["x-scale"])
    assert np.allclose(weights, stored[1].attention("cross", 0, 1))
    every = server.get("/api/v1/runs/zh-en/probes/20/0/attention", kind="cross", layer=0, head="*")
    assert every.content == stored[0].weights["cross"][0].tobytes()
    for path, wrong in (
        ("11/0", {}),
        ("10/2", {}),
        ("10/0/attention", {"kind": "cross", "layer": 9, "head": 0}),
    ):
        assert server.get(f"/api/v1/runs/zh-en/probes/{path}", **wrong).status_code in (404, 422)


def test_a_line_that_is_being_written_is_left_for_later(tmp_path):
    path = tmp_path / "journal.jsonl"
    path.write_text('{"a": 1}\n{"a": NaN}\n{"a"', encoding="utf-8")
    entries, place = read_journal(path, 0)
    assert (entries, place) == ([{"a": 1}, {"a": None}], path.read_text().index('{"a"', 9 + 11))
    with path.open("a", encoding="utf-8") as file:
        file.write(": 3}\n")
    assert read_journal(path, place)[0] == [{"a": 3}]
    assert read_journal(tmp_path / "none", 5) == ([], 0)


@pytest.mark.slow
def test_events_follow_a_run_that_goes_on_and_is_taken_back(run_folder, tmp_path):
    import shutil

    run = shutil.copytree(run_folder, tmp_path / "live")
    journal = run / "journal.jsonl"
    journal.write_text('{"step": 1}\n')
    registry = load_models([run], Metrics())
    seen, changed = [], threading.Condition()

    def follow(url):
        with httpx.stream("GET", url, timeout=60, trust_env=False) as answer:
            for line in answer.iter_lines():
                if line:
                    with changed:
                        seen.append(line)
                        changed.notify()

    def wait_for(line):
        with changed:
            assert changed.wait_for(lambda: line in seen, 30), f"{line} did not come"

    with running(registry, limits=Limits(followers=1)) as server:
        following = threading.Thread(target=follow, args=(f"{server.url}/api/v1/runs/live/events",))
        following.start()
        wait_for('data: {"step": 1}')
        assert server.get("/api/v1/runs/live/events").status_code == 503
        with journal.open("a") as file:
            file.write('{"step": 2}\n')
        wait_for('data: {"step": 2}')
        journal.write_text('{"step": 1.5}\n')
        wait_for("event: reset")
        wait_for('data: {"step": 1.5}')
    following.join(30)
    assert not following.is_alive()  # a server that stops ends its streams
    registry.close()
