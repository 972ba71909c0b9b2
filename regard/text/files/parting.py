"""Where two parallel files part, when one has more lines than the other.

Suppose the longer file has `extra` lines too many in one place. Before it, line i belongs to line i; after
it, to line i + extra. How alike two lines are is judged by their lengths, their numbers and their last sign,
so it is a guess; many lines together make a good one. The best place is where the sum of the likenesses,
straight before and shifted after, is greatest; that takes one pass over the files, with `extra` lines in
memory.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from math import log, sqrt

MOST_EXTRA = 20_000
"""With more lines too many than this, nothing is guessed."""

_SURE = 3.0
"""How far the evidence must stand out from its own noise, in standard deviations."""

_NUMBER = re.compile(r"\d+")
_QUESTIONS = ("?", "？", "؟", ";")


@dataclass(frozen=True, slots=True)
class Parting:
    """The first line at which two files seem to be out of step."""

    line: int
    """Counted from 1."""
    short: str
    """That line in the shorter file."""
    long: str
    """And in the longer one."""
    at_the_end: bool
    """Whether they are in step as far as the shorter one goes."""


def where_they_part(
    short: Callable[[], Iterable[str]], long: Callable[[], Iterable[str]], extra: int
) -> Parting | None:
    """The likely parting of two texts, of which the longer has `extra` more lines; None if it cannot be told.

    Each text is a function that starts it from its first line, since it is read twice.
    """
    assert extra > 0, "texts of the same length do not part"
    if extra > MOST_EXTRA:
        return None
    usual = _usual_ratio(short(), long())
    ahead = iter(long())
    window = deque(islice(ahead, extra), maxlen=extra)
    gain = best = noise = 0.0
    count = at = 0
    texts = ("", "")
    for text in short():
        straight, shifted = window[0], next(ahead, "")
        if count == at:
            texts = (text, straight)
        step = likeness(text, straight, usual) - likeness(text, shifted, usual)
        window.append(shifted)
        gain, noise, count = gain + step, noise + step * step, count + 1
        if gain > best:
            best, at = gain, count
    if best + (best - gain) < _SURE * sqrt(noise) or not noise:
        return None
    return Parting(at + 1, *texts, at_the_end=at == count)


def likeness(a: str, b: str, usual: float) -> float:
    """How well two lines may be each other's translation, in arbitrary units; more is better.

    `usual` is the logarithm of the length of `b` over that of `a`, over the whole files.
    """
    if not a.strip() or not b.strip():
        return 0.0 if a.strip() == b.strip() else -2.0
    value = -min(1.5, abs(log((len(b) + 5) / (len(a) + 5)) - usual))
    numbers, others = set(_NUMBER.findall(a)), set(_NUMBER.findall(b))
    if numbers or others:
        value += 2 * len(numbers & others) / len(numbers | others) - 0.5
    if a.rstrip().endswith(_QUESTIONS) != b.rstrip().endswith(_QUESTIONS):
        value -= 0.5
    return value


def _usual_ratio(a: Iterable[str], b: Iterable[str]) -> float:
    def mean(texts: Iterable[str]) -> float:
        lengths = [len(text) for text in islice(texts, 100_000)]
        return sum(lengths) / max(1, len(lengths))

    return log((mean(b) + 5) / (mean(a) + 5))
