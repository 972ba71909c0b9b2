"""Models of one stack, served: they do what they do without a server."""

import json

import pytest

import regard
from regard.serve.metrics import Metrics
from regard.serve.served import serve_models
from tests.serve.lone import save_lone_models
from tests.serve.running import running
from tests.serve.test_native import events


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return save_lone_models(tmp_path_factory.mktemp("lone"), ["good", "bad"])


@pytest.fixture(scope="module")
def server(folders):
    catalogue = serve_models([folders / "writer", folders / "labeller"], Metrics())
    with running(catalogue) as found:
        yield found
    catalogue.close()


@pytest.fixture(scope="module")
def writer(folders):
    return regard.load(folders / "writer")


def test_models_tell_their_task_and_labels(server):
    about = {each["id"]: each for each in server.get("/api/v1/models").json()["models"]}
    assert (about["writer"]["task"], about["labeller"]["task"]) == ("generate", "classify")
    assert about["labeller"]["labels"] == ["good", "bad"]


def test_texts_are_continued_as_without_a_server(server, writer):
    asked = {"max_tokens": 7, "seed": 5, "temperature": 0.8, "top_k": 40}
    answer = server.post("/api/v1/generate", prompt=["the cat", ""], **asked).json()
    assert [item["text"] for item in answer["items"]] == [
        each.text for each in writer.generate(["the cat", ""], **asked)
    ]
    assert answer["model"] == "writer"
    assert answer["usage"]["output_tokens"] == sum(len(item["tokens"]) for item in answer["items"])


def test_a_stream_gives_the_same_text(server, writer):
    response = server.post("/api/v1/generate", prompt="a dog", max_tokens=9, stream=True)
    told = events(response)
    assert [name for name, _ in told][:1] + [name for name, _ in told][-2:] == ["start", "item", "done"]
    text = writer.generate("a dog", max_tokens=9).text
    assert dict(told)["item"]["text"] == text
    assert "".join(data["text"] for name, data in told if name == "token") == text


def test_past_the_trained_length_is_told_in_words(server):
    answer = server.post("/api/v1/generate", prompt="the", max_tokens=99)
    assert answer.status_code == 422
    assert "let the window slide" in answer.json()["error"]["message"]
    slid = server.post("/api/v1/generate", prompt="the", max_tokens=99, past_length="slide").json()
    assert len(slid["items"][0]["tokens"]) <= 99


def test_texts_are_labelled_as_without_a_server(server, folders):
    texts = ["the cat sat", "a dog", "the mat"]
    answer = server.post("/api/v1/classify", text=texts).json()
    expected = regard.load(folders / "labeller").classify(texts)
    assert [item["label"] for item in answer["items"]] == [each.label for each in expected]
    for item, each in zip(answer["items"], expected, strict=True):
        assert item["probabilities"] == pytest.approx(each.probabilities, abs=1e-5)
    assert server.post("/api/v1/classify", text=["fine", ""]).json()["error"]["message"].startswith("text")


def test_openai_clients_complete_texts(server, writer):
    body = {"model": "writer", "prompt": "the cat", "max_tokens": 5, "temperature": 0, "n": 2}
    answer = server.post("/v1/completions", **body).json()
    expected = writer.generate("the cat", max_tokens=5, temperature=0)
    assert [choice["text"] for choice in answer["choices"]] == [expected.text] * 2
    assert answer["usage"]["completion_tokens"] == 2 * len(expected.tokens)
    lines = server.post("/v1/completions", **body | {"n": 1, "stream": True}).text.split("\n\n")
    chunks = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
    assert "".join(chunk["choices"][0]["text"] for chunk in chunks) == expected.text


@pytest.mark.parametrize(
    ("route", "body"),
    [
        ("/api/v1/translate", {"text": "the cat", "model": "writer"}),
        ("/api/v1/generate", {"prompt": "the cat", "model": "labeller"}),
        ("/api/v1/classify", {"text": "the cat", "model": "writer"}),
        ("/v1/completions", {"prompt": "the cat", "model": "labeller"}),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "hi"}], "model": "writer"}),
    ],
)
def test_what_a_model_is_not_for_is_refused(server, route, body):
    answer = server.post(route, **body)
    assert answer.status_code == 409


def test_they_can_be_looked_into(server):
    for name in ("writer", "labeller"):
        answer = server.post("/api/v1/traces", source="the cat sat", model=name)
        assert answer.status_code == 201, answer.text


def test_the_influence_of_each_token_on_the_label(server, folders):
    made = server.post("/api/v1/traces", source="the cat sat", model="labeller").json()
    told = server.get(f"/api/v1/traces/{made['trace_id']}/influence").json()
    model = regard.load(folders / "labeller")
    expected = model.influence(model.look("the cat sat"))
    assert told["values"] == pytest.approx(expected, abs=1e-5)
    assert len(expected) == len(made["inputs"]["tokens"])
    assert server.get(f"/api/v1/traces/{made['trace_id']}/influence", row=9).status_code == 422
