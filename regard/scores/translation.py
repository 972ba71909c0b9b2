"""Scores of translations against references, with the signatures that make them reproducible."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from regard.config.checking import counted
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
"""sacreBLEU's tokenizers for languages written without spaces; all others use its default, 13a."""

MOSES = "lower-cased, tokenised as Moses does, for comparison with older papers"


@dataclass(frozen=True, slots=True)
class TranslationScore:
    """BLEU, chrF and the share of outputs identical to their reference."""

    bleu: float
    bleu_signature: str
    chrf: float
    chrf_signature: str
    exact: float
    n_lines: int
    tokenised_bleu: float | None = None
    """BLEU as older papers report it: lower-cased, Moses tokens. None for languages without spaces."""

    def __str__(self) -> str:
        older = self.tokenised_bleu
        tokenised = "" if older is None else f"BLEU {older:.2f}  ({MOSES})\n"
        return (
            f"BLEU {self.bleu:.2f}  ({self.bleu_signature})\n"
            f"{tokenised}"
            f"chrF {self.chrf:.2f}  ({self.chrf_signature})\n"
            f"exact matches: {self.exact:.1%} of {counted(self.n_lines, 'line')}"
        )


def score_translations(
    outputs: Sequence[str], references: Sequence[str], language: str | None = None
) -> TranslationScore:
    """Score outputs against one reference each; `language` is the code of the outputs' language."""
    check_pairs(outputs, references)
    # Without `force`, sacreBLEU logs a warning if outputs end in " .".
    bleu, chrf = BLEU(tokenize=tokenizer_of(language), force=True), CHRF()
    return TranslationScore(
        bleu=bleu.corpus_score(list(outputs), [list(references)]).score,
        bleu_signature=str(bleu.get_signature()),
        chrf=chrf.corpus_score(list(outputs), [list(references)]).score,
        chrf_signature=str(chrf.get_signature()),
        exact=exact_share(outputs, references),
        n_lines=len(references),
        tokenised_bleu=tokenised_bleu(outputs, references, language),
    )


def check_pairs(outputs: Sequence[str], references: Sequence[object]) -> None:
    """Raise unless there is at least one line, and one output per reference."""
    if len(outputs) != len(references):
        wanted = f"one for each of {len(references)} references"
        raise ShapeError("outputs", wanted, len(outputs), code="line_count_mismatch")
    if not references:
        raise ShapeError("references", "at least one line", 0, code="no_examples")


def tokenizer_of(language: str | None) -> str:
    """Name of sacreBLEU's tokenizer for a language, as in signatures."""
    return WITHOUT_SPACES.get((language or "").split("-")[0], "13a")


def exact_share(outputs: Sequence[str], references: Sequence[str]) -> float:
    """Share of outputs identical to their reference."""
    return sum(o == r for o, r in zip(outputs, references, strict=True)) / len(references)


def tokenised_bleu(outputs: Sequence[str], references: Sequence[str], language: str | None) -> float | None:
    """BLEU of lower-cased text, tokenised as Moses does; None for languages without spaces."""
    if tokenizer_of(language) != "13a":
        return None
    from sacremoses import MosesTokenizer  # type: ignore[import-untyped]

    moses = MosesTokenizer((language or "en").split("-")[0])
    sides = (
        [
            moses.tokenize(line.lower(), aggressive_dash_splits=True, return_str=True, escape=False)
            for line in side
        ]
        for side in (outputs, references)
    )
    cut_outputs, cut_references = sides
    return float(BLEU(tokenize="none", force=True).corpus_score(cut_outputs, [cut_references]).score)
