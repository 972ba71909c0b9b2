"""Bodies, responses and work are bounded, and refused before they cost anything."""

import json
import threading
from dataclasses import fields
from pathlib import Path

import pytest
from pydantic import BaseModel, ValidationError

from regard.serve.http import middleware, schemas
from regard.serve.http.bodies import check_json
from regard.serve.http.keys import KeyRing, new_key
from regard.serve.http.limits import ByteBudget, Limits, read_limits
from regard.serve.routes import openai, tei
from tests.refusals import refused
from tests.serve.running import PATIENCE_S, running
from tests.serve.test_leaving import until

JSON = {"Content-Type": "application/json"}


def test_a_large_response_is_sent_whole(registry, monkeypatch):
    with running(registry) as server:
        whole = server.get("/openapi.json").content
        for piece in (1, 7, len(whole) - 1, len(whole), len(whole) + 1):
            monkeypatch.setattr(middleware, "PIECE", max(piece, len(whole) // 50))
            assert server.get("/openapi.json").content == whole
        until(lambda: not server.state.in_flight.taken, "bytes were not released")


def test_bytes_in_flight_have_a_limit(registry):
    with running(registry, limits=Limits(bytes_in_flight=25_600)) as server:
        server.state.in_flight.take("another client", 25_600)
        answer = server.post("/api/v1/detect", text="x" * 200)
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "busy")
        answer = server.post("/api/v1/detect", text="x" * 20)
        assert answer.status_code == 200, "a client with little is always served"
        server.state.in_flight.release("another client", 25_600)
    with running(registry, limits=Limits(bytes_in_flight_per_client=70_000)) as server:
        answer = server.post("/api/v1/tokenize", text="月" * 20_000)  # whose response is larger
        assert (answer.status_code, answer.json()["error"]["code"]) == (429, "busy")
        assert answer.headers["retry-after"]
        assert server.post("/api/v1/tokenize", text="月").status_code == 200
        until(lambda: not server.state.in_flight.taken, "bytes were not released")


def test_a_budget_counts_by_client():
    budget = ByteBudget(10, 6)
    budget.take("a", 6)
    with refused("busy"):
        budget.take("a", 1)
    budget.take("b", 4)
    with refused("busy"):
        budget.take("b", 1)
    budget.release("a", 5)
    budget.take("b", 2)
    assert budget.taken == 7


@pytest.mark.parametrize(
    "body",
    [
        b'{"text":[' + b"1," * 50_000 + b"1]}",
        b'{"text":[' + b"[]," * 50_000 + b"1]}",
        b'{"text":[' + b'"",' * 50_000 + b'""]}',
        b'{"a":{"b":' * 17 + b"1" + b"}}" * 17,
        b"[" * 100_000,
        b"[[" * 20 + b"]]" * 20,
    ],
)
@pytest.mark.parametrize("path", ["/api/v1/translate", "/v1/completions", "/translate", "/predict"])
def test_a_body_of_many_values_is_not_parsed(server, path, body):
    answer = server.http.post(path, content=body, headers=JSON)
    assert answer.status_code == 413
    assert "Error" not in answer.text


@pytest.mark.parametrize(
    ("text", "is_whole"),
    [
        ("\ud800", False),
        ("a\udc00", False),
        ("\ud83d\\\ude00", False),
        ("\udc00\ud800", False),
        ("\\\ud800", False),
        ("\U0001f600", True),
        ("\U0001f600\U0001f600", True),
        ("\\ud800", True),
        ('"\\"[[[', True),
        ("[" * 99, True),
        ("," * 99_999, True),
    ],
)
def test_half_characters_are_told_from_whole_ones(text, is_whole):
    body = json.dumps({"a": text, text: [text]}).encode()
    if is_whole:
        check_json(body, Limits())
    else:
        with refused("bad_value"):
            check_json(body, Limits())


@pytest.mark.parametrize("body", [b'{"a": "\xed\xa0\x80"}', '{"a": 1}'.encode("utf-16"), b'{"a": "\0"}'])
def test_a_body_in_another_encoding_is_refused(body):
    with refused("bad_json"):
        check_json(body, Limits())


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/v1/translate", {"text": "三月", "glossary": {"\ud800": "x"}}),
        ("/api/v1/translate", {"text": "三月", "keep": ["\ud800"]}),
        ("/api/v1/translate", {"text": "三月", "prefix": "\ud800"}),
        ("/api/v1/translate", {"text": "\ud800", "stream": True}),
        ("/v1/completions", {"model": "zh-en", "prompt": "三月", "stop": "\ud800", "stream": True}),
        ("/translate", {"q": "<p>\ud800", "source": "zh", "target": "en", "format": "html"}),
        ("/translate", {"q": "三月", "source": "zh", "target": "\ud800"}),
        ("/detect", {"q": "\ud800"}),
    ],
)
def test_half_a_character_anywhere_is_refused(server, path, body):
    answer = server.http.post(path, content=json.dumps(body), headers=JSON)
    assert answer.status_code in (400, 422)
    assert "surrogate" in answer.text


def every_request():
    for module in (schemas, openai, tei):
        for each in vars(module).values():
            is_schema = isinstance(each, type) and issubclass(each, BaseModel)
            if is_schema and not each.__name__.endswith(("Item", "Response", "Details", "Usage")):
                yield each


@pytest.mark.parametrize("schema", [*dict.fromkeys(every_request())], ids=lambda each: each.__name__)
def test_a_long_list_of_wrong_items_has_few_errors(schema):
    for name in schema.model_fields:
        for wrong in (None, 1.5, [], {"a": []}, [None] * 9):
            assert n_errors(schema, {name: [wrong] * 300}) < 50, name


def n_errors(schema, values):
    try:
        schema.model_validate(values)
    except ValidationError as error:
        return error.error_count()
    return 0


def test_a_glossary_has_a_limit(server):
    many = {f"k{i}": "v" for i in range(1001)}
    answer = server.post("/api/v1/translate", text="三月", glossary=many)
    assert (answer.status_code, answer.json()["error"]["param"]) == (413, "glossary")
    answer = server.post("/api/v1/translate", text="三月", keep=["x" * 50_001])
    assert (answer.status_code, answer.json()["error"]["param"]) == (413, "glossary")


@pytest.mark.parametrize("key", [1, 1.5, True, [], {}, ["x"], None])
def test_a_key_of_another_type_is_no_key(registry, server, tmp_path, key):
    body = {"q": "三月", "source": "zh", "target": "en", "api_key": key}
    assert server.post("/translate", **body).status_code in (200, 400)
    new_key(tmp_path / "keys", "one")
    with running(registry, keys=KeyRing.of_file(tmp_path / "keys")) as guarded:
        assert guarded.post("/translate", **body).status_code == 401


def test_a_client_may_have_so_many_requests_at_a_time(gate):
    engine, registry = gate
    with running(registry, limits=Limits(waiting_per_client=1)) as server:
        first = threading.Thread(target=server.post, args=("/api/v1/translate",), kwargs={"text": "三月"})
        first.start()
        assert engine.began.acquire(timeout=PATIENCE_S)
        answer = server.post("/api/v1/translate", text="三月")
        assert (answer.status_code, answer.json()["error"]["code"]) == (429, "busy")
        engine.let_all()
        first.join()
        assert server.post("/api/v1/translate", text="三月").status_code == 200


def test_internal_errors_do_not_fill_the_log(server, monkeypatch, caplog):
    def broken(*_):
        raise RuntimeError(f"the message may quote {'t' * 9}")

    monkeypatch.setattr("regard.serve.routes.native.check_texts", broken)
    for _ in range(40):
        assert server.post("/api/v1/detect", text="x").status_code == 500
    logged = [record for record in caplog.records if "failed with" in record.getMessage()]
    assert 1 <= len(logged) <= 2 * middleware.FAILURES_A_MINUTE
    assert "ttt" not in caplog.text


def test_every_limit_is_in_the_table():
    page = Path(__file__).parents[2].joinpath("docs", "serve.md").read_text(encoding="utf-8")
    rows = dict(
        line.strip("| ").split("` | ")[:2]
        for line in page.splitlines()
        if line.startswith("| `") and "` | " in line
    )
    for field in fields(Limits):
        assert f"`{field.name}" in rows, field.name
        shown = rows[f"`{field.name}"].split(" | ")[0]
        value = field.default
        sizes = {"KiB": 1 << 10, "MiB": 1 << 20}
        number, _, unit = shown.partition(" ")
        assert float(number.replace(",", "")) * sizes.get(unit, 1) == value, field.name


def test_limits_are_settings():
    assert read_limits(["body_bytes=7", "write_s=1.5"]) == Limits(body_bytes=7, write_s=1.5)
    with refused("unknown_setting", "body_byte", "body_bytes"):
        read_limits(["body_byte=7"])
    with refused("wrong_type", "limits.beam"):
        read_limits(["beam=many"])
    with refused("bad_value", "limits.beam"):
        read_limits(["beam=0"])
