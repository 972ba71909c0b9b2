"""The built-in corpus keeps its promises: one translation each, splits that never meet, the same for ever."""

import re
from hashlib import sha256
from itertools import islice

import pytest

from regard.data.numerals import LARGEST, Pair, pairs, sample, split_of
from regard.data.numerals.quantities import Dice
from regard.data.numerals.sentences import PHRASES, SENTENCES
from regard.data.numerals.words import NOUNS
from tests.refusals import refused


@pytest.fixture(scope="module")
def some_pairs() -> list[Pair]:
    return list(islice(pairs(1, "train"), 20_000))


def assert_one_translation_each(many: list[Pair]) -> None:
    distinct = set(many)
    for side in ("chinese", "english"):
        seen: dict[str, Pair] = {}
        for pair in distinct:
            other = seen.setdefault(getattr(pair, side), pair)
            assert other == pair, f"{other} and {pair}"


def test_each_sentence_has_one_translation(some_pairs):
    assert_one_translation_each(some_pairs)


@pytest.mark.slow
@pytest.mark.parametrize("largest", [1_000, LARGEST, 10**12 - 1])
def test_each_of_very_many_sentences_has_one_translation(largest):
    assert_one_translation_each(list(islice(pairs(2, "train", largest=largest), 200_000)))


def test_no_two_frames_can_say_the_same():
    """Each frame is drawn from alone, so that rare forms meet too."""
    dice, owner = Dice(4, LARGEST), {}
    for frame in set(PHRASES) | set(SENTENCES):
        for pair in {frame(dice) for _ in range(500)}:
            for text in pair:
                assert owner.setdefault(text, frame) is frame, text


def test_two_translations_would_be_found():
    with pytest.raises(AssertionError, match="两本书"):
        assert_one_translation_each([Pair("两本书", "two books"), Pair("两本书", "a couple of books")])


def test_text_is_clean(some_pairs):
    for chinese, english in some_pairs:
        assert re.fullmatch(r"[\u4e00-\u9fff]+[。？]?", chinese), chinese
        assert re.fullmatch(r"[A-Za-z][a-z]*(?:[ '-][A-Za-z][a-z]*)*[.?]?", english), english
        assert {"。": ".", "？": "?"}.get(chinese[-1]) == (english[-1] if english[-1] in ".?" else None)
        assert english[-1].isalpha() or english[0].isupper()


def test_sentences_are_short(some_pairs):
    words = sorted(len(pair.english.split()) for pair in some_pairs)
    assert words[len(words) * 9 // 10] <= 11
    assert words[-1] <= 24


def test_grammar_follows_the_number(some_pairs):
    plurals = "|".join({noun.plural for noun in NOUNS if noun.plural != noun.english})
    singulars = "|".join({noun.english for noun in NOUNS if noun.plural != noun.english})
    for _, english in some_pairs:
        english = english.lower()
        assert not re.search(rf"(?<!-)(?<!and )\bone ({plurals})\b", english), english
        assert not re.search(rf"(two|three|ten|een|ty|hundred|thousand) ({singulars})\b", english), english
        assert not re.search(
            r"\bi (is|are|has)\b|\bs?he (am|are|have|were)\b|\b(we|they|you) (am|is|was)\b", english
        )
        assert not re.search(r"there is (?!one )|there are one (?!hundred|thousand)", english), english


def test_every_noun_comes_up(some_pairs):
    text = " ".join(pair.chinese for pair in some_pairs)
    assert all(noun.counted in text for noun in NOUNS)


def test_splits_never_meet():
    train = set(islice(pairs(5, "train"), 20_000))
    assert train.isdisjoint(sample("valid", 500, 5))
    assert train.isdisjoint(sample("test", 500, 6))
    assert set(sample("valid", 500, 5)).isdisjoint(sample("test", 500, 5))


def test_held_out_pairs_are_one_in_sixteen():
    dice = Dice(8, LARGEST)
    frames = [*PHRASES, *SENTENCES]
    drawn = {dice.pick(frames)(dice) for _ in range(20_000)}
    shares = {
        split: sum(split_of(pair) == split for pair in drawn) / len(drawn) for split in ("valid", "test")
    }
    assert shares == pytest.approx({"valid": 1 / 32, "test": 1 / 32}, abs=0.006)


def test_held_out_words_are_all_known_from_training(some_pairs):
    def words(many: list[Pair]) -> set[str]:
        return {word for pair in many for word in (*pair.chinese, *re.findall(r"\w+", pair.english))}

    assert words(sample("test", 1_000, 9)) <= words(some_pairs)


def test_a_sample_has_no_pair_twice_and_is_the_start_of_a_longer_one():
    assert len(set(sample("train", 3_000, 10))) == 3_000
    assert sample("train", 300, 10) == sample("train", 3_000, 10)[:300]
    assert sample("train", 0, 10) == []


def test_seeds_differ_and_repeat():
    first, again, other = (list(islice(pairs(seed, "train"), 50)) for seed in (11, 11, 12))
    assert first == again != other


def test_the_largest_number_is_kept_to():
    dice = Dice(13, 250)
    drawn = [draw for _ in range(5_000) for draw in (dice.number(1, 10**6), dice.large(1_000, 10**6))]
    assert max(drawn) == 250
    assert min(drawn) >= 1
    assert not any("million" in pair.english for pair in islice(pairs(15, "train", largest=100), 5_000))


@pytest.mark.parametrize(
    ("arguments", "code", "name"),
    [
        ((-1, "train", 1_000), "out_of_range", "seed"),
        ((1, "dev", 1_000), "unknown_split", "split"),
        ((1, "train", 99), "out_of_range", "largest"),
        ((1, "train", 10**12), "out_of_range", "largest"),
    ],
)
def test_wrong_arguments_are_refused_at_once(arguments, code, name):
    seed, split, largest = arguments
    with refused(code, name):
        pairs(seed, split, largest=largest)


def test_the_corpus_stays_what_it_is():
    """Scores are compared over the years; a change here is a new corpus, and the changelog must say so."""
    lines = "".join(f"{chinese}\t{english}\n" for chinese, english in islice(pairs(0, "train"), 1_000))
    assert (
        sha256(lines.encode()).hexdigest()
        == "aaba3c0cc64c29a40f762c5cf9d39315817a6eeed041d15bb7af63da223370c4"
    )
