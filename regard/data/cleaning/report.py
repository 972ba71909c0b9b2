"""The report on a cleaned corpus: lines, tokens, lengths, and what was dropped and repaired, with places.

It is complete once the corpus is encoded, before the first training step. `as_text` is for people, `as_dict`
for the run folder. `alarms` finds what is probably not as it was meant.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import compress, islice
from typing import Any

import numpy as np

from regard.config.checking import counted
from regard.data.cleaning import REASONS, Cleaned
from regard.data.cleaning.alarms import TOO_MANY_TOKENS, dropped_warning
from regard.data.cleaning.holding_out import Fate
from regard.text.files.lines import Tally

_AT_ONCE = 4096
_BAR = 40


@dataclass(slots=True)
class Lengths:
    """A histogram of sequence lengths, in tokens."""

    counts: np.ndarray = field(default_factory=lambda: np.zeros(1, np.int64))

    def add(self, lengths: np.ndarray) -> None:
        """Add sequences of these lengths."""
        more = np.bincount(lengths, minlength=self.counts.size)
        more[: self.counts.size] += self.counts
        self.counts = more

    @property
    def sequences(self) -> int:
        """Number of sequences."""
        return int(self.counts.sum())

    @property
    def tokens(self) -> int:
        """Number of tokens."""
        return int(self.counts @ np.arange(self.counts.size))

    def quantile(self, share: float) -> int:
        """The length that this share of the sequences does not exceed."""
        reached = np.cumsum(self.counts) >= share * self.sequences
        return int(np.argmax(reached))

    def bins(self, most: int = 12) -> list[tuple[int, int, int]]:
        """At most `most` bins of round width: first length, last length, number of sequences."""
        longest = int(np.flatnonzero(self.counts)[-1]) if self.sequences else 0
        usual = max(1, self.quantile(0.99)) if self.sequences else 1
        width = next(w for w in _widths() if w * (most - 1) >= usual)
        ends = [*range(width, width * (most - 1) + 1, width), max(longest, width * most)]
        starts = [0, *(end + 1 for end in ends[:-1])]
        bins = [(a, b, int(self.counts[a : b + 1].sum())) for a, b in zip(starts, ends, strict=True)]
        while len(bins) > 1 and not bins[-1][2]:
            bins.pop()
        return bins

    def as_dict(self) -> dict[str, Any]:
        """The report for JSON."""
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
    """What became of a corpus; `measure` adds the tokens while examples are encoded."""

    files: tuple[str, ...]
    sides: tuple[str, ...]
    """The names of the sides, such as their languages."""
    lines: int
    validation: int
    test: int
    split_off: int
    """Held-out rows that were taken from the corpus; the others were given."""
    repairs: Tally
    dropped: Tally
    left_out: Tally
    """Rows left out of a given validation set."""
    source_lines: int
    """Lines that the rows were derived from; fewer than `lines` if a line gives several."""
    examples: dict[str, str] = field(default_factory=dict)
    """A dropped text for the most frequent reason, if most lines were dropped."""
    warnings: list[str] = field(default_factory=list)
    """What is probably not as it was meant."""
    vocab_size: int = 0
    lengths: tuple[Lengths, ...] = ()

    @property
    def training(self) -> int:
        """Number of training examples."""
        return self.lines - self.dropped.total - self.split_off

    def measure(
        self, examples: Iterable[tuple[np.ndarray, ...]], cleaned: Cleaned, max_tokens: int
    ) -> Iterator[tuple[np.ndarray, ...]]:
        """Yield encoded examples and count their tokens; drop those with a side of over `max_tokens`."""
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

    def doubt_dropped(self) -> None:
        """Warn if most lines were dropped; complete after `measure`."""
        self.warnings += dropped_warning(self.dropped, self.lines, self.examples)

    def as_dict(self) -> dict[str, Any]:
        """The report for JSON."""
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
            "notes": list(self.repairs.notes),
            "warnings": list(self.warnings),
            "sides": {name: lengths.as_dict() for name, lengths in sides},
        }

    def as_text(self) -> str:
        """The report as plain text."""
        given = self.validation + self.test - self.split_off
        origin = "given" if not self.split_off else f"{given:,} of them given" if given else "split off"
        held_out = f"{self.validation:,} for validation, {self.test:,} for test ({origin})"
        rows = counted(self.lines, "line")
        if self.source_lines < self.lines:
            rows = f"{counted(self.lines, 'example')} from {counted(self.source_lines, 'line')}"
        lines = [
            "Data: " + ", ".join(self.files),
            f"  {rows}; {self.training:,} for training, {held_out}",
            *_tallied("dropped", self.dropped, self.lines),
            *_tallied("repaired", self.repairs),
            *(f"  {note}" for note in self.repairs.notes),
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
    """The report on a cleaned corpus, without tokens; `validation` and `test` are the sizes of given sets."""
    given = {Fate.VALIDATION: validation, Fate.TEST: test}
    skipped, dropped = cleaned.corpus.skipped, cleaned.dropped
    dropped.add_tally(skipped)
    examples: dict[str, str] = {}
    if 2 * dropped.total > cleaned.n_lines:  # only a warning shows one; finding it reads the files again
        fate = max(REASONS, key=cleaned.count)
        examples[REASONS[fate]] = next(filter(None, next(cleaned.rows(fate), ())), "")
    taken = {fate: cleaned.count(fate) if number is None else 0 for fate, number in given.items()}
    return Report(
        files=cleaned.corpus.names,
        sides=tuple(sides),
        lines=cleaned.n_lines + skipped.total,
        validation=taken[Fate.VALIDATION] if validation is None else validation,
        test=taken[Fate.TEST] if test is None else test,
        split_off=sum(taken.values()),
        repairs=cleaned.repairs,
        dropped=dropped,
        left_out=left_out or Tally(),
        source_lines=cleaned.places.n_lines + skipped.total,
        examples=examples,
        vocab_size=vocab_size,
        lengths=tuple(Lengths() for _ in sides),
    )


def _tallied(heading: str, tally: Tally, lines: int | None = None) -> list[str]:
    """One line per kind, with its share of `lines`, if given, and the first places.

    Repairs have no share: both sides of a pair may need them, so that it could exceed 100%.
    """
    if not tally.counts:
        return [f"  nothing {heading}"]
    wide = max(map(len, tally.counts))
    rows = [f"  {heading}:"]
    for what, entry in tally.as_dict().items():
        count, first = entry["lines"], entry["first"]
        places = _places(first) + (", …" if count > len(first) else "")
        share = "" if lines is None else f"  {count / lines:>6.2%}"
        rows.append(f"    {what:<{wide}}  {count:>9,}{share}  {places}")
    return rows


def _places(examples: list[str]) -> str:
    """Places with each file named once: `train.zh:3, 12, 40`."""
    shown, last = [], ""
    for example in examples:
        name, _, line = example.rpartition(":")
        shown.append(line if name == last else example)
        last = name
    return ", ".join(shown)


def _drawn(name: str, lengths: Lengths) -> list[str]:
    """The histogram of one side's lengths."""
    if not lengths.sequences:
        return [f"  {name}: no tokens"]
    facts = lengths.as_dict()
    summary = f"mean {facts['mean']}, median {facts['median']}, longest {facts['longest']:,}"
    rows = [f"  {name}: {counted(facts['tokens'], 'token')}; lengths: {summary}"]
    bins = lengths.bins()
    most = max(count for *_, count in bins)
    for first, last, count in bins:
        bar = "█" * round(_BAR * count / most) or ("▏" if count else "")
        rows.append(f"    {first:>5} to {last:<5} {count:>9,}  {bar}".rstrip())
    return rows
