"""Clients of text-embeddings-inference: texts in, labels with scores out, in its shapes."""

import math

import pytest

import regard
from regard.engine.options import ClassifyOptions
from regard.serve.http.limits import Limits
from regard.serve.http.metrics import Metrics
from regard.serve.models import load_models
from tests.serve.running import running
from tests.serve.single_stack_models import save_single_stack_models

LONG = "the cat sat on the mat " * 9


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return save_single_stack_models(tmp_path_factory.mktemp("tei"), ["good", "bad"])


@pytest.fixture(scope="module")
def registry(folders):
    found = load_models([folders / "writer", folders / "labeller"], Metrics())
    yield found
    found.close()


@pytest.fixture(scope="module")
def server(registry):
    with running(registry) as found:
        yield found


@pytest.fixture(scope="module")
def labeller(folders):
    return regard.load(folders / "labeller")


def scores(items):
    return {item["label"]: item["score"] for item in items}


@pytest.mark.parametrize("inputs", ["the cat sat", ["the cat sat"]])
def test_one_text_has_its_labels_the_likeliest_first(server, labeller, inputs):
    answer = server.post("/predict", inputs=inputs).json()
    assert scores(answer) == pytest.approx(labeller.classify("the cat sat").probabilities, abs=1e-6)
    assert [item["score"] for item in answer] == sorted((item["score"] for item in answer), reverse=True)
    assert all(item.keys() == {"score", "label"} for item in answer)


def test_a_batch_has_an_answer_for_each_text(server, labeller):
    texts = ["the cat sat", "a dog", "the mat"]
    answer = server.post("/predict", inputs=[[text] for text in texts]).json()
    expected = [each.probabilities for each in labeller.classify(texts)]
    assert [scores(each) for each in answer] == [pytest.approx(each, abs=1e-6) for each in expected]
    assert server.post("/predict", inputs=[["a dog"]]).json() == [
        server.post("/predict", inputs="a dog").json()
    ]


def test_raw_scores_are_what_the_softmax_is_taken_of(server, labeller):
    raw = scores(server.post("/predict", inputs="a dog", raw_scores=True).json())
    total = sum(map(math.exp, raw.values()))
    assert {label: math.exp(score) / total for label, score in raw.items()} == pytest.approx(
        labeller.classify("a dog").probabilities, abs=1e-6
    )
    logits = labeller.classifier.raw_scores(["a dog"], ClassifyOptions())
    assert raw == pytest.approx(logits[0], abs=1e-6)


def test_a_text_that_is_too_long_is_refused_unless_it_may_be_cut(server, labeller):
    answer = server.post("/predict", inputs=LONG)
    assert answer.status_code == 413
    assert answer.json()["error_type"] == "validation"
    assert "`truncate: true`" in answer.json()["error"]
    cut = server.post("/predict", inputs=LONG, truncate=True).json()
    assert scores(cut) == pytest.approx(labeller.classify(LONG, too_long="cut").probabilities, abs=1e-6)
    native = server.post("/api/v1/classify", text=LONG)
    assert (native.status_code, native.json()["error"]["code"]) == (413, "too_large")


@pytest.mark.parametrize(
    ("body", "status", "kind", "says"),
    [
        ({"inputs": ["a", "b"]}, 422, "tokenizer", '[["one"], ["two"]]'),
        ({"inputs": [["a", "b"]]}, 422, "tokenizer", "Pairs"),
        ({"inputs": []}, 422, "tokenizer", "inputs"),
        ({"inputs": ""}, 422, "tokenizer", "empty"),
        ({"inputs": "a", "truncation_direction": "Left"}, 422, "tokenizer", "truncation_direction"),
        ({"inputs": "a", "model": "writer"}, 424, "backend", "writer"),
        ({}, 422, "tokenizer", "inputs"),
    ],
)
def test_what_is_refused_has_the_shape_of_its_errors(server, body, status, kind, says):
    answer = server.post("/predict", **body)
    assert answer.status_code == status
    assert answer.json().keys() == {"error", "error_type"}
    assert answer.json()["error_type"] == kind
    assert says in answer.json()["error"]
    assert answer.headers["x-request-id"]


def test_too_many_texts_and_no_classifier(registry, folders):
    with running(registry, limits=Limits(items=2)) as small:
        answer = small.post("/predict", inputs=[["a"]] * 3)
        assert (answer.status_code, answer.json()["error_type"]) == (413, "validation")
    writers = load_models([folders / "writer"], Metrics())
    with running(writers) as alone:
        assert alone.post("/predict", inputs="a").status_code == 424
    writers.close()


def test_health_as_the_open_inference_protocol_asks_for_it(server, registry):
    assert server.get("/v2/health/live").json() == {"live": True}
    assert server.get("/v2/health/ready").json() == {"ready": True}
    assert server.get("/v2/models/labeller/ready").json() == {"name": "labeller", "ready": True}
    absent = server.get("/v2/models/nobody/ready")
    assert absent.status_code == 404
    assert "nobody" in absent.json()["error"]
    with running(registry) as closing:
        closing.state.executor.draining = True
        assert closing.get("/v2/health/live").status_code == 200
        for path in ("/v2/health/ready", "/v2/models/labeller/ready"):
            answer = closing.get(path)
            assert (answer.status_code, answer.json()["ready"]) == (503, False)
