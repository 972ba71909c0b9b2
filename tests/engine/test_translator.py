"""Text in, text out: alone, together or as it comes, the same; and nothing goes missing unseen."""

import random
import re
from dataclasses import replace
from itertools import count, islice
from unicodedata import normalize

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import regard
from regard.engine.engines.protocol import Request
from regard.errors import RequestError
from regard.tasks.loaded import runnable as module
from regard.text.vocabularies.vocabulary import whole_characters
from tests.engine.echo import Echo, translator_with
from tests.refusals import refused

each_engine = pytest.mark.parametrize("engine", ["torch", "ctranslate2"])


def loaded(talkers, engine):
    quantisation = "float32" if engine == "ctranslate2" else None
    return regard.load(talkers[0], engine=engine, threads=1, quantisation=quantisation)


# --- alone or together -------------------------------------------------------------------------------------


@each_engine
def test_alone_together_in_any_order_or_as_they_come(talkers, sources, engine, monkeypatch):
    model, texts = loaded(talkers, engine), sources[:64]
    together = model.translate(texts)
    assert len({result.text for result in together}) > 32
    assert {result.engine for result in together} == {engine}
    order = random.Random(1).sample(range(64), 64)
    shuffled = model.translate([texts[i] for i in order])
    monkeypatch.setattr(module, "WINDOW_TEXTS", 7)
    others = {
        "alone": [model.translate(text) for text in texts],
        "shuffled": [shuffled[order.index(i)] for i in range(64)],
        "as they come": list(model.translate(iter(texts))),
    }
    for name, results in others.items():
        assert [result.tokens for result in results] == [result.tokens for result in together], name
        assert [result.text for result in results] == [result.text for result in together], name
        expected = pytest.approx([result.score for result in together], abs=1e-4)
        assert [result.score for result in results] == expected, name


def test_one_text_does_not_cost_a_walk_through_the_vocabulary(echo, monkeypatch):
    read, pieces = [], type(echo.subwords).pieces
    monkeypatch.setattr(
        type(echo.subwords), "pieces", lambda self, ids: (read.append(len(ids)), pieces(self, ids))[1]
    )
    assert echo.translate("a cat").text == "a cat"
    assert sum(read) < 20 < echo.subwords.vocab_size


def test_an_iterator_is_read_no_further_than_it_must_be(echo, monkeypatch):
    taken = count()
    endless = (f"text {next(taken)}" for _ in count())
    results = echo.translate(endless)
    assert [result.text for result in islice(results, 5000)] == [f"text {i}" for i in range(5000)]
    assert next(taken) <= 2 * module.WINDOW_TEXTS
    monkeypatch.setattr(module, "WINDOW_CHARACTERS", 100)
    taken = count()
    assert next(echo.translate(f"{next(taken)} {'x' * 40}" for _ in count())).text.startswith("0 ")
    assert next(taken) == 3


@each_engine
def test_scores_are_those_of_the_output_scored_again(talkers, sources, engine):
    model = loaded(talkers, engine)
    results = model.translate(sources[:20], token_scores=True, whole_lines=True)
    ended = [(text, each) for text, each in zip(sources, results, strict=False) if not each.unfinished]
    assert ended
    for text, result in ended:
        assert result.log_prob == pytest.approx(sum(result.token_scores), abs=1e-4)
        (again,) = model.score([text], [result.text])
        if again.tokens == result.tokens:  # an output need not be cut as its text would be
            assert again.token_scores == pytest.approx(result.token_scores, abs=1e-4)
            assert again.log_prob == pytest.approx(result.log_prob, abs=1e-4)


def test_pairs_that_cannot_be_scored_are_named(echo):
    with refused("pair_count_mismatch", "2 sources and 1 targets"):
        echo.score(["a", "b"], ["a"])
    with refused("too_long", "pair 2", "42", "20"):
        echo.score(["7", "7" * 41], ["7", "7"])


# --- layout ------------------------------------------------------------------------------------------------


@given(st.text().map(lambda text: normalize("NFC", text).replace("▁", " ")), st.booleans())
@example("# One. Two!\n\n  - 三。四？ \r\n\t1) x" + "y" * 100 + " \n", False)
def test_a_model_that_echoes_gives_back_any_text(echo, text, whole_lines):
    assert echo.translate(text, whole_lines=whole_lines).text == text
    assert "".join(echo.stream(text, whole_lines=whole_lines)) == text


@pytest.mark.parametrize(
    ("languages", "source", "expected"),
    [
        (("zh", "en"), "一。二。\n三", "一。 二。\n三"),
        (("en", "zh"), "One. Two.  Three.\n Four", "One.Two.  Three.\n Four"),
        (("en", "de"), "One. Two.", "One. Two."),
        (("zh", "ja"), "一。二。", "一。二。"),
        ((None, "en"), "一。二。", "一。二。"),
    ],
)
def test_sentences_are_spaced_as_their_new_language_has_it(subwords, languages, source, expected):
    task = regard.config.TaskConfig(source=languages[0], target=languages[1])
    model = translator_with(Echo, subwords, max_length=61, task=task)
    assert model.translate(source).text == expected
    assert "".join(model.stream(source)) == expected


@pytest.mark.parametrize("text", ["", " ", "\n\n", "😀", "\t--- \n***", "\x00\x07"])
def test_what_has_no_letter_asks_nothing_of_the_model(subwords, text):
    engine = Echo()
    result = translator_with(lambda: engine, subwords).translate(text)
    assert (result.text, result.tokens, result.engine, result.split) == (text, (), "", 1)
    assert engine.requests == []


@pytest.mark.parametrize("options", [{}, {"whole_lines": True}, {"n_best": 2}, {"sample": True}])
def test_code_and_formulas_come_out_whatever_the_model_says(subwords, options):
    class Forgetful(Echo):
        """It says the same of everything."""

        def _output(self, request, i):
            return super()._output(replace(request, ids=tuple(subwords.encode_one("six").tolist())), i)

        def stream(self, _request, _search):
            yield from subwords.encode_one("six").tolist()

    text = "Set `a  b` to $x_1$, or `a  b`.\n\n```\nx  =  1\t\n```\nAnd \\sqrt{d_k} too"
    model = translator_with(Forgetful, subwords, max_length=61)
    for said in (model.translate(text, **options).text, "".join(model.stream(text, **options))):
        first, blank, *code, last = said.split("\n")
        assert first == "six `a  b` six $x_1$six `a  b`."
        assert (blank, code, last) == ("", ["```", "x  =  1\t", "```"], "six \\sqrt{d_k} six")


def test_lines_that_the_model_breaks_are_mended(subwords):
    class Breaker(Echo):
        def decode(self, requests, search):
            return super().decode([Request(ids=self.broken) for _ in requests], search)

        def stream(self, _request, _search):
            yield from (*self.broken, subwords.eos_id)

        broken = tuple(subwords.encode_one("7\n8\u2028").tolist())

    model = translator_with(Breaker, subwords)
    assert model.translate("a\nb").text == "7 8 \n7 8 " == "".join(model.stream("a\nb"))


# --- too long ----------------------------------------------------------------------------------------------


def test_what_is_too_long_is_cut_and_said_to_be(subwords):
    engine = Echo()
    model = translator_with(lambda: engine, subwords)
    text = "7 8, " * 30 + "9" * 50
    result = model.translate(text)
    assert result.text == text
    assert result.split == len(engine.requests) > 5
    assert all(len(request.ids) <= 20 for request in engine.requests)
    assert model.translate("7, 8. 9!").split == 1


def test_what_is_too_long_may_be_an_error(echo):
    with pytest.raises(RequestError, match=r"'7777.*…' has 101 tokens; the model reads at most 20") as caught:
        echo.translate("7" * 100, too_long="error")
    assert caught.value.code == "too_long"
    assert echo.translate("7" * 10, too_long="error").text == "7" * 10


# --- what is asked for -------------------------------------------------------------------------------------


@each_engine
def test_a_prefix_begins_the_text_and_alternatives_follow_the_best(talkers, sources, engine):
    model = loaded(talkers, engine)
    for result in model.translate(sources[:5], prefix="May ", n_best=3, beam_size=3):
        every = [result, *result.alternatives]
        assert len({each.text for each in every}) == len({each.tokens for each in every}) == 3
        assert all(each.text.startswith("May") for each in every)
        assert [each.score for each in every] == sorted((each.score for each in every), reverse=True)
    assert len(model.translate(sources[0], n_best=6).alternatives) == 5


def test_alternatives_of_a_document_are_made_of_those_of_its_sentences(echo):
    result = echo.translate("Aa. Bb\nCc", n_best=2, prefix="P")
    assert (result.text, result.score) == ("P Aa. Bb\nCc", -3.0)
    assert [(each.text, each.score) for each in result.alternatives] == [("P Aa. Bb\nCc", -6.0)]


def test_terms_are_in_every_translation(talkers, sources):
    model = regard.load(talkers[0], engine="torch", threads=1)
    glossary = {"月": "moon", "年": "Anno Domini", "三": "叁"}
    chosen = [text for text in sources if any(term in text for term in glossary)][:9]
    assert len(chosen) == 9
    for text, result in zip(chosen, model.translate(chosen, glossary=glossary, extra_length=30), strict=True):
        assert result.missing == ()
        for term in (target for source, target in glossary.items() if source in text):
            words = rf"\b{term}\b" if term.isascii() else term
            assert re.search(words, result.text, re.IGNORECASE | re.ASCII), result


def test_what_is_kept_is_in_the_translation_letter_for_letter(talkers):
    model = regard.load(talkers[0], engine="torch", threads=1)
    result = model.translate("三月 http://x.org/y 好", keep=[re.compile(r"http\S+"), "好"])
    assert "http://x.org/y" in result.text
    assert "好" in result.text


def test_a_term_that_has_no_room_is_said_to_be_missing(talkers):
    model = regard.load(talkers[0], engine="torch", threads=1)
    result = model.translate("三月", glossary={"三月": "x" * 100, "三": "never looked at", "月": "y"})
    assert result.missing == ("x" * 100,)
    assert result.text


def test_drawing_repeats_under_a_seed_and_takes_torch(talkers, sources):
    model = regard.load(talkers[0], threads=1)
    first, second, third = (
        [each.text for each in model.translate(sources[:5], sample=True, seed=seed)] for seed in (1, 1, 2)
    )
    assert first == second != third
    assert model.translate(sources[0], sample=True).engine == "torch"
    with refused("unsupported_request", "`glossary`", "`sample`"):
        model.translate("三月", sample=True, glossary={"三": "three"})


@each_engine
def test_a_stream_is_the_greedy_translation(talkers, sources, engine):
    model, ends = loaded(talkers, engine), set()
    for text in [text for text in sources if len(text) < 10][:20]:  # too short for a loop, and a second try
        for extra_length in (0, 3):
            greedy = model.translate(text, beam_size=1, extra_length=extra_length)
            stream = model.stream(text, extra_length=extra_length)
            assert "".join(stream) == greedy.text == stream.result.text
            assert stream.result.unfinished == greedy.unfinished
            assert (stream.result.tokens, stream.result.engine) == (greedy.tokens, engine)
            ends.add(greedy.unfinished)
    assert ends == {True, False}
    whole = list(model.stream("三月。\n四月。", glossary={"三": "three"} if engine == "torch" else None))
    assert "\n" in whole
    assert engine != "torch" or "three" in "".join(whole[: whole.index("\n")]).lower()


def test_pieces_of_a_stream_break_no_character(subwords):
    text = "7鑫😀a\u0301é\n 8"
    ids = subwords.encode_one(text).tolist()
    assert len(ids) > len(text)
    assert "".join(whole_characters(subwords, ids)) == subwords.decode(ids)
    assert "\ufffd" not in "".join(whole_characters(subwords, ids))
    spoilt = [i for i in ids if subwords.pieces([i]) != ["<0x91>"]]
    assert "".join(whole_characters(subwords, spoilt)) == subwords.decode(spoilt)
    assert "\ufffd" in subwords.decode(spoilt)


@pytest.mark.parametrize(
    ("text", "options", "code", "places"),
    [
        ("a", {"beam": 3}, "unknown_option", ["'beam'", "to, source, beam_size, n_best,"]),
        ("a", {"beam_size": 0}, "bad_option", ["`beam_size=0`"]),
        ("a", {"too_long": "cut"}, "bad_option", ["`too_long='cut'`"]),
        ("a\ud800", {}, "bad_character", ["character 2", "U+D800"]),
        (["a", 7], {}, "not_a_text", ["int: 7"]),
    ],
)
def test_what_makes_no_sense_is_refused(echo, text, options, code, places):
    with refused(code, *places, error=RequestError):
        echo.translate(text, **options)
