"""The phrases of a list in a text, against plain loops, and against one pattern of all phrases."""

import re

from hypothesis import example, given
from hypothesis import strategies as st

from regard.engine.document.sentences import CJK
from regard.engine.phrases.finder import PhraseFinder, begins_with_letter, ends_with_letter, plain
from regard.text.normalisation import composed

texts = st.text("aabB .+猫粮\u0301eé\0\u00a0\n\u3000", max_size=30)
phrase_lists = st.lists(st.text("aabB .+猫粮\u0301eé", max_size=6).map(plain).filter(bool), max_size=12)


def in_loops(phrases: list[str], text: str) -> list[tuple[str, int, int]]:
    """At every place the longest phrase, space by space and letter by letter."""

    def is_letter(place: int) -> bool:
        return 0 <= place < len(text) and text[place].isalnum() and not re.match(f"[{CJK}]", text[place])

    def end(phrase: str, place: int) -> int | None:
        for sign in phrase:
            if sign == " ":
                if not text[place : place + 1].isspace():
                    return None
                while text[place : place + 1].isspace():
                    place += 1
            elif text[place : place + 1] != sign:
                return None
            else:
                place += 1
        return None if is_letter(place - 1) and is_letter(place) else place

    found, start = [], 0
    while start < len(text):
        within_word = is_letter(start - 1) and is_letter(start)
        ends = {} if within_word else {each: end(each, start) for each in phrases}
        longest = max((each for each in ends if ends[each]), key=len, default=None)
        if longest:
            found.append((longest, start, ends[longest]))
        start = ends[longest] if longest else start + 1
    return found


def with_a_pattern(phrases: list[str], text: str) -> list[tuple[str, int, int]]:
    letter = rf"[^\W{CJK}]"

    def as_words(phrase: str) -> str:
        spelt = r"\s+".join(map(re.escape, phrase.split()))
        before = f"(?<!{letter})" if begins_with_letter(phrase) else ""
        return before + spelt + (f"(?!{letter})" if ends_with_letter(phrase) else "")

    pattern = "|".join(map(as_words, sorted(phrases, key=len, reverse=True)))
    return [(plain(match[0]), *match.span()) for match in re.finditer(pattern, text)] if phrases else []


@given(phrase_lists, texts.map(composed))
@example(["cat", "cat food", "cat foo"], "concat cat  foods, cat\tfood")
@example(["a", "ab", "a b", "a.b", "."], "a.b. a\n b ab\0a")
@example(["猫", "猫粮", "粮b", "b猫"], "大猫粮b猫b 猫")
@example(["C++", "+", "++"], "C+++ C++ c+")
def test_it_finds_what_loops_find_and_what_a_pattern_finds(phrases, text):
    found = list(map(tuple, PhraseFinder(phrases).matches(text)))
    assert found == in_loops(phrases, text) == with_a_pattern(phrases, text)


def test_a_phrase_is_looked_for_among_very_many():
    """As one pattern, these take minutes."""
    finder = PhraseFinder([f"w{i} x{i}" for i in range(100_000)] + [chr(0x4E00 + i) * 3 for i in range(5000)])
    found = finder.matches("w7 x77; w99999  x99999丈丈丈丈 w1 x")
    assert [each.phrase for each in found] == ["w99999 x99999", "丈丈丈"]


def test_of_phrases_that_begin_alike_the_longest_is_found():
    finder = PhraseFinder("." * i for i in range(2, 1400))
    assert [each.end - each.start for each in finder.matches("./" * 100 + "." * 1500 + "/..")] == [
        1399,
        101,
        2,
    ]
    assert not PhraseFinder([])
    assert list(PhraseFinder([]).matches("a")) == []
