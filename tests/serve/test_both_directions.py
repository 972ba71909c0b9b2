"""A model that goes both ways: which way is told by the languages that are asked for, or by each text."""

import json
import threading

import pytest
import torch

import regard
from regard.bundle import save_bundle
from regard.config import DecodingConfig, ModelConfig, TaskConfig
from regard.model.build import build
from regard.tasks.loaded.translator import LoadedTranslator
from regard.text import detection
from regard.text.vocabularies.subwords import Subwords, learn_subwords
from tests.engine.talking import PAIRS
from tests.model.small import stirred
from tests.serve.running import serving

TEXTS = ["三月五日", "the fifth of May", "五月"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """It has learned nothing, so that what it says depends on every token, the tag among them."""
    texts = (text for pair in PAIRS["train"] for text in pair)
    subwords = Subwords(learn_subwords(texts, vocab_size=600, tags=("zh", "en")))
    sizes = {"d_model": 16, "n_heads": 2, "d_ff": 16, "encoder_layers": 1, "decoder_layers": 1}
    torch.manual_seed(3)
    model = stirred(build(ModelConfig(vocab_size=subwords.vocab_size, max_length=61, **sizes)))
    task = TaskConfig(source="zh", target="en", both_directions=True)
    place = tmp_path_factory.mktemp("both")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REGARD_CACHE", str(place / "cache"))
        about = {"decoding": DecodingConfig(extra_length=5), "task": task}
        yield save_bundle(place / "both", model, subwords=subwords.model, **about)


@pytest.fixture(scope="module")
def both(folder):
    with serving([folder], engine="ctranslate2") as found:
        yield found


def test_both_languages_are_listed(both):
    assert both.get("/languages").json() == [
        {"code": "zh", "name": "Chinese", "targets": ["en"]},
        {"code": "en", "name": "English", "targets": ["zh"]},
    ]


def test_each_text_goes_its_own_way(both, folder):
    alone = regard.load(folder, engine="ctranslate2")
    items = both.post("/api/v1/translate", text=TEXTS).json()["items"]
    assert [item["target_lang"] for item in items] == ["en", "zh", "en"]
    assert [item["text"] for item in items] == [each.text for each in alone.translate(TEXTS)]


def test_a_language_that_is_asked_for_is_the_one_that_the_model_is_told(both, folder):
    alone = regard.load(folder, engine="ctranslate2")
    found = {
        to: both.post("/api/v1/translate", text="三月五日", target=to).json()["items"][0]["text"]
        for to in ("en", "zh")
    }
    assert found == {to: alone.translate("三月五日", to=to).text for to in ("en", "zh")}
    assert found["en"] != found["zh"]
    scores = [
        both.post("/api/v1/score", source="三月", target="May", to=to).json()["items"][0]["log_prob"]
        for to in ("en", "zh")
    ]
    assert scores[0] != scores[1]
    traced = both.post("/api/v1/traces", source="三月", target="May", to="zh").json()
    assert traced["inputs"]["tokens"][0]["piece"] == "<2zh>"


def test_auto_translates_the_sentences_that_are_not_in_the_language_asked_for(both, folder):
    mixed = "三月五日。四月六日是 May 的前一个月。the fifth of May."
    answer = both.post("/translate", q=mixed, source="auto", target="zh").json()
    alone = regard.load(folder, engine="ctranslate2").translate("the fifth of May.", to="zh").text
    assert answer["translatedText"] == f"三月五日。四月六日是 May 的前一个月。{alone}"
    assert answer["detectedLanguage"]["language"] == "en"
    named = "四月六日是 May 的前一个月。"
    answer = both.post("/translate", q=named, source="auto", target="zh").json()
    assert (answer["translatedText"], answer["detectedLanguage"]["language"]) == (named, "zh")


def test_auto_leaves_what_is_in_the_language_asked_for(both):
    answer = both.post("/translate", q=TEXTS, source="auto", target="en").json()
    assert [each["language"] for each in answer["detectedLanguage"]] == ["zh", "en", "zh"]
    assert answer["translatedText"][1] == TEXTS[1]


def test_a_text_that_does_not_tell_its_language_is_refused_by_a_code_of_its_own(both):
    for path, body in (("translate", {"text": "ᏣᎳᎩ"}), ("traces", {"source": "привет"})):
        answer = both.post(f"/api/v1/{path}", **body)
        assert (answer.status_code, answer.json()["error"]["code"]) == (422, "unclear_language")


FRENCH = "Je ne sais pas où il est."


def test_a_text_in_neither_language_stays_and_says_so_unless_its_source_is_given(both, folder):
    for more in ({}, {"source": "auto"}, {"target": "en"}):
        (item,) = both.post("/api/v1/translate", text=FRENCH, **more).json()["items"]
        assert (item["text"], item["unexpected_language"], item["source_lang"]) == (FRENCH, "fr", "fr")
    (forced,) = both.post("/api/v1/translate", text=FRENCH, source="en").json()["items"]
    alone = regard.load(folder, engine="ctranslate2").translate(FRENCH, source="en")
    assert (forced["text"], forced["unexpected_language"]) == (alone.text, "")
    (usual,) = both.post("/api/v1/translate", text="三月五日").json()["items"]
    assert usual["unexpected_language"] == ""
    answer = both.post("/translate", q=FRENCH, source="auto", target="en").json()
    assert (answer["translatedText"], answer["detectedLanguage"]["language"]) == (FRENCH, "fr")


def test_a_stream_and_a_page_say_so_too(both):
    mixed = f"三月五日。\n{FRENCH}\n五月"
    whole, part, usual = (
        [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: ")]
        for answer in (
            both.post("/api/v1/translate", text=text, stream=True) for text in (FRENCH, mixed, "五月")
        )
    )
    assert [each["unexpected_language"] for each in whole if "unexpected_language" in each] == ["fr"]
    assert [each["unexpected_language"] for each in part if "unexpected_language" in each] == ["fr"]
    assert FRENCH in part[-2]["text"]
    assert [each["unexpected_language"] for each in usual if "unexpected_language" in each] == [""]
    page = f"<p>三月五日</p><p>{FRENCH}</p>"
    for source in ("auto", "zh"):
        html = both.post("/translate", q=page, source=source, target="en", format="html").json()[
            "translatedText"
        ]
        assert (f"<p>{FRENCH}</p>" in html) is (source == "auto")


def test_texts_of_one_direction_are_translated_together_however_certain_it_is(both, monkeypatch):
    calls = []
    translate = LoadedTranslator.translate

    def counted(model, texts, **options):
        calls.append(len(texts))
        return translate(model, texts, **options)

    monkeypatch.setattr(LoadedTranslator, "translate", counted)
    texts = [f"三月{'五' * i}日 {'May ' * (i % 4)}" for i in range(1, 17)]
    items = both.post("/api/v1/translate", text=[*texts, "the fifth of May"], source="auto").json()["items"]
    assert calls == [16, 1]
    certain = [detection.detect(text, ["zh", "en"]).confidence for text in texts]
    assert len(set(certain)) > 4, "the texts must differ in certainty, or this shows nothing"
    assert [item["confidence"] for item in items[:16]] == certain


def test_languages_are_detected_outside_of_the_event_loop_and_by_the_beginning_of_a_text(both, monkeypatch):
    seen = []
    count = detection.words_by_script

    def spied(text):
        seen.append((threading.current_thread().name, len(text)))
        return count(text)

    monkeypatch.setattr(detection, "words_by_script", spied)
    long = "三月五日。" * 2000
    monkeypatch.setattr("regard.serve.work.executor.LARGE", 1 << 20)  # else another process detects them
    for path, body in (
        ("/api/v1/detect", {"text": [long, "May"]}),
        ("/detect", {"q": long}),
        ("/api/v1/translate", {"text": "三月", "source": "auto"}),
        ("/api/v1/translate", {"text": "三月", "stream": True}),
        ("/translate", {"q": "三月", "source": "auto", "target": "en"}),
    ):
        before = len(seen)
        assert both.post(path, **body).status_code == 200
        assert len(seen) > before, path
    assert {name.partition("_")[0] for name, _ in seen} == {"request"}
    assert max(size for _, size in seen) == detection.MOST_CHARACTERS
