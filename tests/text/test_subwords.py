import copy
import random
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.text import Subwords, learn_subwords
from regard.text.normalisation import composed
from regard.text.vocabularies.subwords import (
    FEW,
    MOST_SINGLE,
    common_characters,
    fitting_size,
    sample_text,
    usual_coverage,
)
from tests.refusals import refused

TEXT = "the cat sat on a mat while two dogs ran after 12 birds 猫 坐 在 垫子 上 。 ， 鸟 两 只 狗"
WORDS = TEXT.split(" ")


def sentences(count=400, seed=1):
    draw = random.Random(seed)
    return [" ".join(draw.choices(WORDS, k=draw.randint(3, 9))) for _ in range(count)]


@pytest.fixture(scope="module")
def model():
    return learn_subwords(sentences(), 340, tags=["zh", "en"], threads=1)


@pytest.fixture(scope="module")
def subwords(model):
    return Subwords(model)


def test_the_first_ids_are_fixed(subwords):
    assert subwords.pieces(range(6)) == ["<unk>", "<s>", "</s>", "[CLS]", "<2zh>", "<2en>"]
    assert (subwords.bos_id, subwords.eos_id, subwords.cls_id, subwords.tag_id("en")) == (1, 2, 3, 5)
    assert subwords.languages == ["zh", "en"]


@pytest.mark.parametrize(
    "text",
    [
        "the cat sat",
        "  two  spaces ",
        "",
        " ",
        "ＡＢＣ，full width！",
        "Ünseen létters, 𝔘nicode, 😀 and \t tabs",
        "<s> </s> [CLS] <2en> <unk> <0x41>",
        "12345",
        "ﬁ ½ ™ …",
        "a\u3000b\xa0c",
    ],
)
def test_decoding_gives_back_what_was_encoded(subwords, text):
    ids = subwords.encode_one(text)
    assert subwords.decode(ids) == text
    assert 0 not in ids  # nothing is unknown
    assert not set(ids.tolist()) & {1, 2, 3, 4, 5}  # and no text spells a special token


@given(st.text(st.characters(exclude_categories=["Cs", "Mn", "Mc"], max_codepoint=0xD7FF)))
def test_so_it_does_for_any_text(subwords, text):
    text = text.replace("\u2581", "")
    assert subwords.decode(subwords.encode_one(text)) == composed(text)


def test_canonically_equivalent_spellings_are_one(subwords):
    assert subwords.encode_one("cafe\u0301").tolist() == subwords.encode_one("café").tolist()


def test_digits_stand_alone(subwords):
    assert [piece for piece in subwords.pieces(subwords.encode_one("12 birds")) if "1" in piece] == ["1"]


def test_many_texts_at_once_are_as_each_alone(subwords):
    texts = [*sentences(50, seed=2), "", "é"]
    for threads in (1, 3):
        together = subwords.encode(texts, threads=threads)
        assert [ids.tolist() for ids in together] == [subwords.encode_one(text).tolist() for text in texts]
    assert len(texts) > FEW, "or each would be alone"
    few = subwords.encode(texts[:3])
    assert [ids.tolist() for ids in few] == [ids.tolist() for ids in together[:3]]
    assert {ids.dtype for ids in (*few, *together)} == {np.dtype(np.uint16)}
    assert subwords.encode([]) == []


def test_special_tokens_have_no_text(subwords):
    ids = subwords.encode_one("the cat").tolist()
    assert subwords.decode([1, 3, 5, *ids, 2]) == "the cat"
    assert subwords.decode(np.array([], np.uint16)) == ""


@pytest.mark.parametrize("wrong", [-1, 340, 10**12])
def test_an_id_outside_the_vocabulary_is_refused(subwords, wrong):
    last = subwords.vocab_size - 1
    for method in (subwords.decode, subwords.pieces):
        with refused("unknown_id", f"ids: expected numbers from 0 to {last}, got {wrong}"):
            method([1, wrong])


def test_a_tag_that_is_not_there_is_refused(subwords):
    with refused("missing_token", "'de'", "zh, en"):
        subwords.tag_id("de")


@pytest.mark.parametrize("model", [b"", b"no model"])
def test_a_damaged_model_is_refused(model):
    with refused("damaged_vocabulary"):
        Subwords(model)


def test_it_is_rebuilt_from_its_bytes(subwords, model):
    assert subwords.model == model
    assert copy.copy(subwords).encode_one("the cat").tolist() == subwords.encode_one("the cat").tolist()


def test_learning_is_repeatable(model):
    assert learn_subwords(iter(sentences()), 340, tags=["zh", "en"], threads=1) == model


def test_a_text_with_few_pieces_gives_a_smaller_vocabulary():
    learned = Subwords(learn_subwords(["a b", "b a"] * 20, 5000, threads=1))
    assert 256 < learned.vocab_size < 300
    assert learned.decode(learned.encode_one("xyz")) == "xyz"


def test_the_size_is_chosen_from_the_data():
    assert 300 < Subwords(learn_subwords(sentences(), threads=1)).vocab_size <= 1000
    sizes = [fitting_size(characters, 400) for characters in (10**4, 10**5, 10**6, 10**7, 10**8, 10**9)]
    assert sizes == [1000, 3000, 5000, 11000, 24000, 32000]
    assert fitting_size(10**4, 40_000) == 40_000  # the characters must have room


def test_too_small_a_vocabulary_is_refused_with_the_least_that_would_do():
    with refused("vocabulary_too_small", "model.vocab_size = 100") as caught:
        learn_subwords(sentences(), 100, threads=1)
    least = int(str(caught.value).split()[-1])
    assert Subwords(learn_subwords(sentences(), least + 1, threads=1)).vocab_size <= least + 1


@pytest.mark.parametrize("lines", [[], ["", ""]])
def test_no_text_is_refused(lines):
    with refused("no_text"):
        learn_subwords(lines)


def test_a_long_line_is_learned_from_too():
    learned = Subwords(learn_subwords(["猫" * 9000 + "狗" * 9000], 300, threads=1))
    assert {"猫", "狗"} <= set(learned.pieces(range(learned.vocab_size)))  # neither is left to bytes


def test_a_sample_is_random_bounded_and_repeatable():
    lines = [f"line {i}" for i in range(10_000)]
    sample = sample_text(lines, 1, most_lines=1000)
    assert 400 <= len(sample.texts) <= 1000
    assert sample.characters == sum(map(len, lines))
    assert sample == sample_text(iter(lines), 1, most_lines=1000) != sample_text(lines, 2, most_lines=1000)
    numbers = [int(text.split()[1]) for text in sample.texts]
    assert abs(np.mean(numbers) - 5000) < 500  # from all over the text
    assert sum(map(len, sample_text(lines, 1, most_characters=5000).texts)) <= 5000
    assert sorted(sample_text(lines, 1).texts) == sorted(lines)


def test_what_is_there_twice_is_not_learned_from_in_a_row():
    lines = [f"line {i}" for i in range(100)]
    texts = sample_text([*lines, *lines], 1).texts
    followed = list(pairwise(texts))
    assert len(texts) == 200
    assert len(followed) - len(set(followed)) < 5  # SentencePiece takes hours over long repeats


def test_the_rarest_characters_are_left_to_bytes():
    assert common_characters(["a" * 5000 + "b" * 100 + "é"], 0.9995) == {"a", "b"}
    assert common_characters(["a" * 5000 + "b" * 100 + "é"], 0.9999) == {"a", "b", "é"}
    assert common_characters(["a" * 5000 + "b" * 100 + "é"], 0.95) == {"a"}


def test_characters_that_occur_twice_get_subwords_unless_there_are_too_many():
    text = "a" * 900 + "猫猫狗"
    assert common_characters([text], usual_coverage([text])) == {"a", "猫"}
    many = ["".join(map(chr, range(0x4E00, 0x4E00 + MOST_SINGLE + 50)))] * 3 + ["x" * 100_000]
    assert len(common_characters(many, usual_coverage(many))) == MOST_SINGLE


def test_a_text_to_continue_gets_fewer_subwords_and_none_of_its_characters_in_bytes():
    lines = [f"the cat sat on mat {i % 7} while dogs ran after {'abcdefg'[i % 7]} bird" for i in range(200)]
    lines.append("猫坐在垫子上")  # each character once
    translated, continued = (
        Subwords(learn_subwords(lines, threads=1, continues=each)) for each in (False, True)
    )
    assert any(piece.startswith("<0x") for piece in translated.pieces(translated.encode_one("猫").tolist()))
    assert not any(
        piece.startswith("<0x") for piece in continued.pieces(continued.encode_one("猫坐在").tolist())
    )
    assert fitting_size(10**6, 400, 10, 100) == 1400 < fitting_size(10**6, 400)
    assert [fitting_size(n, 2750, 10, 100) for n in (10, 10**5)] == [2800, 3200]
