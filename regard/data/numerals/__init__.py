"""The built-in corpus: an endless supply of Chinese and English sentences about numbers.

    >>> from regard.data.numerals import sample
    >>> for pair in sample("train", 2, seed=7):
    ...     print(pair.chinese, pair.english)

Numbers, ordinals, prices, percentages, fractions, dates and clock times, and short sentences with them. It
needs no file, and every sentence has exactly one translation in either direction, so that a model can get all
of them right.

A hash of its text assigns a pair to "train", "valid" or "test", for every seed: the splits never overlap.
"""

from collections.abc import Iterator
from hashlib import blake2b
from typing import Literal, get_args

from regard.data.numerals.chinese import LIMIT
from regard.data.numerals.quantities import Dice
from regard.data.numerals.sentences import any_pair
from regard.data.numerals.words import Pair
from regard.errors import ShapeError

__all__ = ["LARGEST", "Pair", "SplitName", "pairs", "sample", "split_of"]

SplitName = Literal["train", "valid", "test"]

LARGEST = 9_999_999
"""Default of the largest number. Dates and rows of digits have bounds of their own."""

SMALLEST_LARGEST = 100
"""Smallest value of `largest`: percentages, ages and minutes need numbers up to it."""

# One pair in 32 belongs to the test set, and one to the validation set.
BUCKETS = 32


def split_of(pair: Pair) -> SplitName:
    """The split of a pair, by its text alone."""
    text = f"{pair.chinese}\t{pair.english}".encode()
    bucket = blake2b(text, digest_size=1).digest()[0] % BUCKETS
    if bucket == 0:
        return "test"
    return "valid" if bucket == 1 else "train"


def pairs(seed: int, split: SplitName, *, largest: int = LARGEST) -> Iterator[Pair]:
    """Endless pairs of a split, the same for the same seed on every machine and Python.

    Common pairs repeat; `sample` has no duplicates.
    """
    if split not in get_args(SplitName):
        expected = " or ".join(map(repr, get_args(SplitName)))
        raise ShapeError("split", expected, repr(split), code="unknown_split")
    if not SMALLEST_LARGEST <= largest < LIMIT:
        expected = f"a number from {SMALLEST_LARGEST} to {LIMIT - 1}"
        raise ShapeError("largest", expected, largest, code="out_of_range")
    if seed < 0:
        # Python seeds with the absolute value: -3 would silently be 3.
        raise ShapeError("seed", "0 or more", seed, code="out_of_range")
    return _pairs(Dice(seed, largest), split)


def _pairs(dice: Dice, split: SplitName) -> Iterator[Pair]:
    while True:
        pair = any_pair(dice)
        if split_of(pair) == split:
            yield pair


def sample(split: SplitName, n: int, seed: int, *, largest: int = LARGEST) -> list[Pair]:
    """`n` pairs of a split, without duplicates."""
    stream = pairs(seed, split, largest=largest)
    # A dictionary keeps the order.
    distinct: dict[Pair, None] = {}
    while len(distinct) < n:
        distinct[next(stream)] = None
    return list(distinct)
