"""OpenAI's own client, pointed at us."""

import openai
import pytest


@pytest.fixture(scope="module")
def client(server):
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as found:
        yield found


def ask(client, text, **more):
    messages = [{"role": "system", "content": "Translate."}, {"role": "user", "content": text}]
    return client.chat.completions.create(model="zh-en", messages=messages, **more)


def test_models_are_listed(client):
    assert [model.id for model in client.models.list()] == ["zh-en"]
    assert client.models.retrieve("zh-en").object == "model"
    with pytest.raises(openai.NotFoundError, match="zh-en"):
        client.models.retrieve("gpt")


def test_a_chat_translates_the_last_message(client, offline):
    answer = ask(client, "三月五日")
    assert answer.choices[0].message.content == offline.translate("三月五日").text
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage.prompt_tokens == len(offline.subwords.encode_one("三月五日"))
    parts = [{"type": "text", "text": "三月"}, {"type": "text", "text": "五日"}]
    assert ask(client, parts).choices[0].message.content == answer.choices[0].message.content


def test_completions_of_several_prompts_and_choices(client, offline, sources):
    answer = client.completions.create(model="zh-en", prompt=sources[:3], n=2)
    wanted = [
        text
        for each in offline.translate(sources[:3], n_best=2)
        for text in (each.text, each.alternatives[0].text)
    ]
    assert [choice.text for choice in answer.choices] == wanted
    assert [choice.index for choice in answer.choices] == list(range(6))


def test_streams(client, offline):
    wanted = "".join(offline.stream("三月五日"))
    chunks = list(ask(client, "三月五日", stream=True, stream_options={"include_usage": True}))
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == wanted
    assert chunks[-2].choices[0].finish_reason == "stop"
    assert chunks[-1].usage.completion_tokens > 0
    pieces = client.completions.create(model="zh-en", prompt="三月五日", stream=True)
    assert "".join(piece.choices[0].text for piece in pieces) == wanted


def test_an_output_ends_where_it_is_told_to(client, offline):
    whole = ask(client, "三月五日").choices[0].message.content
    word = whole.split()[1]
    stopped = ask(client, "三月五日", stop=word).choices[0]
    assert stopped.message.content == whole[: whole.index(word)]
    short = ask(client, "三月五日", max_tokens=1).choices[0]
    assert short.finish_reason == "length"
    assert len(offline.subwords.encode_one(short.message.content)) <= 1

    streamed = "".join(offline.stream("三月五日"))
    word = streamed.split()[1]
    chunks = list(ask(client, "三月五日", stop=word, stream=True))
    assert "".join(each.choices[0].delta.content or "" for each in chunks) == streamed.split(word)[0]
    chunks = list(ask(client, "三月五日", max_tokens=2, stream=True))
    assert chunks[-1].choices[0].finish_reason == "length"


def test_a_temperature_draws_and_a_seed_repeats_it(client):
    drawn = [ask(client, "三月五日", temperature=1.5, seed=seed) for seed in (3, 3, 4, 5, 6)]
    texts = [each.choices[0].message.content for each in drawn]
    assert texts[0] == texts[1]
    assert len(set(texts)) > 1


def test_refusals_are_what_the_client_knows(client):
    with pytest.raises(openai.NotFoundError):
        client.completions.create(model="gpt", prompt="三月")
    with pytest.raises(openai.BadRequestError, match="one choice"):
        ask(client, "三月", n=2, stream=True)
    with pytest.raises(openai.BadRequestError, match="role user"):
        client.chat.completions.create(model="zh-en", messages=[{"role": "system", "content": "x"}])


def test_what_the_answer_would_lack_is_refused(client):
    with pytest.raises(openai.APIStatusError, match="logprobs"):
        ask(client, "三月五日", logprobs=True)
    with pytest.raises(openai.APIStatusError, match="logprobs"):
        client.completions.create(model="zh-en", prompt="三月五日", logprobs=0)
    with pytest.raises(openai.APIStatusError, match="echo") as refused:
        client.completions.create(model="zh-en", prompt="三月五日", echo=True)
    assert refused.value.param == "echo"
    assert ask(client, "三月五日", logprobs=False).choices[0].logprobs is None
