"""How texts are labelled, and what becomes of them. No torch here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from regard.errors import RequestError

TooLong = Literal["error", "cut"]
"""What to do about a text that is longer than the model reads."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Labelling:
    """How to label texts."""

    too_long: TooLong = "error"
    """A text that is too long is an error, or its beginning is read and the rest counted."""
    threshold: float = 0.5
    """Where a text may have several labels, it gets those that are at least so probable."""

    def __post_init__(self) -> None:
        if not 0 < self.threshold < 1:
            raise RequestError(f"`threshold={self.threshold}` is not between 0 and 1")
        if self.too_long not in get_args(TooLong):
            raise RequestError(f"`too_long={self.too_long!r}` is not error or cut")


@dataclass(frozen=True, kw_only=True, slots=True)
class Classification:
    """The label of a text, or its labels."""

    text: str
    label: str
    """The likeliest."""
    probability: float
    labels: tuple[str, ...]
    """That one; or where a text may have several, all that are probable enough, perhaps none."""
    probabilities: dict[str, float]
    """Of every label, the likeliest first."""
    cut: int = 0
    """Tokens at the end of the text that were not read."""
    unseen: tuple[str, ...] = ()
    """Characters that the vocabulary has only as bytes: the model knows little of them."""
