"""What becomes of a text: its translation, or its score. No torch here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True, kw_only=True, slots=True)
class WordLink:
    """A word of a translation and the word of the text that it comes from, most of all.

    Places count characters of the text, with accents composed (NFC), and of the translation.
    """

    source: str
    target: str
    source_start: int
    source_end: int
    target_start: int
    target_end: int
    strength: float
    """How much of its attention the target's word gave to the source's, from 0 to 1."""

    def moved(self, source: int, target: int) -> WordLink:
        """The same link, so many characters further on in the text and in the translation."""
        return replace(
            self,
            source_start=self.source_start + source,
            source_end=self.source_end + source,
            target_start=self.target_start + target,
            target_end=self.target_end + target,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """A translation; where a text has several sentences, of all of them together."""

    text: str
    score: float = 0.0
    """Log-probability over length penalty, by which outputs are ranked; of several sentences, the sum."""
    log_prob: float = 0.0
    tokens: tuple[str, ...] = ()
    """The output in subwords, as the vocabulary writes them."""
    token_scores: tuple[float, ...] = ()
    """Log-probability of each token, and of the end after a sentence's last; where asked for."""
    alternatives: tuple[Result, ...] = ()
    """The next best, where asked for; of several sentences, the second best of each, and so on."""
    engine: str = ""
    """Which engines ran: torch, ctranslate2, or both for different sentences; none where nothing had to."""
    repetitive: bool = False
    """Whether an output goes round in a loop, and trying again did not help."""
    unfinished: bool = False
    """Whether an output was cut off at the limit of length."""
    split: int = 1
    """In how many pieces it was translated because it was too long in one; 1 where nothing was too long."""
    missing: tuple[str, ...] = ()
    """What the text ought to contain and does not: of a glossary, of `keep`, or an address, a field, code."""
    alignment: tuple[WordLink, ...] = ()
    """Where each word of the translation comes from; where asked for."""
    aligned_by: str = ""
    """What the alignment goes by: which heads, and whether they were chosen by measuring."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Score:
    """How likely a model finds a given translation."""

    log_prob: float
    """Of all tokens together, and of the end."""
    tokens: tuple[str, ...]
    token_scores: tuple[float, ...]
    """Log-probability of each token, and of the end."""


def together(text: str, results: Sequence[Result], split: int) -> Result:
    """The results of a text's sentences as one."""
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
        missing=tuple(dict.fromkeys(phrase for each in results for phrase in each.missing)),
        alignment=tuple(link for each in results for link in each.alignment),
        aligned_by=next((each.aligned_by for each in results if each.aligned_by), ""),
    )
