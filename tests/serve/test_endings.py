"""Why a text ended, and how many tokens it took: with a stream as without one, on every route."""

import json

import openai
import pytest
import torch

import regard
from regard.config import ModelConfig
from regard.text.vocabularies.subwords import Subwords, learn_subwords
from tests.serve.running import running, serving
from tests.serve.single_stack_models import SHAPE, save_single_stack_models
from tests.serve.test_leaving import until
from tests.serve.test_native import events

LINES = ["the cat sat on the mat", "a dog sat"] * 20


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A model that generates, and one that translates and never ends an output: both have random weights."""
    folder = save_single_stack_models(tmp_path_factory.mktemp("endings"), ["good", "bad"])
    subwords = Subwords(learn_subwords(LINES, 300))
    torch.manual_seed(5)
    model = regard.Transformer(ModelConfig(vocab_size=subwords.vocab_size, **SHAPE))
    regard.save_bundle(folder / "endless", model, subwords=subwords.model)
    return folder


@pytest.fixture(scope="module")
def server(folders):
    with serving([folders / "writer", folders / "endless"]) as found:
        yield found


@pytest.fixture(scope="module")
def client(server):
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as found:
        yield found


@pytest.fixture(scope="module")
def endings(folders):
    """Options of a text that ends by itself, of one that ends at a stop string, of one that is cut off."""
    writer = regard.load(folders / "writer")
    tried = ({"max_tokens": 20, "seed": seed} for seed in range(500))
    ends = next(each for each in tried if writer.generate("the cat", **each).finish == "end")
    text = writer.generate("the cat", max_tokens=9, seed=3).text
    middle = next(part for part in text.split() if len(part) > 1)
    return {
        "end": ends,
        "stop": {"max_tokens": 9, "seed": 3, "stop": [middle]},
        "length": {"max_tokens": 9, "seed": 3},
    }


@pytest.mark.parametrize("finish", ["end", "stop", "length"])
def test_our_own_route_says_how_a_continuation_ended(server, endings, finish):
    asked = {"prompt": ["the cat", "a"], "model": "writer", **endings[finish]}
    whole = server.post("/api/v1/generate", **asked).json()
    assert whole["items"][0]["finish"] == finish
    told = events(server.post("/api/v1/generate", stream=True, **asked))
    items = [data for name, data in told if name == "item"]
    assert items == [{"i": i, **item} for i, item in enumerate(whole["items"])]
    assert told[-1] == ("done", {"usage": whole["usage"]})
    for i, item in enumerate(items):
        pieces = [data["text"] for name, data in told if name == "token" and data["i"] == i]
        assert "".join(pieces) == item["text"]


@pytest.mark.parametrize("finish", ["end", "stop", "length"])
def test_completions_of_a_generator(client, endings, finish):
    asked = {"model": "writer", "prompt": ["the cat", "a"], "temperature": 1.0, **endings[finish]}
    whole = client.completions.create(**asked)
    chunks = list(client.completions.create(stream=True, stream_options={"include_usage": True}, **asked))
    assert whole.choices[0].finish_reason == ("length" if finish == "length" else "stop")
    for choice in whole.choices:
        mine = [each.choices[0] for each in chunks[:-1] if each.choices[0].index == choice.index]
        assert "".join(each.text for each in mine) == choice.text
        assert [each.finish_reason for each in mine] == [None] * (len(mine) - 1) + [choice.finish_reason]
    assert chunks[-1].usage == whole.usage


def ask(client, model, text, **more):
    return client.chat.completions.create(
        model=model, messages=[{"role": "user", "content": text}], temperature=0, **more
    )


def streamed(client, model, text, **more):
    """The text, finish reason and usage of a streamed chat."""
    chunks = list(ask(client, model, text, stream=True, stream_options={"include_usage": True}, **more))
    choices = [each.choices[0] for each in chunks if each.choices]
    assert all(each.finish_reason is None for each in choices[:-1])
    text = "".join(each.delta.content or "" for each in choices)
    return text, choices[-1].finish_reason, chunks[-1].usage


def test_a_translation_that_was_cut_off_ends_by_length(client, folders):
    model = regard.load(folders / "endless")
    stream = model.stream("the cat")
    text = "".join(stream)
    assert stream.result.unfinished
    assert model.translate("the cat").unfinished
    assert ask(client, "endless", "the cat").choices[0].finish_reason == "length"
    found, reason, usage = streamed(client, "endless", "the cat")
    assert (found, reason) == (text, "length")
    assert usage.completion_tokens == len(model.subwords.encode_one(text))
    pieces = client.completions.create(model="endless", prompt="the cat", stream=True)
    assert [each.choices[0].finish_reason for each in pieces][-1] == "length"


@pytest.mark.parametrize("beam", [1, 3])
def test_a_streamed_translation_has_the_notes_of_the_whole(server, beam):
    asked = {"text": ["the cat", "a dog", "---"], "model": "endless", "beam": beam, "tokens": True}
    whole = server.post("/api/v1/translate", **asked).json()
    told = events(server.post("/api/v1/translate", stream=True, **asked))
    items = [data for name, data in told if name == "item"]
    for i, (item, expected) in enumerate(zip(items, whole["items"], strict=True)):
        other = {"score", "hypotheses", "text", "tokens", "repetitive"}  # a stream has no second attempt
        compared = expected.keys() - (other if beam == 1 else set())
        assert {name: item.get(name) for name in compared} == {name: expected[name] for name in compared}
        assert item["i"] == i
    assert items[0]["unfinished"]
    assert not items[2]["unfinished"]
    usage = told[-1][1]["usage"]
    assert usage["characters"] == whole["usage"]["characters"]
    assert usage["output_tokens"] == sum(len(item["tokens"]) for item in items)


@pytest.mark.parametrize("option", ["scores", "alignment"])
def test_a_stream_does_not_leave_out_what_was_asked_for(server, option):
    asked = {"text": "the cat", "model": "endless", "stream": True, option: True}
    answer = server.post("/api/v1/translate", **asked)
    assert (answer.status_code, answer.json()["error"]["param"]) == (422, option)
    item = dict(events(server.post("/api/v1/translate", beam=2, **asked)))["item"]
    assert item["token_scores" if option == "scores" else "alignment"]


def test_a_limit_counts_tokens_with_a_stream_and_without(client, folders):
    subwords = regard.load(folders / "endless").subwords
    whole, _, _ = streamed(client, "endless", "the cat")
    n_tokens = len(subwords.encode_one(whole))
    assert n_tokens > 9
    for most in range(1, n_tokens + 2):
        text, reason, usage = streamed(client, "endless", "the cat", max_tokens=most)
        assert whole.startswith(text)
        assert len(subwords.encode_one(text)) <= most
        assert usage.completion_tokens == len(subwords.encode_one(text))
        assert reason == "length"
        answer = ask(client, "endless", "the cat", max_tokens=most)
        assert answer.choices[0].finish_reason == "length"
        assert answer.usage.completion_tokens <= most
    text, reason, _ = streamed(client, "endless", "the cat", stop=whole[3:6], max_tokens=n_tokens)
    assert (text, reason) == (whole[: whole.index(whole[3:6])], "stop")


@pytest.mark.parametrize(
    ("field", "value", "neutral"),
    [
        ("best_of", 3, 1),
        ("frequency_penalty", 0.5, 0),
        ("presence_penalty", 0.5, 0.0),
        ("logit_bias", {"5": 1}, {}),
        ("suffix", "end", None),
        ("response_format", {"type": "json_object"}, {"type": "text"}),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_what_would_be_ignored_is_refused(server, field, value, neutral, stream):
    asked = {"model": "writer", "prompt": "the cat", "max_tokens": 3, "stream": stream}
    refusal = server.post("/v1/completions", **asked, **{field: value})
    assert (refusal.status_code, refusal.json()["error"]["param"]) == (400, field)
    assert server.post("/v1/completions", **asked, **{field: neutral}).status_code == 200
    assert server.post("/v1/completions", **asked, user="me").status_code == 200


def test_a_stream_that_ended_at_its_limit_was_not_left_by_its_client(gate):
    engine, registry = gate
    with running(registry) as server:
        engine.go_on.release(4)  # and the next token never comes
        asked = {"model": "gated", "prompt": "三月五日四月六日七月", "stream": True, "max_tokens": 1}
        body = server.post("/v1/completions", **asked).text
        assert '"finish_reason": "length"' in body
        assert body.endswith("data: [DONE]\n\n")
        until(lambda: not len(server.state.executor), "the work did not end")
        assert b"regard_cancelled_total{" not in server.state.metrics.page()
        engine.let_all()


@pytest.mark.parametrize("part", [{"type": "image_url", "image_url": {"url": "x"}}, {"type": "text"}])
def test_a_part_of_a_message_that_is_no_text_is_refused(server, part):
    content = [{"type": "text", "text": "the cat"}, part]
    messages = [{"role": "user", "content": content}]
    answer = server.post("/v1/chat/completions", model="endless", messages=messages)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "messages")


def test_every_event_is_json_on_one_line(server):
    body = server.post("/v1/completions", model="writer", prompt="the", max_tokens=5, stream=True).text
    lines = [line for line in body.split("\n\n") if line]
    assert lines[-1] == "data: [DONE]"
    assert all(json.loads(line.removeprefix("data: "))["id"] for line in lines[:-1])
