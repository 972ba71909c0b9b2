"""How a text is continued, and what becomes of it. No torch here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from regard.errors import RequestError
from regard.text.vocabularies.vocabulary import Vocabulary

PastLength = Literal["error", "slide"]
"""What to do where a text grows longer than the model was trained for."""
Finish = Literal["end", "stop", "length"]
"""Why a text ends: the model ended it, a stop string came, or a limit."""
SLIDING = 256
"""Tokens that are added where nobody says how many, and no length of the model is a limit."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Generation:
    """How to continue a text."""

    max_tokens: int | None = None
    """Most tokens to add; none for as many as the model was trained for, or 256 in a sliding window."""
    temperature: float = 1.0
    """Below 1 the likely get likelier, above 1 chances even out; 0 takes the likeliest token each time."""
    top_k: int = 0
    """Draw from so many of the likeliest tokens; 0 for all."""
    top_p: float = 1.0
    """Draw from the fewest likeliest tokens that together have this probability."""
    min_p: float = 0.0
    """Draw from tokens at least this share as likely as the likeliest."""
    seed: int = 1
    """Where the draws start: the same seed gives the same text."""
    stop: Sequence[str] = ()
    """The text ends before any of these."""
    past_length: PastLength = "error"
    """Past the trained length: an error, or a window that slides along and forgets the beginning."""

    def __post_init__(self) -> None:
        checks = {
            f"`max_tokens={self.max_tokens}` must be at least 1": self.max_tokens is None
            or self.max_tokens >= 1,
            f"`temperature={self.temperature}` must be at least 0": self.temperature >= 0,
            "a stop string is empty": all(self.stop),
            f"`past_length={self.past_length!r}` is not error or slide": self.past_length
            in get_args(PastLength),
        }
        if problems := [problem for problem, holds in checks.items() if not holds]:
            raise RequestError("; ".join(problems))

    def room(self, n_prompt: int, max_length: int) -> int:
        """How many tokens may be added to a prompt of so many.

        Raises:
            RequestError: it would grow longer than the model was trained for, and the window is not to slide.
        """
        if self.past_length == "slide":
            return SLIDING if self.max_tokens is None else self.max_tokens
        # The last token is not read, and the one that starts every text is.
        left = max_length - n_prompt
        wanted = max(1, left) if self.max_tokens is None else self.max_tokens
        if wanted > left:
            told = f"the model was trained on texts of {max_length:,} tokens, and the prompt has {n_prompt:,}"
            ways = "ask for fewer tokens, shorten the prompt, or let the window slide (`past_length='slide'`)"
            raise RequestError(
                f"{told}, which leaves room for {max(0, left):,} and not for {wanted:,}: {ways}"
            )
        return wanted


@dataclass(frozen=True, kw_only=True, slots=True)
class Continuation:
    """What was added to a prompt."""

    prompt: str
    text: str
    """Without the prompt, and without what stopped it."""
    finish: Finish
    n_prompt_tokens: int
    tokens: tuple[str, ...]
    """What was added, in subwords, as the vocabulary writes them."""
    token_scores: tuple[float, ...]
    """The model's own log-probability of each of these tokens."""
    unseen: tuple[str, ...] = ()
    """Characters of the prompt that the vocabulary has only as bytes: the model knows little of them."""


def unseen_characters(subwords: Vocabulary, text: str) -> tuple[str, ...]:
    """Characters of a text, each once, that no subword has, so that they are spelt in bytes."""
    found = dict.fromkeys(character for character in text if not character.isspace())
    pieces = (subwords.pieces(ids.tolist()) for ids in subwords.encode(list(found)))
    return tuple(
        character
        for character, spelt in zip(found, pieces, strict=True)
        if any(piece.startswith("<0x") and len(piece) == len("<0x00>") for piece in spelt)
    )


class Stopping:
    """Lets a text through up to a stop string; of what might become one, it waits for the rest."""

    def __init__(self, stop: Sequence[str]) -> None:
        self._stop = tuple(stop)
        self.stopped = False

    def __call__(self, pieces: Iterable[str]) -> Iterator[str]:
        """The pieces of the text that are safe to show, as soon as they are."""
        held = ""
        for piece in pieces:
            held += piece
            places = [place for stop in self._stop if (place := held.find(stop)) >= 0]
            if places:
                self.stopped = True
                held = held[: min(places)]
                break
            safe = len(held) - self._waiting(held)
            if safe:
                yield held[:safe]
                held = held[safe:]
        if held:
            yield held

    def _waiting(self, text: str) -> int:
        """How much of the end of a text might be the beginning of a stop string."""
        beginnings = (stop[:n] for stop in self._stop for n in range(1, len(stop)))
        return max((len(start) for start in beginnings if text.endswith(start)), default=0)
