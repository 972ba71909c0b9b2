"""Where each row of a corpus stands in its files, and which rows were made from one line."""

from __future__ import annotations

from bisect import bisect
from dataclasses import dataclass, field

import numpy as np

from regard.text.files.lines import Block


@dataclass(slots=True)
class Places:
    """File and line of every row; rows take memory only where they were made from other files' lines."""

    starts: list[tuple[int, str, int]] = field(default_factory=list)
    """Where each file starts: index of the row in the corpus, the file, the number of the line there."""
    count: int = 0
    """Rows so far."""
    _made_from: list[np.ndarray] = field(default_factory=list)

    def add(self, block: Block) -> None:
        """Note the rows of one more block."""
        if not self.starts or self.starts[-1][1] != block.name:
            self.starts.append((self.count, block.name, block.first))
        if block.made_from:
            self._made_from.append(np.array(block.made_from, np.uint32))
        self.count += len(block)

    def __getitem__(self, index: int) -> tuple[str, int]:
        """File and line number of a row, counted from 0."""
        start, name, line = self.starts[bisect(self.starts, index, key=lambda start: start[0]) - 1]
        if not self._made_from:
            return name, line + index - start
        return name, int(self._lines()[index])

    @property
    def n_lines(self) -> int:
        """Lines of the files that there are rows of."""
        groups = self.groups()
        return self.count if groups is None else int(groups[-1])

    def groups(self) -> np.ndarray | None:
        """A number for each row, the same and rising: those of one line share it. None: a line is a row."""
        if not self._made_from:
            return None
        lines = self._lines()
        changes = np.diff(lines, prepend=lines[:1]) != 0
        changes[[start for start, _, _ in self.starts]] = True
        return None if changes.all() else np.cumsum(changes)

    def _lines(self) -> np.ndarray:
        self._made_from = [np.concatenate(self._made_from)]
        return self._made_from[0]
