"""Several files read in step: the first lines of all, the second lines of all, and so on."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from math import log, sqrt
from pathlib import Path

from regard.config.checking import counted
from regard.errors import CorpusError
from regard.text.files import STDIN, display_name
from regard.text.files.lines import Block, OnInvalid, Tally, read_lines

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


def find_parting(
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


_SHOWN = 40


def read_parallel(
    paths: Sequence[Path | str],
    repairs: Tally | None = None,
    *,
    names: Sequence[str] = (),
    on_invalid: OnInvalid = "refuse",
) -> Iterator[Block]:
    """The lines of several files in blocks of one column a file.

    Raises:
        CorpusError: a file cannot be read or is not UTF-8, or one has more lines than another. That is known,
            and said, when the shorter one ends.
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
            rest = [_lines_left(block, reader) for block, reader in zip(held, readers, strict=True)]
            raise CorpusError(_out_of_step(paths, names, [done + count for count in rest]))
        count = min(map(len, blocks))
        halves = [block.split(count) for block in blocks]
        spoilt = {i: why for head, _ in halves for i, why in head.spoilt.items()}
        yield Block(names[0], done + 1, tuple(head.columns[0] for head, _ in halves), spoilt)
        held = [tail or None for _, tail in halves]
        done += count


def _lines_left(held: Block | None, reader: Iterator[Block]) -> int:
    return (len(held) if held else 0) + sum(map(len, reader))


def _out_of_step(paths: Sequence[Path | str], names: Sequence[str], lines: Sequence[int]) -> str:
    """How many lines each file has, and where two of them seem to part."""
    short = min(range(len(lines)), key=lambda i: lines[i])
    long = max(range(len(lines)), key=lambda i: lines[i])
    if not lines[short]:
        return f"{names[short]}: the file is empty, while {names[long]} has {counted(lines[long], 'line')}"
    told = f"{names[short]}:{lines[short]}: "
    told += f"the file ends here, while {names[long]} goes on to line {lines[long]:,}"
    if all(map(_can_be_read_again, paths)):
        told += _parting(paths[short], paths[long], names[short], names[long], lines[long] - lines[short])
    return told


def _can_be_read_again(path: Path | str) -> bool:
    return str(path) != STDIN and Path(path).is_file()


def _parting(short: Path | str, long: Path | str, short_name: str, long_name: str, extra: int) -> str:
    def texts(path: Path | str) -> Iterator[str]:
        return (text for block in read_lines(path, on_invalid="drop") for text in block.columns[0])

    parting = find_parting(lambda: texts(short), lambda: texts(long), extra)
    if parting is None:
        return "; where they part cannot be told from the texts"
    if parting.at_the_end:
        return "; up to there they seem to be in step"
    line = parting.line
    return (
        f"; they seem to part near line {line:,}:"
        f"\n  {short_name}:{line}: {_shown(parting.short)}"
        f"\n  {long_name}:{line}: {_shown(parting.long)}"
    )


def _shown(text: str) -> str:
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
