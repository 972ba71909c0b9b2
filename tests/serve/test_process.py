"""The process for large work: it gives what this process gives, and survives what runs in it."""

import json
import os
import re
import threading
import time

import pytest

from regard.errors import RequestError
from regard.serve.http.errors import ApiError, bad_value, client_gone
from regard.serve.work import process as work_process
from regard.serve.work.executor import LARGE
from regard.serve.work.jobs import RequestJob
from regard.serve.work.process import CallError, WorkProcess
from tests.refusals import refused
from tests.serve.running import PATIENCE_S, running
from tests.serve.test_leaving import until

# --- what is called; the process imports this module ------------------------------------------------------


def context():
    return {"begun": os.getpid()}


def echo(begun, job, *arguments):
    return begun["begun"], os.getpid(), job.client, arguments


def asks(_, job, n):
    return [job.ask("double", i) for i in range(n)]


def count(_, job, n):
    for i in range(n):
        yield job.ask("double", i)


def raises(_, _job, kind):
    if kind == "refusal":
        raise ApiError(429, "Too many.", code="busy", param="x", retry_after=3)
    if kind == "error":
        raise RequestError("`beam_size` is wrong", code="bad_option")
    raise ZeroDivisionError(kind)


def ends(*_):
    os._exit(1)


def searches(_, _job, pattern, text):
    return re.match(pattern, text)


def sleeps_between_checks(_, job):
    while True:
        time.sleep(0.01)
        job.check()


def remembering():
    work_process.TRIM_S = 0.01
    kept = []
    work_process.AT_REST.append(kept.clear)
    return kept


def remembers(kept, _job):
    kept.append("kept")
    return list(kept)


def recalls(kept, _job):
    return list(kept)


def double(what, number):
    assert what == "double", what
    if number == 13:
        raise bad_value("13 is no number.", "number")
    return 2 * number


# --- calls ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def process():
    found = WorkProcess(context)
    yield found
    found.close()
    with refused("shutting_down"):
        found.run(RequestJob(), double, echo)


def test_a_call_runs_in_another_process(process):
    begun, pid, client, arguments = process.run(RequestJob("a"), double, echo, "猫", b"\0", 1.5)
    assert begun == pid != os.getpid()
    assert (client, arguments) == ("a", ("猫", b"\0", 1.5))
    assert process.run(RequestJob(), double, echo)[1] == pid


def test_a_call_asks_the_server_while_others_run(process):
    found = {}

    def call(n):
        found[n] = process.run(RequestJob(f"{n}"), double, asks, n)

    threads = [threading.Thread(target=call, args=(n,)) for n in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert found == {n: [2 * i for i in range(n)] for n in range(12)}


def test_what_a_call_yields_comes_piece_by_piece(process):
    job = RequestJob()
    pieces = process.stream(job, double, count, 10**9)
    assert [next(pieces) for _ in range(5)] == [0, 2, 4, 6, 8]
    pieces.close()  # the call ends, or the next one would not have its turn
    assert list(process.stream(RequestJob(), double, count, 3)) == [0, 2, 4]


def test_errors_arrive_as_they_were_raised(process):
    with refused("busy") as error:
        process.run(RequestJob(), double, raises, "refusal")
    assert (error.value.status, error.value.param, error.value.retry_after) == (429, "x", 3)
    assert str(error.value) == "Too many."
    with refused("bad_option") as error:
        process.run(RequestJob(), double, raises, "error")
    assert type(error.value) is RequestError
    with refused("bad_value"):
        process.run(RequestJob(), double, asks, 14)
    with pytest.raises(CallError) as bug:
        process.run(RequestJob(), double, raises, "a client's text")
    assert bug.value.name == "ZeroDivisionError"
    assert "in raises" in bug.value.places
    assert "a client's text" not in str(bug.value)


def test_a_cancelled_call_ends_and_keeps_its_process(process):
    pid = process.run(RequestJob(), double, echo)[1]
    job = RequestJob()
    threading.Timer(0.1, job.cancel, [client_gone()]).start()
    with refused("client_gone"):
        process.run(job, double, sleeps_between_checks)
    with refused("client_gone"):
        process.run(job, double, echo)
    assert process.run(RequestJob(), double, echo)[1] == pid


def test_a_call_that_cannot_be_cancelled_ends_with_its_process(process, monkeypatch):
    monkeypatch.setattr("regard.serve.work.process.ENDING_S", 0.2)
    pid = process.run(RequestJob(), double, echo)[1]
    job = RequestJob()
    threading.Timer(0.2, job.cancel, [client_gone()]).start()
    with refused("client_gone"):
        process.run(job, double, searches, r"(a|a)*$", "a" * 60 + "b")
    assert process.run(RequestJob(), double, echo)[1] not in (pid, os.getpid())


def test_what_was_kept_for_the_next_call_is_forgotten_at_rest():
    process = WorkProcess(remembering)
    try:
        assert process.run(RequestJob(), double, remembers) == ["kept"]
        until(lambda: process.run(RequestJob(), double, recalls) == [], "it was not forgotten")
    finally:
        process.close()


def test_a_process_that_ends_is_started_again(process):
    pid = process.run(RequestJob(), double, echo)[1]
    with refused("busy"):
        process.run(RequestJob(), double, ends)
    assert process.run(RequestJob(), double, echo)[1] != pid


# --- requests ---------------------------------------------------------------------------------------------

TEXT = "三月五日。四月六日。"


@pytest.fixture(scope="module")
def server(registry):
    with running(registry) as found:
        yield found
        found.state.executor.close()


REQUESTS = {
    "translate": ("/api/v1/translate", {"text": [TEXT, "三月", ""], "scores": True, "alignment": True}),
    "n-best": ("/api/v1/translate", {"text": TEXT, "n_best": 2, "beam": 3}),
    "glossary": ("/api/v1/translate", {"text": TEXT, "glossary": {"三月": "Marvember"}}),
    "stream": ("/api/v1/translate", {"text": TEXT, "stream": True, "check_numbers": False}),
    "score": ("/api/v1/score", {"source": ["三月五日"] * 9, "target": ["March"] * 9}),
    "tokenize": ("/api/v1/tokenize", {"text": TEXT}),
    "detokenize": ("/api/v1/detokenize", {"ids": [7, 9] * 25}),
    "detect": ("/api/v1/detect", {"text": [TEXT, "March"]}),
    "LibreTranslate": ("/translate", {"q": TEXT, "source": "auto", "target": "en", "alternatives": 1}),
    "HTML": ("/translate", {"q": f"<p><b>{TEXT}</b></p>", "source": "zh", "target": "en", "format": "html"}),
    "its detection": ("/detect", {"q": TEXT}),
    "OpenAI": ("/v1/completions", {"model": "zh-en", "prompt": TEXT, "n": 2}),
    "its stream": ("/v1/completions", {"model": "zh-en", "prompt": TEXT, "stream": True}),
    "unclear": ("/api/v1/translate", {"text": "🙂 12", "source": "auto", "stream": True}),
    "refused": ("/api/v1/translate", {"text": [TEXT] * 300}),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_large_requests_get_the_same_answer_in_either_process(server, name):
    path, body = REQUESTS[name]
    apart = large(server, path, body)
    here = server.http.post(path, json=body)
    assert len(here.request.content) < LARGE or name == "refused"
    assert (apart.status_code, _without_ids(apart.text)) == (here.status_code, _without_ids(here.text))
    if name != "refused":
        assert apart.status_code == 200


def large(server, path, body):
    """The answer to a request that is large by the spaces after its JSON."""
    content = json.dumps(body).encode() + b" " * LARGE
    return server.http.post(path, content=content, headers={"Content-Type": "application/json"})


def _without_ids(text):
    """Without what differs between requests; alignments are rounded otherwise in batches of other shapes."""
    rounded = re.sub(r"\d+\.\d+", lambda number: f"{float(number[0]):.3f}", text)
    return re.sub(r'"(id|request_id|created)": ?("[^"]*"|\d+)', "", rounded)


def test_a_large_request_is_prepared_in_another_process_and_decoded_here(server, monkeypatch):
    process = server.state.executor._process
    calls, original = [], process.run

    def run(job, answers, function, *arguments):
        def answer(what, *rest):
            calls.append(what)
            return answers(what, *rest)

        return original(job, answer, function, *arguments)

    monkeypatch.setattr(process, "run", run)
    assert server.post("/api/v1/translate", text="三月").status_code == 200
    assert calls == []
    assert large(server, "/api/v1/translate", {"text": TEXT}).status_code == 200
    assert "decode" in calls


def test_small_requests_are_answered_while_the_process_is_stuck(server, monkeypatch):
    monkeypatch.setattr("regard.serve.work.process.ENDING_S", 0.2)
    monkeypatch.setattr("regard.serve.routes.native._tokens", _stuck)
    answers = []

    def ask():
        answers.append(large(server, "/api/v1/tokenize", {"text": TEXT, "deadline_ms": 1000}))

    stuck = threading.Thread(target=ask)
    stuck.start()
    until(lambda: len(server.state.executor) == 1, "it was not taken on")
    assert server.post("/api/v1/translate", text="三月").status_code == 200
    stuck.join(PATIENCE_S)
    assert answers[0].status_code == 504
    until(lambda: not len(server.state.executor), "the process was not ended")
    assert large(server, "/api/v1/translate", {"text": TEXT}).status_code == 200


def _stuck(_models, _job, _model, _texts):
    return re.match(r"(a|a)*$", "a" * 60 + "b")
