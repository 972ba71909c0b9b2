"""What cannot be answered is refused with a status, a code and a sentence, in the shape of its family."""

import pytest

from regard.serve.http.limits import Limits
from tests.serve.running import running

SMALL = Limits(body_bytes=4000, characters=50, items=3, beam=4, trace_tokens=8)


JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def small(registry):
    with running(registry, limits=SMALL) as found:
        yield found


def refusal(answer, status, code):
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (status, code)
    assert error["message"].endswith(".")
    assert error["request_id"] == answer.headers["x-request-id"]
    return error


def test_a_body_that_is_too_large(small):
    large = {"text": "x" * 4000}
    refusal(small.http.post("/api/v1/translate", json=large), 413, "too_large")
    pieces = (b"x" * 1000 for _ in range(9))  # which does not say how long it is
    refusal(small.http.post("/api/v1/translate", content=pieces, headers=JSON), 413, "too_large")


def test_texts_that_are_too_long_or_too_many(small):
    long = refusal(small.post("/api/v1/translate", text="月" * 51), 413, "too_large")
    assert "50 characters" in long["message"]
    assert "51" in long["message"]
    many = refusal(small.post("/api/v1/translate", text=["月"] * 4), 413, "too_large")
    assert many["param"] == "text"
    assert small.post("/api/v1/translate", text=["月"] * 3).status_code == 200


def test_a_search_that_is_too_wide(small):
    wide = refusal(small.post("/api/v1/translate", text="月", beam=5), 422, "bad_value")
    assert (wide["param"], wide["message"].partition(" ")[0]) == ("beam", "`beam`")
    assert (
        refusal(small.post("/api/v1/translate", text="月", n_best=5), 422, "bad_value")["param"] == "n_best"
    )


def test_a_refusal_names_the_fields_of_its_family(small):
    narrow = refusal(small.post("/api/v1/translate", text="月", n_best=3, beam=2), 422, "bad_value")
    assert narrow["message"] == "`n_best: 3` needs a `beam` of at least 3."
    error = small.post("/v1/completions", model="zh-en", prompt="月", n=5).json()["error"]
    assert (error["param"], error["message"].partition(" ")[0]) == ("n", "`n`")
    answer = small.post("/translate", q="月", source="zh", target="en", alternatives=4)
    assert answer.json()["error"] == "`alternatives` is 5; the maximum is 4."


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "text"),
        ({"text": 3}, "text"),
        ({"text": []}, "text"),
        ({"text": "月", "beam": 0}, "beam"),
        ({"text": "月", "top_p": 2}, "top_p"),
        ({"text": "月", "wishes": 3}, "wishes"),
        ({"text": "月", "n_best": 3, "beam": 2}, None),
        ({"text": "月", "deadline_ms": 0}, "deadline_ms"),
    ],
)
def test_values_that_cannot_be(server, body, param):
    error = refusal(server.post("/api/v1/translate", **body), 422, "bad_value")
    assert (error["param"] or "").split(".")[0] == (param or "")


def test_a_body_that_is_no_json(server):
    answer = server.http.post("/api/v1/translate", content=b"{", headers=JSON)
    refusal(answer, 400, "bad_json")


@pytest.mark.parametrize(
    "body", [b'{"text": "\xff"}', b"[" * 31, b"\x1f\x8b\x08", b'{"beam": ' + b"9" * 5000 + b"}"]
)
@pytest.mark.parametrize("path", ["/api/v1/translate", "/v1/completions"])
def test_a_body_that_cannot_be_read(server, path, body):
    answer = server.http.post(path, content=body, headers=JSON)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "bad_json")
    assert "JSON" in answer.json()["error"]["message"]


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", None])
def test_a_body_that_is_not_said_to_be_json_is_told_what_to_say(server, kind):
    """As curl sends it, where nobody gives a header."""
    headers = {"Content-Type": kind} if kind else {}
    answer = server.http.post("/api/v1/translate", content='{"text": "三月"}'.encode(), headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (415, "not_json")
    assert "`Content-Type: application/json`" in answer.json()["error"]["message"]


def test_half_a_character_is_refused_in_words(server):
    for path in ("/api/v1/translate", "/api/v1/tokenize", "/api/v1/detect"):
        body = b'{"text": "\\ud800"}'
        answer = server.http.post(path, content=body, headers=JSON)
        assert answer.status_code == 422
    answer = server.http.post(
        "/translate",
        content=b'{"q": "\\ud800", "source": "zh", "target": "en"}',
        headers={"Content-Type": "application/json"},
    )
    assert answer.status_code == 400


def test_what_is_not_there(server):
    refusal(server.get("/api/v1/nothing"), 404, "not_found")
    error = refusal(server.post("/api/v1/translate", text="月", model="de-fr"), 404, "not_found")
    assert "zh-en" in error["message"]
    refusal(server.get("/api/v1/translate"), 405, "wrong_method")


def test_each_family_has_its_own_shape(server):
    libre = server.post("/translate", q="月", source="zh", target="xx")
    assert libre.status_code == 400
    assert list(libre.json()) == ["error"]
    assert isinstance(libre.json()["error"], str)
    openai = server.post("/v1/completions", model="none", prompt="月")
    assert openai.status_code == 404
    assert set(openai.json()["error"]) == {"message", "type", "param", "code"}


def test_a_deadline_is_kept(gate):
    engine, registry = gate
    with running(registry) as server:
        refusal(server.post("/api/v1/translate", text="三月", deadline_ms=50), 504, "deadline")
        engine.let_all()
        assert server.post("/api/v1/translate", text="三月").status_code == 200


def test_a_queue_that_is_full(gate):
    import threading

    engine, registry = gate
    with running(registry, limits=Limits(waiting=2)) as server:
        answers = []
        asking = [
            threading.Thread(
                target=lambda: answers.append(server.post("/api/v1/translate", text="三月").status_code)
            )
            for _ in range(2)
        ]
        for each in asking:
            each.start()
        assert engine.began.acquire(timeout=30)
        while len(server.state.executor) < 2:
            pass
        full = server.post("/api/v1/translate", text="三月")
        refusal(full, 503, "busy")
        assert full.headers["retry-after"] == "1"
        stream = server.post("/api/v1/translate", text="三月", stream=True)
        refusal(stream, 503, "busy")
        assert server.get("/livez").status_code == server.get("/health").status_code == 200
        engine.let_all()
        for each in asking:
            each.join(30)
        assert answers == [200, 200]


def test_what_goes_wrong_here_is_told_without_the_text(gate, offline, caplog):
    engine, registry = gate

    def broken(requests, _search):
        raise RuntimeError(offline.subwords.decode(requests[0].ids))

    engine.decode = broken
    with running(registry) as server:
        error = refusal(server.post("/api/v1/translate", text="三月"), 500, "internal")
    assert error["request_id"] in caplog.text
    assert "RuntimeError" in caplog.text
    assert "三月" not in caplog.text + error["message"]
