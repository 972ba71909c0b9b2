"""The built-in corpus: an endless supply of Chinese and English sentences about numbers.

    >>> from regard.data.numerals import sample
    >>> for pair in sample("train", 2, seed=7):
    ...     print(pair.chinese, pair.english)

Numbers, ordinals, prices, percentages, fractions, dates and clock times, and short sentences around them. It
is written by us and free to ship, it needs no file, and every sentence has exactly one translation in either
direction, so a model can be asked to get all of them right.

A pair belongs to "train", "valid" or "test" by a hash of its text, whatever the seed: no run of the generator
for one split ever gives a pair of another.
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
"""No number that is drawn is larger, unless asked for. Dates and rows of digits have bounds of their own."""

SMALLEST_LARGEST = 100
"""Percentages, ages and minutes need numbers up to here."""

# Of 32 pairs, one is kept for the test set and one for the validation set.
BUCKETS = 32


def split_of(pair: Pair) -> SplitName:
    """The split to which a pair belongs, by its text alone."""
    text = f"{pair.chinese}\t{pair.english}".encode()
    bucket = blake2b(text, digest_size=1).digest()[0] % BUCKETS
    if bucket == 0:
        return "test"
    return "valid" if bucket == 1 else "train"


def pairs(seed: int, split: SplitName, *, largest: int = LARGEST) -> Iterator[Pair]:
    """Pairs of a split without end, the same ones for the same seed, on every machine and Python.

    Common pairs come again, as they do in life; `sample` leaves out what it has given before.
    """
    if split not in get_args(SplitName):
        raise ShapeError("split", " or ".join(map(repr, get_args(SplitName))), repr(split))
    if not SMALLEST_LARGEST <= largest < LIMIT:
        raise ShapeError("largest", f"a number from {SMALLEST_LARGEST} to {LIMIT - 1}", largest)
    if seed < 0:
        # Python seeds with the absolute value: -3 would silently be 3.
        raise ShapeError("seed", "0 or more", seed)
    return _pairs(Dice(seed, largest), split)


def _pairs(dice: Dice, split: SplitName) -> Iterator[Pair]:
    while True:
        pair = any_pair(dice)
        if split_of(pair) == split:
            yield pair


def sample(split: SplitName, n: int, seed: int, *, largest: int = LARGEST) -> list[Pair]:
    """So many pairs of a split, no two of them the same."""
    stream = pairs(seed, split, largest=largest)
    # A dictionary keeps the order in which the pairs came.
    distinct: dict[Pair, None] = {}
    while len(distinct) < n:
        distinct[next(stream)] = None
    return list(distinct)
