"""What every engine does: token ids in, hypotheses out. Text is the business of those above."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from regard.decode.hypothesis import Hypothesis


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """One sequence to decode from."""

    ids: tuple[int, ...]
    """The inputs, without the token that ends them: engines add it."""
    prefix: tuple[int, ...] = ()
    """How the output must begin."""
    phrases: tuple[tuple[tuple[int, ...], ...], ...] = ()
    """What the output must contain: of each phrase, one of its spellings in tokens."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Search:
    """How to look for outputs."""

    beam_size: int = 4
    """Hypotheses kept at each step; 1 is greedy search (6.1)."""
    length_penalty: float = 0.6
    """The paper's alpha: scores are divided by ((5 + length) / 6) ** alpha (6.1)."""
    n_best: int = 1
    """Hypotheses given back, the best first."""
    token_scores: bool = False
    """Whether each token's log-probability is wanted: an engine may have to run once more for it."""
    min_length: int = 0
    """Fewest tokens of an output, the one that ends it not counted."""
    extra_length: int = 50
    """How many tokens longer than its input an output may grow (6.1)."""
    sample: bool = False
    """Draw tokens instead of searching for the likeliest."""
    temperature: float = 1.0
    top_k: int = 0
    """Draw from so many of the likeliest tokens; 0 for all."""
    top_p: float = 1.0
    """Draw from the likeliest tokens that together have this probability."""
    min_p: float = 0.0
    """Draw from tokens at least this share as likely as the likeliest."""
    seed: int = 1
    """Where drawing starts."""


NOTHING = Hypothesis(ids=(), token_log_probs=(), score=0.0, finished=True)
"""What becomes of an empty request."""


class Engine(Protocol):
    """A loaded model that decodes and scores."""

    name: str
    """As people choose it: torch, ctranslate2."""

    @property
    def lanes(self) -> int:
        """Batches that it runs side by side."""

    def room(self, search: Search) -> int:
        """Input tokens that it likes to run as one batch, padding counted."""

    def lane(self) -> Engine:
        """The same engine for one of several threads that each bring a batch: it is not parted among them.

        To be called in the thread that will use it.
        """

    def refusal(self, search: Search, requests: Sequence[Request]) -> str | None:
        """Why it cannot do this, as a sentence; None if it can."""

    def decode(self, requests: Sequence[Request], search: Search) -> list[tuple[Hypothesis, ...]]:
        """For each request, in order, its hypotheses, the best first.

        No batch mate has a part in a result, except in how the engine rounds sums in batches of its shape.
        """

    def score(
        self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
    ) -> list[tuple[float, ...]]:
        """Log-probability of each token of each target, given its source, and of the one that ends it."""

    def stream(self, request: Request, search: Search) -> Iterator[int]:
        """Tokens of one output as they are found, without the one that ends it; greedy or drawn."""
