"""Scores of translations against references, each with the signature that says how it was worked out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from regard.errors import ShapeError

WITHOUT_SPACES = {
    "zh": "zh",
    "yue": "zh",
    "ja": "char",
    "th": "char",
    "km": "char",
    "lo": "char",
    "my": "char",
}
"""How sacreBLEU cuts languages that are written without spaces; everything else takes its default, 13a."""


@dataclass(frozen=True, slots=True)
class TranslationScore:
    """BLEU, chrF and the share of outputs that are the reference to the letter."""

    bleu: float
    bleu_signature: str
    chrf: float
    chrf_signature: str
    exact: float
    n_lines: int

    def __str__(self) -> str:
        return (
            f"BLEU {self.bleu:.2f}  ({self.bleu_signature})\n"
            f"chrF {self.chrf:.2f}  ({self.chrf_signature})\n"
            f"exact matches: {self.exact:.1%} of {self.n_lines:,} lines"
        )


def score_translations(
    outputs: Sequence[str], references: Sequence[str], language: str | None = None
) -> TranslationScore:
    """Score outputs against one reference each; `language` is the code of the outputs' language."""
    if len(outputs) != len(references):
        raise ShapeError("outputs", f"one for each of {len(references)} references", len(outputs))
    if not references:
        raise ShapeError("references", "at least one line", 0)
    tokenize = WITHOUT_SPACES.get((language or "").split("-")[0], "13a")
    bleu, chrf = BLEU(tokenize=tokenize), CHRF()
    return TranslationScore(
        bleu=bleu.corpus_score(list(outputs), [list(references)]).score,
        bleu_signature=str(bleu.get_signature()),
        chrf=chrf.corpus_score(list(outputs), [list(references)]).score,
        chrf_signature=str(chrf.get_signature()),
        exact=sum(o == r for o, r in zip(outputs, references, strict=True)) / len(references),
        n_lines=len(references),
    )
