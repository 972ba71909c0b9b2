"""What comes out: translations, scores, word links, continuations, labels. No torch here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, Protocol

Ids = Sequence[int]
Finish = Literal["end", "stop", "length"]
"""Why a generated text ends: the model ended it, at a stop string, or at a limit."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WordLink:
    """A word of a translation and the source word that it mostly comes from.

    Positions count characters of the source text, with accents composed (NFC), and of the translation.
    """

    source: str
    target: str
    source_start: int
    source_end: int
    target_start: int
    target_end: int
    strength: float
    """Share of the target word's attention that went to the source word, from 0 to 1."""

    def moved(self, source: int, target: int) -> WordLink:
        """The same link, moved by some characters in the source and in the translation."""
        return replace(
            self,
            source_start=self.source_start + source,
            source_end=self.source_end + source,
            target_start=self.target_start + target,
            target_end=self.target_end + target,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class NumberChange:
    """A value of the source that its translation does not have, and what it has instead.

    Positions count characters of the source text, with accents composed (NFC), and of the translation.
    """

    source: str
    source_start: int
    source_end: int
    source_value: str
    """The value in digits, whatever the language: `1400000000`, `45%`, `11-28`, `15:45`."""
    target: str = ""
    """What stands for it in the translation; empty if the value is lost."""
    target_start: int | None = None
    target_end: int | None = None
    target_value: str = ""

    def moved(self, source: int, target: int) -> NumberChange:
        """The same change, moved by some characters in the source and in the translation."""
        return replace(
            self,
            source_start=self.source_start + source,
            source_end=self.source_end + source,
            target_start=None if self.target_start is None else self.target_start + target,
            target_end=None if self.target_end is None else self.target_end + target,
        )

    def __str__(self) -> str:
        instead = f"became {self.target!r} ({self.target_value})" if self.target else "is lost"
        return f"{self.source!r} ({self.source_value}) {instead}"


class Aligner(Protocol):
    """Interface for word alignment; implemented in `look/`, because it reads attention."""

    about: str
    """The method, in words."""

    def __call__(self, pairs: Sequence[tuple[Ids, Ids]]) -> list[tuple[WordLink, ...]]:
        """The links of each pair of inputs and outputs, with positions in the texts that they decode to."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """A translation; of a text with several sentences, of all of them together."""

    text: str
    score: float = 0.0
    """Log-probability over length penalty, which ranks outputs; the sum over several sentences."""
    log_prob: float = 0.0
    tokens: tuple[str, ...] = ()
    """The output in subwords, as the vocabulary writes them."""
    token_scores: tuple[float, ...] = ()
    """Log-probability of each token, and of the end of each sentence, if requested."""
    alternatives: tuple[Result, ...] = ()
    """The next best, if requested; of several sentences, the second best of each, and so on."""
    engine: str = ""
    """The engines that ran: torch, ctranslate2, or both for different sentences; empty if none had to."""
    repetitive: bool = False
    """Whether an output ends in a loop, even after a second attempt."""
    unfinished: bool = False
    """Whether an output was cut off at the length limit."""
    split: int = 1
    """Number of pieces that a text was split into because it was too long; 1 if it was not."""
    missing: tuple[str, ...] = ()
    """What the text should contain but does not: of a glossary, of `keep`, or a URL, placeholder, code.

    A phrase is listed once for each occurrence of its source that has no counterpart."""
    unexpected_language: str = ""
    """Code of the language of a text, or of a sentence, that stays as it is because it is in none of the
    model's source languages; empty otherwise, and where `source` was given."""
    numbers: tuple[NumberChange, ...] = ()
    """Values of the source, such as amounts and dates, that the text does not have."""
    alignment: tuple[WordLink, ...] = ()
    """Where each word of the translation comes from, if requested."""
    aligned_by: str = ""
    """The alignment's method: which heads, and whether they were chosen by measuring."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Score:
    """How likely a model finds a given translation."""

    log_prob: float
    """Of all tokens together, including the end."""
    tokens: tuple[str, ...]
    token_scores: tuple[float, ...]
    """Log-probability of each token, and of the end."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Continuation:
    """What was added to a prompt."""

    prompt: str
    text: str
    """Without the prompt, and without the stop string."""
    finish: Finish
    n_prompt_tokens: int
    tokens: tuple[str, ...]
    """The new tokens, as the vocabulary writes them."""
    token_scores: tuple[float, ...]
    """The model's log-probability of each new token, before temperature and truncation."""
    unseen: tuple[str, ...] = ()
    """Characters of the prompt that are in no subword, only as bytes: the model knows little about them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Classification:
    """The label of a text, or its labels."""

    text: str
    label: str
    """The most likely label."""
    probability: float
    labels: tuple[str, ...]
    """That one; where a text may have several labels, all above the threshold, possibly none."""
    probabilities: dict[str, float]
    """Of every label, the most likely first."""
    cut: int = 0
    """Number of tokens that were cut off the end of the text."""
    unseen: tuple[str, ...] = ()
    """Characters that are in no subword, only as bytes: the model knows little about them."""


class TranslatedLines(NamedTuple):
    """The translations of a test set."""

    lines: list[str]
    how: str
    """The engine and its search, for a report."""


def joined(text: str, results: Sequence[Result], split: int) -> Result:
    """The results of a text's sentences as one result."""
    return Result(
        text=text,
        score=sum(each.score for each in results),
        log_prob=sum(each.log_prob for each in results),
        tokens=tuple(token for each in results for token in each.tokens),
        token_scores=tuple(score for each in results for score in each.token_scores),
        engine=", ".join(sorted({each.engine for each in results})),
        repetitive=any(each.repetitive for each in results),
        unfinished=any(each.unfinished for each in results),
        split=split,
        missing=tuple(phrase for each in results for phrase in each.missing),
        numbers=tuple(change for each in results for change in each.numbers),
        alignment=tuple(link for each in results for link in each.alignment),
        aligned_by=next((each.aligned_by for each in results if each.aligned_by), ""),
    )
