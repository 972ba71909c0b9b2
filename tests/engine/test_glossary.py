"""Required phrases: found in the source as people mean them, spelt in tokens, recognised in the output."""

import re

import pytest

from regard.engine.phrases.glossary import Glossary, Phrase, Speller, read_glossary
from regard.errors import CorpusError
from tests.refusals import refused


def texts(terms):
    return [term.text for term in terms]


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("the cat sat", ["Katze"]),
        ("Cat foot", ["Katze"]),
        ("CAT scans concatenate cats, cat's", ["Katze"]),
        ("a cat  food tin", ["Katzenfutter"]),
        ("cat food and cat", ["Katzenfutter", "Katze"]),
        ("cat cat", ["Katze"]),
        ("大猫坐", ["Katze-zh"]),
        ("猫粮和猫", ["Futter-zh", "Katze-zh"]),
        ("用GPU算", ["Grafikkarte"]),
        ("GPUs", []),
        ("cafe\u0301", ["Kaffee"]),
        ("", []),
    ],
)
def test_the_longest_phrase_is_found_as_words_or_in_chinese_anywhere(source, found):
    latin = {"cat": "Katze", "cat food": "Katzenfutter", "GPU": "Grafikkarte", "café": "Kaffee"}
    terms = {**latin, "猫": "Katze-zh", "猫粮": "Futter-zh"}
    assert texts(Glossary(terms).phrases(source)) == found


def test_what_is_kept_is_kept_letter_for_letter_and_not_looked_into():
    glossary = Glossary({"cat": "Katze"}, keep=[re.compile(r"https?://\S+"), "cat flap"])
    assert texts(glossary.phrases("my cat flap: http://cat.org/x?")) == ["http://cat.org/x?", "cat flap"]
    (term,) = glossary.phrases("the cat flap")
    assert [term] == Glossary(keep="cat flap").phrases("the cat flap")
    assert not term.is_in("The Cat flap")
    assert term.is_in("the cat flap.")


@pytest.mark.parametrize(
    ("term", "output", "is_in"),
    [
        ("cat", "The cat.", True),
        ("cat", "Cat!", True),
        ("cat", "A category", False),
        ("cat", "bobcat", False),
        ("iPhone", "IPhone", False),
        ("猫", "大猫坐", True),
        ("GPU", "用GPU算", True),
        ("New York", "in New York", True),
    ],
)
def test_an_output_contains_a_phrase_as_words_of_its_own(term, output, is_in):
    assert Phrase(term, may_be_capitalised=True).is_in(output) is is_in


@pytest.mark.parametrize("text", ["cat", "twenty-one", "猫", "三月", "x y", "C++"])
def test_spellings_are_the_phrase_in_running_text(subwords, text):
    """Firm spellings also hold what follows, and that is no letter."""
    speller, term = Speller(subwords, without_spaces=True), Phrase(text)
    before = subwords.encode_one("7").tolist()
    for ids in speller.usual(term):
        assert subwords.decode([*before, *ids]) in (f"7{text}", f"7 {text}")
    found = {subwords.decode([*before, *ids]) for ids in speller.separated(term)}
    assert found
    for output in found:
        assert term.is_in(output), output
        assert output.replace("7 ", "7").startswith(f"7{text}")


def test_a_file_has_two_columns_or_one(tmp_path):
    file = tmp_path / "terms.tsv"
    file.write_text("\ufeffcat\tKatze\r\n\nbig  cat\t große Katze \nUnicode\n", encoding="utf-8")
    assert read_glossary(file) == {"cat": "Katze", "big cat": "große Katze", "Unicode": "Unicode"}


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("a\tb\tc\n", ":1: expected a phrase, a tab and its translation"),
        ("a\tb\n\tc\n", ":2: expected a phrase"),
        ("a\tb\n\na\tc\n", ":3: 'a' was already 'b'"),
    ],
)
def test_a_file_that_makes_no_sense_is_refused_with_its_line(tmp_path, content, problem):
    file = tmp_path / "terms.tsv"
    file.write_text(content, encoding="utf-8")
    with refused("bad_glossary", f"{file}{problem}", error=CorpusError):
        read_glossary(file)


def test_an_empty_phrase_is_refused():
    with refused("bad_glossary", "'cat' → ''"):
        Glossary({"cat": " "})


def test_spaces_in_a_phrase_are_one_space_and_what_becomes_itself_takes_no_capital():
    (phrase,) = Glossary({" big  cat ": " große  Katze "}).phrases("a big\u00a0cat")
    assert phrase.text == "große Katze"
    assert phrase.is_in("Große Katze")
    (phrase,) = Glossary({"npm": "npm"}).phrases("use npm")
    assert not phrase.is_in("Npm")
