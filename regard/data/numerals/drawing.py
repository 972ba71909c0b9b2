"""How a pair is drawn: dice, and a small algebra of things that can be drawn.

A `Draw` takes the dice and gives a pair. `one_of` draws from a list; `phrase` and `sentence` draw what fills
their gaps, and say in each language where it goes.
"""

from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple, TypeVar

T = TypeVar("T")


class Pair(NamedTuple):
    """The same thing said in two languages."""

    chinese: str
    english: str


# (share, bound): small numbers are common in life, and large ones are where both languages show their rules.
# 1 and 2 have rules of their own, "one book" and 两本书, and would be rare among the others.
SIZES = ((0.10, 2), (0.40, 20), (0.72, 100), (0.93, 1_000), (0.98, 10_000))

# Significant digits of a large number. People round: most cities have "about 320,000" inhabitants.
ROUNDINGS = (1, 1, 2, 2, 2, 2, 3, 9)


class Dice:
    """All of the chance there is: Python's `random()` and nothing else, as only its sequence is promised."""

    __slots__ = ("largest", "random")

    def __init__(self, seed: int, largest: int) -> None:
        self.random = Random(seed).random
        self.largest = largest

    def below(self, n: int) -> int:
        """A number from 0 to n - 1."""
        return int(self.random() * n)

    def between(self, low: int, high: int) -> int:
        """A number from low to high, both of them included."""
        return low + int(self.random() * (high - low + 1))

    def pick(self, choices: Sequence[T]) -> T:
        """One of several, all equally likely."""
        return choices[int(self.random() * len(choices))]

    def number(self, low: int, high: int) -> int:
        """A number from low to high, seldom a large one, and none above `largest`."""
        high = min(high, self.largest)
        u = self.random()
        for share, bound in SIZES:
            if u < share or bound >= high:
                return self.between(low, max(low, min(bound, high)))
        return self.large(SIZES[-1][1], high)

    def large(self, low: int, high: int) -> int:
        """A number from low to high, mostly round, each length equally likely, and none above `largest`."""
        high = min(high, self.largest)
        low = min(low, high)
        n_digits = self.between(len(str(low)), len(str(high)))
        shortest = 10 ** (n_digits - 1)
        n = self.between(max(low, shortest), min(high, 10 * shortest - 1))
        return max(low, n - n % 10 ** max(0, n_digits - self.pick(ROUNDINGS)))


Draw = Callable[[Dice], Pair]
Gap = Draw | Sequence[Pair]


def one_of(pairs: Sequence[Pair]) -> Draw:
    """One of several pairs, all equally likely."""
    return lambda dice: dice.pick(pairs)


def phrase(chinese: str, english: str, *gaps: Gap) -> Draw:
    """A phrase with gaps {0}, {1} … in both languages; what fills them is drawn in this order."""
    draws = [gap if callable(gap) else one_of(gap) for gap in gaps]
    in_chinese, in_english = chinese.format, english.format

    def draw(dice: Dice) -> Pair:
        filled = [draw_gap(dice) for draw_gap in draws]
        return Pair(in_chinese(*[pair[0] for pair in filled]), in_english(*[pair[1] for pair in filled]))

    return draw


def sentence(chinese: str, english: str, *gaps: Gap) -> Draw:
    """A phrase that begins with a capital letter, where the language has them."""
    draw_phrase = phrase(chinese, english, *gaps)

    def draw(dice: Dice) -> Pair:
        pair = draw_phrase(dice)
        return Pair(pair.chinese, pair.english[0].upper() + pair.english[1:])

    return draw
