"""Models of one stack, served: they do what they do without a server."""

import json
import math

import numpy as np
import pytest

import regard
from regard.engine.options import GenerateOptions
from regard.look.export.document import describe, steps
from regard.look.interventions.interventions import HeadOff, to_json
from regard.serve.http.errors import client_gone
from regard.serve.work.items import ContinueItem
from regard.serve.work.jobs import RequestJob
from tests.serve.running import serving
from tests.serve.single_stack_models import save_single_stack_models
from tests.serve.test_native import events


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return save_single_stack_models(tmp_path_factory.mktemp("lone"), ["good", "bad"])


@pytest.fixture(scope="module")
def server(folders):
    with serving([folders / "writer", folders / "labeller"]) as found:
        yield found


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


def test_what_comes_next_is_drawn_from_what_is_told(server, writer):
    answer = server.post("/api/v1/next", prompt="the cat", model="writer")
    found = np.frombuffer(answer.content, "<f4")
    assert answer.headers["X-Shape"] == str(len(found))
    assert np.exp(found).sum() == pytest.approx(1, abs=1e-5)
    trace = writer.look("the cat")
    for each in trace.candidates(len(trace.outputs) - 1):
        assert np.exp(found[each.id]) == pytest.approx(each.probability, abs=1e-5)
    text = " ".join(["the cat"] * 50)  # past the trained length, where a window has slid
    assert len(np.frombuffer(server.post("/api/v1/next", prompt=text).content, "<f4")) == len(found)
    assert server.post("/api/v1/next", prompt="the cat", model="labeller").status_code == 409


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
    assert "let the window slide (`past_length: slide`)" in answer.json()["error"]["message"]
    told = dict(events(server.post("/api/v1/generate", prompt="the", max_tokens=99, stream=True)))
    assert "(`past_length: slide`)" in told["error"]["message"]
    answer = server.post("/v1/completions", model="writer", prompt="the", max_tokens=99)
    assert "(`past_length: slide` of /api/v1/generate)" in answer.json()["error"]["message"]
    slid = server.post("/api/v1/generate", prompt="the", max_tokens=99, past_length="slide").json()
    assert len(slid["items"][0]["tokens"]) <= 99


ENDLESS = {"max_tokens": 100_000, "past_length": "slide", "temperature": 0}


def test_a_text_that_nobody_waits_for_any_more_is_not_continued(server, writer):
    job = RequestJob()
    item = ContinueItem(writer.generator, "the cat", GenerateOptions(**ENDLESS), job, lambda: False)
    job.cancel(client_gone())
    (found,) = item.run(None, [item])
    assert len(found.tokens) < 100
    answer = server.post("/api/v1/generate", prompt="the cat", **ENDLESS, deadline_ms=50)
    assert answer.status_code == 504
    assert server.post("/api/v1/generate", prompt="a dog", max_tokens=3).status_code == 200


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
    # OpenAI's clients take 409 for something that passes, and ask again.
    assert answer.status_code == (400 if route.startswith("/v1/") else 409)


def test_openai_clients_may_ask_for_the_likeliest_by_top_p_and_for_seeds_below_0(server, writer):
    body = {"model": "writer", "prompt": "the cat", "max_tokens": 5}
    likeliest = writer.generate("the cat", max_tokens=5, temperature=0).text
    assert server.post("/v1/completions", **body, top_p=0).json()["choices"][0]["text"] == likeliest
    drawn = [server.post("/v1/completions", **body, seed=-3).json()["choices"][0]["text"] for _ in range(2)]
    assert drawn[0] == drawn[1]


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


@pytest.mark.parametrize("name", ["writer", "labeller"])
def test_influence_by_every_method_on_what_one_stack_alone_says(server, name):
    made = server.post("/api/v1/traces", model=name, source="the cat sat").json()
    told = server.get(f"/api/v1/traces/{made['trace_id']}/influences").json()
    (tokens,) = (made[side]["tokens"] for side in ("inputs", "outputs") if made[side])
    assert {len(each["values"]) for each in told["methods"].values()} == {len(tokens)}


def test_the_label_to_look_at_can_be_named(server, folders):
    model = regard.load(folders / "labeller")
    intact = model.look("the cat sat")
    other = next(label for label in model.labels if label != model.classify("the cat sat").label)
    named = model.look("the cat sat", other)
    assert named.targets == (1 - intact.targets[0],)
    assert math.exp(intact.log_probs[0]) + math.exp(named.log_probs[0]) == pytest.approx(1, abs=1e-5)
    made = server.post("/api/v1/traces", source="the cat sat", target=other, model="labeller").json()
    assert [each["text"] for each in made["wanted"]] == [other]
    answer = server.post("/api/v1/traces", source="the cat sat", target="goof", model="labeller")
    assert "did you mean good?" in answer.json()["error"]["message"]


def test_a_label_whose_number_is_that_of_a_token_keeps_its_name(tmp_path):
    labels = ["a", "b", "c", "d", "e"]
    model = regard.load(save_single_stack_models(tmp_path, labels) / "labeller")
    (special,) = {token.id for token in model.look("the cat").inputs.tokens if token.special} & set(range(5))
    trace = model.look("the cat", labels[special])
    assert [each["text"] for each in describe(trace)["wanted"]] == [labels[special]]
    assert steps(trace)[0]["chosen"]["text"] == labels[special]


def test_a_label_without_some_heads(server, folders):
    model, off = regard.load(folders / "labeller"), [HeadOff(kind="encoder", layer=0, head=1)]
    asked = {"source": "the cat sat", "model": "labeller", "interventions": [to_json(off)], "effects": True}
    answer = server.post("/api/v1/ablate", **asked).json()
    found = model.classify("the cat sat")
    assert answer["intact"]["text"] == found.label
    assert answer["intact"]["labels"] == pytest.approx(found.probabilities, abs=1e-5)
    forced = model.look("the cat sat", found.label, interventions=off)
    (item,) = answer["items"]
    assert item["log_prob_of_intact"] == pytest.approx(forced.log_probs[0], abs=1e-5)
    change = item["log_prob_of_intact"] - answer["intact"]["log_prob"]
    assert answer["effects"]["encoder"][0][1] == pytest.approx(change, abs=1e-4)


def test_a_continuation_of_a_steered_model(server, writer):
    vector = np.linspace(-3, 3, writer.bundle.config.d_model).tolist()
    steer = {"op": "add", "at": "decoder.layers.0.add_and_norm.1.output", "values": [vector], "scale": 4}
    answer = server.post("/api/v1/ablate", source="the cat", model="writer", interventions=[[steer]]).json()
    (item,) = answer["items"]
    assert item["text"] != answer["intact"]["text"]
    # Greedy and cached: each token is the most likely one of the changed model that reads the whole text.
    subwords = writer.subwords
    prompt = subwords.encode_one("the cat").tolist()
    added = []
    while len(added) < 24:
        trace = writer.look([*prompt, *added], interventions=[steer])
        if (best := trace.candidates(-1)[0].id) == subwords.eos_id:
            break
        added.append(best)
    assert item["text"] == subwords.decode([*prompt, *added])[len(subwords.decode(prompt)) :]


def test_a_continuation_without_some_heads(server, writer):
    off = [HeadOff(kind="decoder", layer=0, head=head) for head in range(3)]
    asked = {"source": "the cat", "model": "writer", "interventions": [to_json(off)], "effects": True}
    answer = server.post("/api/v1/ablate", **asked).json()
    whole = writer.generate("the cat", max_tokens=24, temperature=0)
    assert answer["intact"]["text"] == whole.text
    assert answer["intact"]["log_prob"] == pytest.approx(sum(whole.token_scores), abs=1e-3)
    (item,) = answer["items"]
    assert item["log_prob_of_intact"] != pytest.approx(answer["intact"]["log_prob"], abs=1e-3)
    one = server.post("/api/v1/ablate", **asked | {"interventions": [to_json(off[:1])]}).json()
    change = one["items"][0]["log_prob_of_intact"] - one["intact"]["log_prob"]
    assert answer["effects"]["decoder"][0][0] == pytest.approx(change, abs=1e-3)
    full = server.post("/api/v1/ablate", source="the cat sat on the mat " * 9, model="writer")
    assert full.status_code in (413, 422)
