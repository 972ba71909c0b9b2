"""The journal of a run: one JSON object a line, what happened and when.

A run that is resumed goes on from a checkpoint; what the journal says of later steps is taken back first, so
that it reads as if the run had never stopped.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class Journal:
    """An append-only file that can be taken back to an earlier length."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.touch()

    def write(self, **entry: Any) -> None:
        """Append one entry."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry, ensure_ascii=False) + "\n")

    def length(self) -> int:
        """Bytes written so far: a place to come back to."""
        return self.path.stat().st_size

    def cut(self, length: int) -> None:
        """Take back what was written after a place."""
        if self.length() > length:
            os.truncate(self.path, length)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        with self.path.open(encoding="utf-8") as file:
            yield from map(json.loads, file)
