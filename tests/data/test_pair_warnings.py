"""Warnings about pairs that seem to be copies, or to have their languages swapped."""

import pytest

from regard.data.cleaning.report import pair_warnings

PAIRS = [(f"第{i}只猫坐着", f"cat {i} sits") for i in range(50)]


def swapped(rows):
    return [(target, source) for source, target in rows]


@pytest.mark.parametrize(
    ("rows", "languages"),
    [
        (PAIRS, ("zh", "en")),
        (swapped(PAIRS), ("en", "zh")),
        ([*PAIRS[1:], ("Windows XP", "视窗")], ("zh", "en")),
        (PAIRS, ("inputs", "outputs")),
        ([("Hotel", "Hotel"), ("a cat", "eine Katze")], ("en", "de")),
    ],
)
def test_sound_pairs_raise_none(rows, languages):
    assert list(pair_warnings(rows, languages)) == []


@pytest.mark.parametrize("rows", [swapped(PAIRS), [*swapped(PAIRS[:5]), *PAIRS[5:]]])
def test_swapped_languages_are_reported(rows):
    (warning,) = pair_warnings(rows, ("zh", "en"))
    assert "of 50 sampled pairs" in warning
    assert "from en to zh" in warning


def test_a_side_that_is_a_copy_is_reported():
    (warning,) = pair_warnings([(target, target) for _, target in PAIRS], ("en", "de"))
    assert "50 of 50 sampled pairs have the same text" in warning
