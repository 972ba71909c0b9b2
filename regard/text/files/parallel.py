"""Parallel files, read together line by line; if one has more lines, where they stop matching.

To find that place, suppose that the longer file has `extra` lines too many in one place. Before it, line i
matches line i; after it, line i + extra. The similarity of two lines is judged by their lengths, numbers
and last characters. The best place maximises the sum of the similarities: unshifted before it, shifted
after it. That takes one pass over the files, with `extra` lines in memory.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from math import log, sqrt
from pathlib import Path
from typing import NamedTuple

from regard.config.checking import counted
from regard.errors import CorpusError
from regard.text.files import STDIN, display_name
from regard.text.files.lines import Block, OnInvalid, Tally, read_lines

MOST_EXTRA = 20_000
"""Most extra lines for which the place is searched."""
_SIGNIFICANT = 3.0
"""How far the evidence must exceed its noise, in standard deviations."""
_SHOWN = 40
_NUMBER = re.compile(r"\d+")
_QUESTION_MARKS = ("?", "？", "؟", ";")


def read_parallel(
    paths: Sequence[Path | str],
    repairs: Tally | None = None,
    *,
    names: Sequence[str] = (),
    on_invalid: OnInvalid = "refuse",
) -> Iterator[Block]:
    """The lines of several files in blocks with one column per file.

    Raises:
        CorpusError: a file cannot be read or is not UTF-8; or, at the end of the shortest, another is longer.
    """
    repairs = Tally() if repairs is None else repairs
    names = names or [display_name(path) for path in paths]
    readers = [
        read_lines(path, repairs, name=name, on_invalid=on_invalid)
        for path, name in zip(paths, names, strict=True)
    ]
    held: list[Block | None] = [None] * len(readers)
    done = 0
    while True:
        held = [block or next(reader, None) for block, reader in zip(held, readers, strict=True)]
        blocks = [block for block in held if block is not None]
        if not blocks:
            return
        if len(blocks) < len(held):
            left = [(len(b) if b else 0) + sum(map(len, r)) for b, r in zip(held, readers, strict=True)]
            problem = _mismatch_message(paths, names, [done + count for count in left])
            raise CorpusError(problem, code="line_count_mismatch")
        count = min(map(len, blocks))
        halves = [block.split(count) for block in blocks]
        unusable = {i: why for head, _ in halves for i, why in head.unusable.items()}
        yield Block(names[0], done + 1, tuple(head.columns[0] for head, _ in halves), unusable)
        held = [tail or None for _, tail in halves]
        done += count


def _mismatch_message(paths: Sequence[Path | str], names: Sequence[str], lines: Sequence[int]) -> str:
    """The line counts of the shortest and the longest file, and where they seem to stop matching."""
    short = min(range(len(lines)), key=lambda i: lines[i])
    long = max(range(len(lines)), key=lambda i: lines[i])
    if not lines[short]:
        return f"{names[short]}: the file is empty, while {names[long]} has {counted(lines[long], 'line')}"
    message = f"{names[short]}:{lines[short]}: "
    message += f"the file ends here, while {names[long]} has {lines[long]:,} lines"
    if any(str(path) == STDIN or not Path(path).is_file() for path in paths):  # cannot be read again
        return message

    def texts(path: Path | str) -> Iterator[str]:
        return (text for block in read_lines(path, on_invalid="drop") for text in block.columns[0])

    place = find_mismatch(lambda: texts(paths[short]), lambda: texts(paths[long]), lines[long] - lines[short])
    if place is None:
        return f"{message}; the texts do not show where they stop matching"
    if place.at_the_end:
        return f"{message}; up to there they seem to match"
    return (
        f"{message}; they seem to stop matching near line {place.line:,}:"
        f"\n  {names[short]}:{place.line}: {_shortened(place.short)}"
        f"\n  {names[long]}:{place.line}: {_shortened(place.long)}"
    )


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


class Mismatch(NamedTuple):
    """The first line at which two files seem not to match."""

    line: int
    """Counted from 1."""
    short: str
    """That line in the shorter file."""
    long: str
    """That line in the longer file."""
    at_the_end: bool
    """Whether they match up to the end of the shorter file."""


def find_mismatch(
    short: Callable[[], Iterable[str]], long: Callable[[], Iterable[str]], extra: int
) -> Mismatch | None:
    """Where two texts likely stop matching, the longer one having `extra` more lines; None if it is unclear.

    `short` and `long` are functions that read a text from its beginning, since each is read twice.
    """
    assert extra > 0, "texts of the same length match"
    if extra > MOST_EXTRA:
        return None
    usual = _log_length_ratio(short(), long())
    ahead = iter(long())
    window = deque(islice(ahead, extra), maxlen=extra)
    gain = best = noise = 0.0
    count = at = 0
    texts = ("", "")
    for text in short():
        unshifted, shifted = window[0], next(ahead, "")
        if count == at:
            texts = (text, unshifted)
        step = similarity(text, unshifted, usual) - similarity(text, shifted, usual)
        window.append(shifted)
        gain, noise, count = gain + step, noise + step * step, count + 1
        if gain > best:
            best, at = gain, count
    if best + (best - gain) < _SIGNIFICANT * sqrt(noise) or not noise:
        return None
    return Mismatch(at + 1, *texts, at_the_end=at == count)


def similarity(a: str, b: str, usual: float) -> float:
    """How well two lines may translate each other, in arbitrary units; higher is better.

    `usual` is the logarithm of the ratio of the lengths of `b` and `a` over the whole files.
    """
    if not a.strip() or not b.strip():
        return 0.0 if a.strip() == b.strip() else -2.0
    value = -min(1.5, abs(log((len(b) + 5) / (len(a) + 5)) - usual))
    numbers, others = set(_NUMBER.findall(a)), set(_NUMBER.findall(b))
    if numbers or others:
        value += 2 * len(numbers & others) / len(numbers | others) - 0.5
    if a.rstrip().endswith(_QUESTION_MARKS) != b.rstrip().endswith(_QUESTION_MARKS):
        value -= 0.5
    return value


def _log_length_ratio(a: Iterable[str], b: Iterable[str]) -> float:
    def mean(texts: Iterable[str]) -> float:
        lengths = [len(text) for text in islice(texts, 100_000)]
        return sum(lengths) / max(1, len(lengths))

    return log((mean(b) + 5) / (mean(a) + 5))
