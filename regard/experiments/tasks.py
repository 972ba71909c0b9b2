"""What small models are taught: sequences to copy, reverse and sort, numbers to translate by character.

Everything is drawn by the program, without end, so nothing is learned by heart.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from regard.data.numerals import Pair as Numeral
from regard.data.numerals import SplitName, pairs

BOS, EOS = 0, 1
"""The token that starts an output, and the one that ends it; symbols follow."""

Pair = tuple[list[int], list[int]]
"""Ids of an input and of its output, without `BOS` and `EOS`."""


@dataclass(frozen=True, slots=True)
class Task:
    """Pairs to learn from, and pairs to be tested on."""

    name: str
    vocab_size: int
    draw: Callable[[Random, int], list[Pair]]
    """So many pairs to learn from."""
    held_out: Callable[[int], list[Pair]]
    """So many pairs to be tested on, always the same ones."""


def copying(lengths: tuple[int, int], symbols: int = 10) -> Task:
    """Write what was read."""
    return _of_symbols("copying", lengths, symbols, lambda symbols: symbols)


def reversing(lengths: tuple[int, int], symbols: int = 10) -> Task:
    """Write what was read from its end to its start."""
    return _of_symbols("reversing", lengths, symbols, lambda symbols: symbols[::-1])


def sorting(lengths: tuple[int, int], symbols: int = 10) -> Task:
    """Write the symbols in their order, however they came."""
    return _of_symbols("sorting", lengths, symbols, sorted)


def _of_symbols(
    name: str, lengths: tuple[int, int], symbols: int, output: Callable[[list[int]], list[int]]
) -> Task:
    """Symbols drawn evenly, as many as the lengths allow. Nearly none of them is ever drawn twice."""

    def draw(random: Random, n: int) -> list[Pair]:
        inputs = [[2 + random.randrange(symbols) for _ in range(random.randint(*lengths))] for _ in range(n)]
        return [(each, output(each)) for each in inputs]

    return Task(name, 2 + symbols, draw, lambda n: draw(Random(f"held out {lengths}"), n))


def numerals(largest: int = 9_999) -> Task:
    """Chinese sentences about numbers into English, character by character."""
    known = "".join(sorted({*"".join(_text(pair) for pair in _some("train", 4_000, 1, largest))}))
    ids = {character: 2 + place for place, character in enumerate(known)}

    def encoded(found: list[Numeral]) -> list[Pair]:
        # A character that four thousand sentences did not have is not worth a name of its own.
        found = [pair for pair in found if ids.keys() >= {*_text(pair)}]
        return [([ids[c] for c in pair.chinese], [ids[c] for c in pair.english]) for pair in found]

    def draw(random: Random, n: int) -> list[Pair]:
        return encoded(_some("train", n, random.randrange(2**31), largest))

    return Task("numerals", 2 + len(known), draw, lambda n: encoded(_some("test", n, 1, largest)))


def _some(split: SplitName, n: int, seed: int, largest: int) -> list[Numeral]:
    stream = pairs(seed, split, largest=largest)
    return [next(stream) for _ in range(n)]


def _text(pair: Numeral) -> str:
    return pair.chinese + pair.english
