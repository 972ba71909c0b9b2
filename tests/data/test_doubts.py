"""What is asked about pairs that may not be what they are called."""

import pytest

from regard.data.cleaning.report import pair_warnings

PAIRS = [(f"第{i}只猫坐着", f"cat {i} sits") for i in range(50)]


def turned(rows):
    return [(target, source) for source, target in rows]


@pytest.mark.parametrize(
    ("rows", "languages"),
    [
        (PAIRS, ("zh", "en")),
        (turned(PAIRS), ("en", "zh")),
        ([*PAIRS[1:], ("Windows XP", "视窗")], ("zh", "en")),
        (PAIRS, ("inputs", "outputs")),
        ([("Hotel", "Hotel"), ("a cat", "eine Katze")], ("en", "de")),
    ],
)
def test_sound_pairs_raise_none(rows, languages):
    assert list(pair_warnings(rows, languages)) == []


@pytest.mark.parametrize("rows", [turned(PAIRS), [*turned(PAIRS[:5]), *PAIRS[5:]]])
def test_languages_the_wrong_way_round_are_told(rows):
    (told,) = pair_warnings(rows, ("zh", "en"))
    assert "of 50 pairs that were looked at seem to go from en to zh, not from zh to en" in told


def test_a_side_that_is_a_copy_is_told():
    (told,) = pair_warnings([(target, target) for _, target in PAIRS], ("en", "de"))
    assert "50 of 50 pairs that were looked at have the same text on both sides" in told
