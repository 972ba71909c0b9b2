"""`regard serve --ray`: replicas on a real cluster, asked by a real client; one of them is killed."""

import signal
import subprocess
import sys
import threading
import time

import httpx
import pytest

import regard
from regard.cli import main
from regard.serve.http.keys import new_key

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("ray")]
PATIENCE_S = 120


def read_address(lines):
    said = []
    for line in lines:
        if "serving at" in line:
            return line.split()[-1]
        said.append(line)
    raise AssertionError("the server did not start: " + "".join(said))


@pytest.fixture(scope="module")
def http(cluster, talker, folder):
    """A client that shows a key; the server is a process that has joined the cluster by its address."""
    key = new_key(folder / "keys", "test")
    address = cluster.get_runtime_context().gcs_address
    words = ["serve", talker, "--ray", address, "--replicas", "2", "--port", "0", "--keys", folder / "keys"]
    command = [sys.executable, "-m", "regard", *map(str, words)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        place = read_address(process.stderr)
        told = []
        reading = threading.Thread(target=lambda: told.extend(process.stderr))
        reading.start()
        headers = {"Authorization": f"Bearer {key}"}
        with httpx.Client(base_url=place, headers=headers, timeout=PATIENCE_S, trust_env=False) as client:
            yield client
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0
        reading.join()
    assert told == []


def replicas(cluster):
    """The actors that translate, by name."""
    named = cluster.util.list_named_actors(all_namespaces=True)
    return {each["name"]: each["namespace"] for each in named if "::regard#regard#" in each["name"]}


def test_replicas_answer_as_one_server_does(http, talker, sources):
    answers = [http.post("/api/v1/translate", json={"text": text}) for text in sources[:6]]
    assert [answer.status_code for answer in answers] == [200] * 6
    alone = regard.load(talker, threads=1).translate(sources[:6])
    assert [answer.json()["items"][0]["text"] for answer in answers] == [each.text for each in alone]
    assert http.get("/readyz").json() == {"status": "ready", "models": [talker.name]}
    assert "default-src 'none'" in http.get("/").headers["Content-Security-Policy"]


def test_a_stream_comes_in_pieces(http):
    body = {"text": "三月", "stream": True}
    with http.stream("POST", "/api/v1/translate", json=body) as events:
        names = [line.removeprefix("event: ") for line in events.iter_lines() if line.startswith("event")]
    assert (names[0], names[-2:]) == ("start", ["item", "done"])
    assert "token" in names


def test_errors_have_their_shape_and_one_number(http):
    answer = http.post("/api/v1/translate", json={"text": "三", "beam": 99})
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["param"]) == (422, "bad_value", "beam")
    assert answer.headers.get_list("X-Request-Id") == [error["request_id"]]
    assert http.get("/nowhere").json()["error"]["code"] == "not_found"


def test_who_shows_no_key_is_refused(http):
    for path in ("/api/v1/translate", "/api/v1/traces"):
        answer = http.post(path, json={"text": "三"}, headers={"Authorization": ""})
        assert (answer.status_code, answer.json()["error"]["code"]) == (401, "no_key")


def test_a_trace_is_found_again(http):
    made = http.post("/api/v1/traces", json={"source": "三月"})
    assert made.status_code == 201
    path = f"/api/v1/traces/{made.json()['trace_id']}"
    shown = [http.get(f"{path}/steps").status_code for _ in range(6)]
    assert shown == [200] * 6
    assert http.delete(path).status_code == 204


def test_a_replica_that_is_killed_is_replaced_and_requests_go_on(cluster, http):
    before = replicas(cluster)
    assert len(before) == 2
    name, namespace = before.popitem()
    cluster.kill(cluster.get_actor(name, namespace))
    until, statuses = time.monotonic() + PATIENCE_S, set()
    while len(now := replicas(cluster)) < 2 or name in now:
        statuses.add(http.post("/api/v1/translate", json={"text": "三月"}).status_code)
        assert time.monotonic() < until, "nobody took its place"
    assert statuses <= {200}
    for _ in range(6):
        assert http.post("/api/v1/translate", json={"text": "三月"}).status_code == 200


@pytest.mark.usefixtures("http")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of Ray Serve's own
def test_a_cluster_that_serves_already_is_left_alone(talker, capsys):
    with pytest.raises(SystemExit):
        main(["serve", str(talker), "--ray", "auto", "--replicas", "1", "--port", "0"])
    assert "error[already_serving]" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--replicas", "2"], "--ray local"),
        (
            ["--ray", "auto", "--replicas", "9"],
            "9 replicas of 1 core each: the Ray cluster has 4 cores in all",
        ),
        (["--ray", "auto", "--host", "0.0.0.0"], "--open"),
        (["--ray", "auto", "--engine", "fast"], "there is no engine 'fast'"),
    ],
)
@pytest.mark.usefixtures("cluster")
def test_what_cannot_be_served_is_refused_before_anything_starts(talker, capsys, words, problem):
    with pytest.raises(SystemExit) as ended:
        main(["serve", str(talker), *words])
    assert (ended.value.code, problem in capsys.readouterr().err) == (2, True)


@pytest.mark.usefixtures("cluster")
def test_two_models_of_one_name_are_refused(talker, capsys):
    with pytest.raises(SystemExit):
        main(["serve", str(talker), str(talker), "--ray", "auto"])
    err = capsys.readouterr().err
    assert "error[duplicate_model]" in err
    assert repr(talker.name) in err
