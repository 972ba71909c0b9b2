"""The journal of a run over HTTP: what is there, what comes, and what is taken back."""

import json
import shutil
import threading

import httpx
import numpy as np
import pytest

from regard.loaded import load
from regard.look.interventions import Uniform
from regard.look.probes import Probe, probe_file, write_probes
from regard.serve.metrics import Metrics
from regard.serve.routes.runs import read_journal
from regard.serve.served import serve_models
from tests.serve.running import running


def test_runs_and_their_curves(server, run_folder):
    assert server.get("/api/v1/runs").json() == {"runs": [{"id": "zh-en", "model": "zh-en"}]}
    entries = [json.loads(line) for line in (run_folder / "journal.jsonl").read_text().splitlines()]
    assert server.get("/api/v1/runs/zh-en/curve").json() == {"id": "zh-en", "entries": entries}
    assert server.get("/api/v1/runs/none/curve").status_code == 404


def test_a_model_without_a_run(run_folder, tmp_path):
    import shutil

    alone = shutil.copytree(run_folder / "best", tmp_path / "alone")
    catalogue = serve_models([alone], Metrics())
    with running(catalogue) as server:
        assert server.get("/api/v1/runs").json() == {"runs": []}
        answer = server.get("/api/v1/runs/alone/curve")
        assert (answer.status_code, answer.json()["error"]["param"]) == (404, "run")
    catalogue.close()


def test_probes_are_played_through_a_run(server, run_folder, tmp_path):
    assert server.get("/api/v1/runs/zh-en/probes").json()["steps"] == []
    path = "/api/v1/runs/zh-en/probes/0/attention"
    assert server.get(path, kind="cross", layer=0, head=0).status_code == 404
    run = shutil.copytree(run_folder, tmp_path / "probed")
    (run / "probes").mkdir()
    model = load(run_folder)
    changes = [(), (Uniform(kind="cross", layer=0, head=2),)]
    found = [Probe.of_trace(model.look("三月五日", "May", interventions=each)) for each in changes]
    for step, probe in enumerate(found):
        write_probes(probe_file(run, step * 10), [probe, probe])
    write_probes(probe_file(run, 20), [found[1]])
    catalogue = serve_models([run], Metrics())
    with running(catalogue) as probed:
        told = probed.get("/api/v1/runs/probed/probes").json()
        assert told["steps"] == [0, 10, 20]
        (probe,) = told["probes"]
        assert (probe["inputs"], probe["sizes"]["cross"]) == (found[0].inputs.texts, [1, 3])
        assert probe["likeliest"] == [list(each.likeliest) for each in (*found, found[1])]
        path = "/api/v1/runs/probed/probes/0/attention"
        answer = probed.get(path, kind="cross", layer=0, head=2)
        shape = [int(size) for size in answer.headers["x-shape"].split(",")]
        played = np.frombuffer(answer.content, "u1").reshape(shape) * float(answer.headers["x-scale"])
        expected = [each.attention("cross", 0, 2) for each in (*found, found[1])]
        np.testing.assert_allclose(played, expected, atol=1e-6)
        assert probed.get(path, kind="cross", layer=9, head=0).status_code == 422
        assert probed.get(path.replace("/0/", "/1/"), kind="cross", layer=0, head=0).status_code == 404
    catalogue.close()


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
    catalogue = serve_models([run], Metrics())
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

    with running(catalogue) as server:
        following = threading.Thread(target=follow, args=(f"{server.url}/api/v1/runs/live/events",))
        following.start()
        wait_for('data: {"step": 1}')
        with journal.open("a") as file:
            file.write('{"step": 2}\n')
        wait_for('data: {"step": 2}')
        journal.write_text('{"step": 1.5}\n')
        wait_for("event: reset")
        wait_for('data: {"step": 1.5}')
    following.join(30)
    assert not following.is_alive()  # a server that stops ends its streams
    catalogue.close()
