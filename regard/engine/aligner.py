"""Who can tell which words of an output come from which words of its input: somebody above, who can look."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from regard.engine.result import WordLink

Ids = Sequence[int]


class Aligner(Protocol):
    """Aligns what a model read with what it wrote, whichever engine ran."""

    about: str
    """What it goes by, in words."""

    def __call__(self, pairs: Sequence[tuple[Ids, Ids]]) -> list[tuple[WordLink, ...]]:
        """The links of each pair of inputs and outputs, with places in the texts that these spell."""
