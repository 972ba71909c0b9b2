"""Which way a text goes is asked for, or told by its letters; the model is told by a tag."""

import pytest

from regard.config import TaskConfig
from regard.engine.direction import Direction, Directions
from regard.errors import ConfigError
from regard.text.vocabularies.subwords import Subwords, learn_subwords
from tests.engine.echo import Echo, translator_with
from tests.engine.talking import PAIRS
from tests.refusals import refused

BOTH = TaskConfig(source="zh", target="en", both_directions=True)


@pytest.fixture(scope="module")
def tagged():
    texts = (text for pair in PAIRS["train"] for text in pair)
    return Subwords(learn_subwords(texts, vocab_size=600, tags=("zh", "en")))


@pytest.fixture
def engine():
    return Echo()


@pytest.fixture
def model(tagged, engine):
    return translator_with(lambda: engine, tagged, task=BOTH)


def wanted(tagged, engine):
    """The languages that the engine was asked for, by the tags before its inputs."""
    tags = {tagged.tag_id(language): language for language in ("zh", "en")}
    return [tags[request.ids[0]] for request in engine.requests]


def test_both_directions_are_told_apart_by_tags(tagged):
    there, back = Directions(BOTH, tagged).known
    assert there == Direction("zh", "en", (tagged.tag_id("en"),))
    assert back == Direction("en", "zh", (tagged.tag_id("zh"),))
    (only,) = Directions(TaskConfig(source="zh", target="en"), tagged).known
    assert only.tag == ()


@pytest.mark.parametrize(
    ("options", "languages"),
    [
        ({}, ["en", "zh", "en"]),
        ({"to": "zh"}, ["zh", "zh"]),  # and what is in that language stays as it is
        ({"to": "eng"}, ["en", "en"]),
        ({"source": "en"}, ["zh", "zh"]),
        ({"source": "zh", "to": "en"}, ["en", "en"]),
    ],
)
def test_a_tag_stands_before_each_sentence(model, tagged, engine, options, languages):
    texts = ["三月五日", "two hundred", "7 + 8"]
    assert [result.text for result in model.translate(texts, **options)] == texts
    assert wanted(tagged, engine) == languages
    assert ["".join(model.stream(text, **options)) for text in texts] == texts


def test_a_document_goes_one_way_and_each_of_its_parts_has_the_tag(model, tagged, engine):
    digits = "7" * 19  # 20 tokens, as many as the model reads; and a tag
    result = model.translate(f"# 三月。四月！\n\nMay\n{digits}")
    first, rest = result.text.rsplit("\n", 1)
    assert first == "# 三月。 四月！\n\nMay"
    assert (rest.replace(" ", ""), result.split) == (digits, 2)
    assert set(wanted(tagged, engine)) == {"en"}
    assert max(len(request.ids) for request in engine.requests) <= 20
    assert model.translate("One. Two.").text == "One.Two."


def test_what_is_in_the_language_that_is_wanted_stays_as_it_is(model, engine):
    for text, to in (("你好，世界。\nThanks, 老王!", "zh"), ("Hello, world.\n再见", "en")):
        result = model.translate(text, to=to)
        assert result.text == text
        assert len(engine.requests) == 1
        engine.requests.clear()
    assert model.translate("Hello, world.", to="en").engine == ""
    assert model.translate("三。This is it. 四。", to="en").text == "三。 This is it. 四。"


def test_a_phrase_is_required_as_the_language_of_its_output_is_written(model, engine):
    model.translate("三月", glossary={"三月": "one"})
    model.translate("March", glossary={"March": "one"})
    english, chinese = (request.phrases[0] for request in engine.requests[:2])
    assert english != chinese


@pytest.mark.parametrize(
    ("beginning", "target"),
    [
        ("Attention Is All You Need\n\n本文提出了一种新的网络结构，它只用注意力，不用循环和卷积。", "en"),
        ("你好\nThis is a document about a dog that barks at a cat all day long.", "zh"),
        ('<html lang="en"><body class="the first of many"><p>三月五日</p></body></html>', "en"),
        ("12:30\n***\n", None),
        ("", None),
        ("ᏣᎳᎩ", None),
        ("Je ne sais pas où il est.\nLe chien est dans la maison.", None),
        (f"# A title\n{'word ' * 1000}{'字' * 9000}", "en"),  # the beginning may be longer than a text
    ],
)
def test_the_beginning_of_a_document_shows_its_direction(model, beginning, target):
    found = model.directions.of_document(beginning)
    assert (found and found.target) == target


def test_what_does_not_tell_its_language_is_refused(model):
    with refused("unclear_language", "'ᏣᎳᎩ'", "zh or en", "`to`"):
        model.translate(["一", "ᏣᎳᎩ"])
    assert model.translate("ᏣᎳᎩ", to="en").engine == "echo"
    for asked in ({"to": "fr"}, {"source": "zh", "to": "zh"}):
        with refused("unknown_direction", "from zh into en and from en into zh"):
            model.translate("一", **asked)


def test_a_text_in_none_of_the_languages_stays_and_says_so_unless_the_source_is_given(model, engine):
    for text, language in (("Привет", "ru"), ("Je ne sais pas où il est.", "fr"), ("ここにいます。", "ja")):
        for options in ({}, {"to": "en"}, {"n_best": 2}):
            result = model.translate(text, **options)
            assert (result.text, result.unexpected_language, result.engine) == (text, language, "")
            assert "".join(model.stream(text, **options)) == text
        assert not engine.requests
        forced = model.translate(text, source="en")
        assert (forced.unexpected_language, forced.engine) == ("", "echo")
        engine.requests.clear()
    fine = model.translate(["三月五日", "two hundred", "7 + 8", "OK", ""])
    assert [result.unexpected_language for result in fine] == [""] * 5


def test_a_sentence_in_none_of_the_languages_stays_beside_others(model, engine):
    text = "三月五日。四月六日。\nJe ne sais pas où il est.\n五月"
    result = model.translate(text)
    assert result.text == text.replace("。四", "。 四")
    assert (result.unexpected_language, result.engine) == ("fr", "echo")
    assert len(engine.requests) == 3
    engine.requests.clear()
    streamed = model.stream(text)
    assert "".join(streamed) == result.text
    assert streamed.result.unexpected_language == "fr"
    assert model.translate(text, source="zh").unexpected_language == ""
    assert len(engine.requests) > 3, "the French sentence is translated, too"


def test_a_model_of_one_direction_reads_its_source_language(tagged):
    one = translator_with(Echo, tagged, task=TaskConfig(source="zh", target="en"))
    assert one.translate("Where is the dog?").unexpected_language == "en"
    assert one.translate("iPhone 15 Pro").unexpected_language == ""
    unknown = translator_with(Echo, tagged, task=TaskConfig())
    assert unknown.translate("Je ne sais pas où il est.").unexpected_language == ""
    assert one.translate_lines(["Where is the dog?"]).how.startswith("echo")


def test_a_source_is_scored_with_its_tag(model, tagged):
    read = []

    class Scorer(Echo):
        def score(self, sources, targets):
            read.extend(sources)
            return super().score(sources, targets)

    scorer = translator_with(Scorer, tagged, task=BOTH)
    scorer.score(["一", "one"], ["one", "一"])
    scorer.score(["一"], ["一"], to="zh")
    tags = [tagged.tag_id(language) for language in ("en", "zh", "zh")]
    assert [ids[0] for ids in read] == tags
    assert read[0] == model.read("一") == (tags[0], *tagged.encode_one("一").tolist())
    with refused("too_long", "pair 1", "21 tokens"):
        scorer.score(["7" * 19], ["one"])


def test_two_directions_are_of_two_languages():
    with pytest.raises(ConfigError, match="both_directions needs two languages, and both are en"):
        TaskConfig(source="en", target="en", both_directions=True)
