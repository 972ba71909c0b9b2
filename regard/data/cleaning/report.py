"""What training will see: lines, tokens, lengths, what was dropped and what was repaired, and where.

Made once the corpus is encoded, before the first step. `as_text` is for people, `as_dict` for the run folder.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import compress, islice
from typing import Any

import numpy as np

from regard.config.checking import counted
from regard.data.cleaning import Cleaned
from regard.data.cleaning.holding_out import Fate
from regard.data.reading import Row
from regard.text.detection import language_among
from regard.text.files.lines import Tally

TOO_MANY_TOKENS = "too many tokens"
_AT_ONCE = 4096
_BAR = 40


@dataclass(slots=True)
class Lengths:
    """How many sequences there are of each length, in tokens."""

    counts: np.ndarray = field(default_factory=lambda: np.zeros(1, np.int64))

    def add(self, lengths: np.ndarray) -> None:
        """Count some sequences."""
        more = np.bincount(lengths, minlength=self.counts.size)
        more[: self.counts.size] += self.counts
        self.counts = more

    @property
    def sequences(self) -> int:
        """How many were counted."""
        return int(self.counts.sum())

    @property
    def tokens(self) -> int:
        """How many tokens they have."""
        return int(self.counts @ np.arange(self.counts.size))

    def quantile(self, share: float) -> int:
        """The length that this share of the sequences does not exceed."""
        reached = np.cumsum(self.counts) >= share * self.sequences
        return int(np.argmax(reached))

    def bins(self, most: int = 12) -> list[tuple[int, int, int]]:
        """First length, last length and number of sequences, in steps that are easy to read."""
        longest = int(np.flatnonzero(self.counts)[-1]) if self.sequences else 0
        usual = max(1, self.quantile(0.99)) if self.sequences else 1
        width = next(w for w in _widths() if w * (most - 1) >= usual)
        ends = [*range(width, width * (most - 1) + 1, width), max(longest, width * most)]
        starts = [0, *(end + 1 for end in ends[:-1])]
        found = [(a, b, int(self.counts[a : b + 1].sum())) for a, b in zip(starts, ends, strict=True)]
        while len(found) > 1 and not found[-1][2]:
            found.pop()
        return found

    def as_dict(self) -> dict[str, Any]:
        """As JSON can hold it."""
        if not self.sequences:
            return {"tokens": 0}
        return {
            "tokens": self.tokens,
            "mean": round(self.tokens / self.sequences, 2),
            "median": self.quantile(0.5),
            "p95": self.quantile(0.95),
            "longest": int(np.flatnonzero(self.counts)[-1]),
            "histogram": [{"from": a, "to": b, "sequences": count} for a, b, count in self.bins()],
        }


def _widths() -> Iterator[int]:
    width = 1
    while True:
        yield from (width, 2 * width, 5 * width)
        width *= 10


@dataclass(slots=True)
class Report:
    """What came of a corpus. `measure` fills in the tokens as the examples are encoded."""

    files: tuple[str, ...]
    sides: tuple[str, ...]
    """What the sides are called, such as their languages."""
    lines: int
    validation: int
    test: int
    split_off: int
    """How many of these were taken from the corpus; the others were given."""
    repairs: Tally
    dropped: Tally
    left_out: Tally
    """What was left out of a validation set that was given."""
    made_from: int
    """Lines that were made into these; as many, unless a line gives several."""
    vocab_size: int = 0
    lengths: tuple[Lengths, ...] = ()

    @property
    def training(self) -> int:
        """Examples to train on."""
        return self.lines - self.dropped.total - self.split_off

    def measure(
        self, examples: Iterable[tuple[np.ndarray, ...]], cleaned: Cleaned, max_tokens: int
    ) -> Iterator[tuple[np.ndarray, ...]]:
        """Pass encoded examples on, count their tokens, and drop those with a side of over `max_tokens`."""
        source, first = iter(examples), 0
        while batch := list(islice(source, _AT_ONCE)):
            sizes = [np.fromiter(map(len, side), np.int64, len(batch)) for side in zip(*batch, strict=True)]
            fits = np.maximum.reduce(sizes) <= max_tokens
            long = np.flatnonzero(~fits) + first
            self.dropped.add_all(TOO_MANY_TOKENS, long, cleaned.training_place)
            for lengths, size in zip(self.lengths, sizes, strict=True):
                lengths.add(size[fits])
            first += len(batch)
            yield from batch if fits.all() else compress(batch, fits.tolist())

    def as_dict(self) -> dict[str, Any]:
        """As JSON can hold it."""
        sides = zip(self.sides, self.lengths, strict=True)
        return {
            "files": list(self.files),
            "lines": self.lines,
            "training": self.training,
            "validation": self.validation,
            "test": self.test,
            "split_off": self.split_off,
            "vocab_size": self.vocab_size,
            "dropped": self.dropped.as_dict(),
            "repaired": self.repairs.as_dict(),
            "left_out_of_validation": self.left_out.as_dict(),
            "sides": {name: lengths.as_dict() for name, lengths in sides},
        }

    def as_text(self) -> str:
        """As people read it, in plain lines."""
        given = self.validation + self.test - self.split_off
        origin = "given" if not self.split_off else f"{given:,} of them given" if given else "split off"
        held_out = f"{self.validation:,} to validate, {self.test:,} to test ({origin})"
        found = counted(self.lines, "line")
        if self.made_from < self.lines:
            found = f"{counted(self.lines, 'example')} from {counted(self.made_from, 'line')}"
        lines = [
            "Data: " + ", ".join(self.files),
            f"  {found}; {self.training:,} to train on, {held_out}",
            *_tallied("dropped", self.dropped, self.lines),
            *_tallied("repaired", self.repairs),
        ]
        if self.left_out.counts:
            lines += _tallied("left out of validation", self.left_out, self.validation + self.left_out.total)
        if self.vocab_size:
            lines.append(f"  {counted(self.vocab_size, 'subword')}")
        for name, lengths in zip(self.sides, self.lengths, strict=True):
            lines += _drawn(name, lengths)
        return "\n".join(lines)


def make_report(
    cleaned: Cleaned,
    sides: Sequence[str],
    *,
    validation: int | None = None,
    test: int | None = None,
    left_out: Tally | None = None,
    vocab_size: int = 0,
) -> Report:
    """The report on a cleaned corpus, still without tokens; the numbers are of sets that were given."""
    given = {Fate.VALIDATION: validation, Fate.TEST: test}
    taken = {fate: cleaned.count(fate) if number is None else 0 for fate, number in given.items()}
    return Report(
        files=cleaned.corpus.names,
        sides=tuple(sides),
        lines=cleaned.n_lines,
        validation=taken[Fate.VALIDATION] if validation is None else validation,
        test=taken[Fate.TEST] if test is None else test,
        split_off=sum(taken.values()),
        repairs=cleaned.repairs,
        dropped=cleaned.dropped,
        left_out=left_out or Tally(),
        made_from=cleaned.places.n_lines,
        vocab_size=vocab_size,
        lengths=tuple(Lengths() for _ in sides),
    )


def _tallied(heading: str, tally: Tally, lines: int | None = None) -> list[str]:
    """One line a kind, with its share of so many lines, where it has one, and the first places.

    Repairs have none: both sides of a pair may need them, and it would be more than all.
    """
    if not tally.counts:
        return [f"  nothing {heading}"]
    wide = max(map(len, tally.counts))
    told = [f"  {heading}:"]
    for what, entry in tally.as_dict().items():
        count, first = entry["lines"], entry["first"]
        places = _places(first) + (", …" if count > len(first) else "")
        share = "" if lines is None else f"  {count / lines:>6.2%}"
        told.append(f"    {what:<{wide}}  {count:>9,}{share}  {places}")
    return told


def _places(examples: list[str]) -> str:
    """The places with each file named once: `train.zh:3, 12, 40`."""
    told, last = [], ""
    for example in examples:
        name, _, line = example.rpartition(":")
        told.append(line if name == last else example)
        last = name
    return ", ".join(told)


def _drawn(name: str, lengths: Lengths) -> list[str]:
    """The lengths of one side as bars."""
    if not lengths.sequences:
        return [f"  {name}: no tokens"]
    facts = lengths.as_dict()
    summary = f"mean {facts['mean']}, median {facts['median']}, longest {facts['longest']:,}"
    told = [f"  {name}: {counted(facts['tokens'], 'token')}; a sequence has {summary}"]
    bins = lengths.bins()
    most = max(count for *_, count in bins)
    for first, last, count in bins:
        bar = "█" * round(_BAR * count / most) or ("▏" if count else "")
        told.append(f"    {first:>5} to {last:<5} {count:>9,}  {bar}".rstrip())
    return told


SAMPLED = 10_000
"""Pairs that are looked at, spread over the corpus."""
_TURNED = 0.02
"""Share of pairs from which on turned ones are no accident: names and titles stand in other letters, too."""


def pair_warnings(rows: list[Row], languages: tuple[str, str]) -> Iterator[str]:
    """What is to be asked of some pairs of a corpus, as sentences; nothing where they look sound."""
    same = sum(source == target for source, target in rows)
    if 2 * same > len(rows):
        yield (
            f"{same:,} of {len(rows):,} pairs that were looked at have the same text on both sides: "
            "is one a copy of the other?"
        )
    here, there = languages
    turned = sum(
        language_among(source, languages) == there and language_among(target, languages) == here
        for source, target in rows
    )
    if turned > _TURNED * len(rows):
        yield (
            f"{turned:,} of {len(rows):,} pairs that were looked at seem to go from {there} to {here}, "
            f"not from {here} to {there}: are files, columns or languages the wrong way round?"
        )
