"""Sentences end where people would say so, and nothing is lost by cutting."""

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.engine.document.sentences import cut, sentences

CASES = [
    "One. |Two! |Three? |Four… |Five",
    "Dr. Who met Mr. J. R. Smith at 3.30 p.m. in St. Ives. |He left.",
    "See e.g. Fig. 3 of vol. 212. |Then stop.",
    "He came to the U.S. Army in 1999. |It was v1.2.3 then.",
    "Am 3. Oktober kam er, z. B. mit Hrn. Meier. |Dann ging er.",
    "“Why?” he asked. |“Because.” |(No more.) |So be it!",
    "Er sagte: „Ja.“ |Sie auch.",
    "Wait... what? |No... |Yes.",
    "It was I. |He knew.",
    "你好。|我很好！|你呢？|是吗?!|好……但是……不。",
    "他说：“我去。”然后走了。|“好。”|“不好。”|（完。）",
    "你好!|我是A.B公司的。",
    "今日は。 |元気？",
    "!!! ??? |Hi.",
    "no end here",
    "",
]


@pytest.mark.parametrize("marked", CASES)
def test_sentences_end_where_people_would_say_so(marked):
    text = marked.replace("|", "")
    assert sentences(text) == marked.split("|")


LISTED = Path(__file__).with_name("sentence_cases.txt").read_text(encoding="utf-8")
"""Hard cases of several languages, which `benchmarks/sentences.py` reads, too."""


def listed(*, solved):
    """The hard cases that our rules get right, or those that they do not."""
    blocks = [block.strip().splitlines() for block in LISTED.removeprefix("# ").split("\n# ")]
    return [line for name, *lines in blocks for line in lines if solved != name.endswith("not solved")]


@pytest.mark.parametrize("marked", listed(solved=True))
def test_hard_cases(marked):
    assert sentences(marked.replace("|", "")) == marked.split("|")


@pytest.mark.parametrize("marked", listed(solved=False))
def test_the_list_of_what_is_not_solved_is_true(marked):
    assert sentences(marked.replace("|", "")) != marked.split("|")


@pytest.mark.parametrize(
    "marked",
    [
        # The next word decides after abbreviations, initials and short numbers.
        "Gate 24. |The bus waits.",
        "Am 3. Oktober.",
        "He left Acme Inc. |They stayed.",
        "Acme Inc. Europe stayed.",
        "See C. De Vries.",
        "Es gibt: 1. Das Haus; 2. Der Hof.",
        "at 5 p.m. |He left.",
        "Papers, e.g. The Times, z. B. Die Zeit.",
        # A line without capitals; with one, lower case continues.
        "we met. |why? |no idea",
        "we met dr. no, e.g. at 5. etc. and so on",
        "“why?” he asked.",
        "We met. why? no idea",
        "用的是config. json 文件。",
        # What no sentence begins with.
        "Whenever they are ready ... .” |Garcia nodded.",
        "Quiet ! !. |Then noise.",
        "Ja? – fragte er.",
        "Ja? |– Fragen wir.",
        # Chinese quotations.
        "他说：“好。”|第二天他走了。",
        "“好。”王先生对记者说。|他走了。",
        "“好。”|王先生说：“走。”",
        "“好。”的意思是好。",
        '他走了。|"好。"|他说完了。',
        '他说："好。"|第二天他走了。',
        "我们... 走吧。",
        "见文献。[3]|又见文献。[4, 5]|完。",
        # Full stops of other scripts.
        "यह एक है। |यह दो है।",
        "هل أنت هنا؟ |نعم.",
    ],
)
def test_rules(marked):
    assert sentences(marked.replace("|", "")) == marked.split("|")


HOSTILE = ['."', '。"', "a. ", "1. ", "   .", "aaaa(. ", ".[", "。”x", ". »", ".- ", "dr. ", "ab. ", "中."]


@pytest.mark.parametrize("piece", HOSTILE)
def test_time_is_linear(piece):
    """Sixteen times the text takes about sixteen times as long; a quadratic splitter takes 256 times."""
    seconds = []
    for n in (1_000, 16_000):
        text = piece * n
        began = time.process_time()
        assert "".join(sentences(text)) == text
        seconds.append(time.process_time() - began)
    assert seconds[1] < 64 * max(seconds[0], 0.002)


def test_a_run_of_marks_takes_no_time():
    for mark in (".", '"', "。", "(", "!", " "):
        text = mark * 100_000
        began = time.process_time()
        assert "".join(sentences(text)) == text
        assert time.process_time() - began < 1


ANY_LINE = st.text(st.one_of(st.characters(), st.sampled_from(" .!?。！？，,…”“')a1B中\u0301")), max_size=80)


@given(ANY_LINE)
def test_joined_they_are_the_line(line):
    assert "".join(sentences(line)) == line


@given(ANY_LINE, st.integers(1, 20))
def test_pieces_fit_and_joined_they_are_the_line(line, most):
    pieces = cut(line, lambda texts: list(map(len, texts)), most)
    assert "".join(pieces) == line
    assert all(len(piece) <= most for piece in pieces)


@pytest.mark.parametrize(
    ("text", "most", "pieces"),
    [
        ("One two. Three four. Five.", 21, ["One two. Three four. ", "Five."]),
        ("one two, three four, five", 13, ["one two, ", "three four, ", "five"]),
        ("一二三，四五六，七八。", 8, ["一二三，四五六，", "七八。"]),
        ("at 12:30 or at 1,000", 9, ["at 12:30 ", "or at ", "1,000"]),
        ("abcdefghij", 4, ["abcd", "efgh", "ij"]),
        ("e\u0301e\u0301e\u0301e\u0301", 4, ["e\u0301e\u0301", "e\u0301e\u0301"]),
    ],
)
def test_what_is_too_long_is_cut_at_its_best_joints(text, most, pieces):
    assert cut(text, lambda texts: list(map(len, texts)), most) == pieces


def test_it_counts_a_long_text_a_few_times_only():
    """A megabyte without a space, and one that is nothing but accents."""
    for text in ("x" * 1_000_000, "\u0301" * 1_000_000):
        counted = []

        def count(texts, counted=counted):
            counted.append(sum(map(len, texts)))
            return list(map(len, texts))

        assert max(map(len, cut(text, count, 250))) <= 250
        assert sum(counted) < 12 * len(text)
