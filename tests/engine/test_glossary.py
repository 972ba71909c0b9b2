"""Required phrases: found in the source as people mean them, spelt in tokens, recognised in the output."""

import re

import pytest

from regard.engine.phrases.glossary import Glossary, Phrase, Speller, missing, read_glossary
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
    assert missing([term], "The Cat flap")
    assert not missing([term], "the cat flap.")


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
        ("New York", "in New  York", True),
    ],
)
def test_an_output_contains_a_phrase_as_words_of_its_own(term, output, is_in):
    assert bool(missing([Phrase(term, may_be_capitalised=True)], output)) is not is_in


def lacking(terms, source, output):
    return {phrase.text: n for phrase, n in missing(Glossary(terms).phrases(source), output).items()}


@pytest.mark.parametrize(
    ("source", "output", "expected"),
    [
        ("我的猫的猫是猫。", "My cat's cat is a cat.", {}),
        ("我的猫的猫是猫。", "My cat is a cat.", {"cat": 1}),
        ("我的猫的猫是猫。", "It is his.", {"cat": 3}),
        ("猫吃猫粮。", "The cat eats cat food.", {}),
        ("猫吃猫粮。", "It eats cat food.", {"cat": 1}),
        ("猫吃猫粮。", "The cat eats.", {"cat food": 1}),
        ("猫和小猫", "The cat and the kitten", {}),
        ("猫和小猫", "Cats: a cat and a cat", {}),
        ("猫和小猫", "The kitten", {"cat": 1}),
        ("猫和小猫", "The cat", {"kitten": 1}),
        ("他跑，我跑。", "He runs, I run.", {}),
        ("他跑，我跑。", "Runs!", {"run": 1}),
        ("他跑，我跑。", "He outruns me, run.", {"run": 1}),
    ],
)
def test_every_occurrence_in_the_source_requires_one_in_the_output(source, output, expected):
    terms = {"猫": "cat", "猫粮": "cat food", "小猫": "kitten|cat", "跑": "run|runs|running"}
    assert lacking(terms, source, output) == expected


def test_an_equals_sign_copies_the_phrase_and_signs_can_be_escaped():
    assert lacking({"Unicode": "="}, "Unicode and Unicode", "Unicode") == {"Unicode": 1}
    assert lacking({"Hund": "=|dog"}, "Hund", "a dog") == {}
    assert lacking({"oder": r"\|"}, "a oder b", "a b") == {"|": 1}
    assert lacking({"oder": r"\|"}, "a oder b", "a | b") == {}
    assert lacking({"gleich": r"\="}, "a gleich b", "a = b") == {}
    assert lacking({"gleich": "=="}, "a gleich b", "a = b") == {"==": 1}


def test_what_is_capitalised_is_every_alternative_in_lower_case():
    terms = {"猫": "cat|Cats|iCat"}
    for output, expected in [("Cat", {}), ("cats", {"cat": 1}), ("Cats", {}), ("ICat", {"cat": 1})]:
        assert lacking(terms, "猫", output) == expected


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
        assert not missing([term], output), output
        assert output.replace("7 ", "7").startswith(f"7{text}")


@pytest.mark.parametrize(
    ("name", "content", "terms"),
    [
        ("a.tsv", "\ufeffcat\tCat\r\n\nbig  cat\t große Katze \n", {"cat": "Cat", "big cat": "große Katze"}),
        ("a.tsv", '"a\tb"\tc\n5" disc\t5"-Scheibe', {"a b": "c", '5" disc': '5"-Scheibe'}),
        ("a.csv", 'cat,a|b\n"Hi, ""you""","Hallo,\ndu"\n', {"cat": "a|b", 'Hi, "you"': "Hallo, du"}),
        ("a.csv", "Hallo, du;Hello, you\nHund;dog\n", {"Hallo, du": "Hello, you", "Hund": "dog"}),
        ("a.csv", "a\tb,c\n", {"a b": "c"}),
        ("a.tsv", "a, b\tc\n", {"a, b": "c"}),
        ("terms", "yes, sir\tja\nUnicode\t=\n", {"yes, sir": "ja", "Unicode": "="}),
        ("terms", "cat,Katze\nUnicode,=\n", {"cat": "Katze", "Unicode": "="}),
        ("a.csv.txt", "\n  \n", {}),
    ],
)  # fmt: skip
def test_a_file_is_a_tsv_or_a_csv(tmp_path, name, content, terms):
    file = tmp_path / name
    file.write_text(content, encoding="utf-8", newline="")
    assert read_glossary(file) == terms


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("a.tsv", "a\tb\tc\n", ":1: the line has 3 columns: write a<TAB>TRANSLATION"),
        ("a.csv", "a,b\n\nb, c, d\n", ":3: the line has 3 columns: write b,TRANSLATION"),
        ("a.tsv", "a\tb\n\tc\n", ":2: glossary: '' → 'c'"),
        ("a.tsv", "a\tb\n\na\tc\n", ":3: 'a' was already 'b'; list alternatives on one line: b|c"),
        ("a.tsv", "a\tb\nUnicode\n", ":2: 'Unicode' has no translation: write Unicode<TAB>TRANSLATION, or "),
        ("terms", "Unicode\n", ":1: 'Unicode' has no translation: write Unicode,TRANSLATION"),
        ("a.csv", "cat,\n", ":1: glossary: 'cat' → ''"),
        ("a.csv", "cat,Katze||Kater\n", ":1: glossary: 'cat' → 'Katze||Kater'"),
        ("a.csv", 'a,b\n"x\ny",z\n"c" d,e\n', ":4: "),
        ("a.csv", 'a,b\n"c,d\ne,f\n', ":2: "),
        ("a.csv", "a,b\nc," + "d" * 1_000_000 + "\n", ":2: line of a megabyte"),
        ("a.csv", f"cat,{'|'.join('abcdefghijklmnopqrstu')}", ":1: glossary: 'cat' has 21 alternatives"),
    ],
)  # fmt: skip
def test_a_file_that_makes_no_sense_is_refused_with_its_line(tmp_path, name, content, problem):
    file = tmp_path / name
    file.write_text(content, encoding="utf-8")
    with refused("bad_glossary", f"{file}{problem}", error=CorpusError):
        read_glossary(file)


def test_a_glossary_may_be_large():
    """As one pattern, it took minutes to compile."""
    glossary = Glossary({f"w{i} x{i}": f"t{i}" for i in range(50_000)}, keep=[f"k{i}" for i in range(50_000)])
    assert texts(glossary.phrases("W49999 x49999, k49999 and w1")) == ["k49999", "t49999"]


def test_an_empty_phrase_is_refused():
    with refused("bad_glossary", "'cat' → ''"):
        Glossary({"cat": " "})


def test_spaces_in_a_phrase_are_one_space_and_what_becomes_itself_takes_no_capital():
    (phrase,) = Glossary({" big  cat ": " große  Katze "}).phrases("a big\u00a0cat")
    assert phrase.text == "große Katze"
    assert not missing([phrase], "Große Katze")
    (phrase,) = Glossary({"npm": "npm"}).phrases("use npm")
    assert missing([phrase], "Npm")
