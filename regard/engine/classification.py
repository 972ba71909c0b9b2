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

    def __post_init__(self) -> None:
        if self.too_long not in get_args(TooLong):
            raise RequestError(f"too_long = {self.too_long!r} is not error or cut")


@dataclass(frozen=True, kw_only=True, slots=True)
class Classification:
    """The label of a text."""

    text: str
    label: str
    """The likeliest."""
    probability: float
    probabilities: dict[str, float]
    """Of every label, the likeliest first."""
    cut: int = 0
    """Tokens at the end of the text that were not read."""
    unseen: tuple[str, ...] = ()
    """Characters that the vocabulary has only as bytes: the model knows little of them."""
