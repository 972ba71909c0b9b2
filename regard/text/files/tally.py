"""What happened to lines, counted under its name, with the first places where it did."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

EXAMPLES = 3
"""Places that are kept of each kind."""


@dataclass(slots=True)
class Tally:
    """How often each thing happened, and where first: `train.zh:12`."""

    counts: dict[str, int] = field(default_factory=dict)
    examples: dict[str, list[str]] = field(default_factory=dict)

    def add(self, what: str, name: str, line: int, count: int = 1) -> None:
        """Count `what` once more, or `count` times; `line` of the file `name` is the first of them."""
        self.counts[what] = self.counts.get(what, 0) + count
        examples = self.examples.setdefault(what, [])
        if len(examples) < EXAMPLES and f"{name}:{line}" not in examples:
            examples.append(f"{name}:{line}")

    def add_all(
        self, what: str, lines: Sequence[int] | np.ndarray, place: Callable[[int], tuple[str, int]]
    ) -> None:
        """Count `what` for each of these lines; `place` tells file and number, and is asked for few."""
        missing = max(0, EXAMPLES - len(self.examples.get(what, ())))
        for line in lines[:missing]:
            self.add(what, *place(int(line)))
        if len(lines) > missing:
            self.counts[what] += len(lines) - missing

    @property
    def total(self) -> int:
        """How much happened in all."""
        return sum(self.counts.values())

    def as_dict(self) -> dict[str, Any]:
        """As JSON can hold it, the most frequent first."""
        often = sorted(self.counts.items(), key=lambda item: -item[1])
        return {what: {"lines": count, "first": list(self.examples[what])} for what, count in often}
