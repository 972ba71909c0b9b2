"""Comparison of systems on one test set: scores with intervals, and significance of the differences.

All statistics are sacreBLEU's: every system is scored on the same random resamples of the test set, drawn
with a fixed seed (12345, or the environment variable SACREBLEU_SEED), which the signatures state.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.significance import PairedTest, Result

from regard.config.checking import counted
from regard.scores.translation import MOSES, check_pairs, exact_share, tokenised_bleu, tokenizer_of

RESAMPLES = 1000
RESAMPLED_LINES = 20_000_000
"""Larger sets get fewer resamples: sacreBLEU holds all of them in memory, 100 bytes per line."""
FEWEST_RESAMPLES = 100


@dataclass(frozen=True, kw_only=True, slots=True)
class Measure:
    """One metric of one system."""

    name: str
    score: float
    mean: float
    """Mean score over the resamples."""
    margin: float
    """Half the width of the 95% interval of the resamples' scores."""
    signature: str
    p_value: float | None = None
    """p-value of the difference from the first system; None for the first system."""

    def __str__(self) -> str:
        return f"{self.name} {self.score:.2f}  μ = {self.mean:.2f} ± {self.margin:.2f}  ({self.signature})"


@dataclass(frozen=True, kw_only=True, slots=True)
class System:
    """Scores of one system."""

    name: str
    measures: tuple[Measure, ...]
    """BLEU, chrF and chrF++, as sacreBLEU names them."""
    tokenised_bleu: float | None
    """BLEU as older papers report it; None for languages without spaces."""
    exact: float
    """Share of outputs identical to their reference."""

    def lines(self) -> Iterator[str]:
        """The report, one line per metric."""
        first, *others = map(str, self.measures)
        yield first
        if self.tokenised_bleu is not None:
            yield f"BLEU {self.tokenised_bleu:.2f}  ({MOSES})"
        yield from others
        yield f"exact matches: {self.exact:.1%}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """Scores of one or more systems on one test set."""

    language: str | None
    n_lines: int
    resamples: int
    systems: tuple[System, ...]

    def __str__(self) -> str:
        n, resamples = counted(self.n_lines, "line"), f"{self.resamples:,} resamples"
        blocks = [f"{n}; μ ± is the mean and 95% interval over {resamples} of them"]
        blocks += ["\n  ".join([system.name, *system.lines()]) for system in self.systems]
        if len(self.systems) > 1:
            blocks.append("\n".join(self._differences()))
        return "\n\n".join(blocks)

    def _differences(self) -> Iterator[str]:
        baseline, *others = self.systems
        yield f"Against {baseline.name}, by paired bootstrap resampling:"
        for system in others:
            yield f"  {system.name}"
            for before, now in zip(baseline.measures, system.measures, strict=True):
                yield f"    {now.name} {now.score - before.score:+.2f}, p = {now.p_value:.3f}"
        yield "p is how often chance alone would make a difference as large, were the two equally good."
        yield "Small values speak against chance; below 0.05 is what most call significant."


def compare(
    systems: Mapping[str, Sequence[str]], references: Sequence[str], language: str | None = None
) -> Comparison:
    """Score every system, and compare all others with the first.

    Args:
        systems: the outputs of each system, by its name in the report.
        references: one per output.
        language: the code of the outputs' language.

    Raises:
        ShapeError: there is nothing to score, or a system has more or fewer lines than the references.
    """
    for outputs in systems.values():
        check_pairs(outputs, references)
    resamples = max(FEWEST_RESAMPLES, min(RESAMPLES, RESAMPLED_LINES // len(references)))
    # `force` suppresses a warning about tokenised text, which every evaluation would log.
    metrics = {
        "bleu": BLEU(tokenize=tokenizer_of(language), force=True),
        "chrf": CHRF(),
        "chrf++": CHRF(word_order=2),
    }
    test = PairedTest(
        [(name, list(outputs)) for name, outputs in systems.items()],
        metrics,
        [list(references)],
        test_type="bs",
        n_samples=resamples,
    )
    signatures, results = test()
    return Comparison(
        language=language,
        n_lines=len(references),
        resamples=resamples,
        systems=tuple(
            System(
                name=name,
                measures=tuple(
                    _measure(metric, str(signature), results[metric][i], results[metric][0])
                    for metric, signature in signatures.items()
                ),
                tokenised_bleu=tokenised_bleu(outputs, references, language),
                exact=exact_share(outputs, references),
            )
            for i, (name, outputs) in enumerate(systems.items())
        ),
    )


def _measure(name: str, signature: str, result: Result | str, first: Result | str) -> Measure:
    assert isinstance(result, Result), "only sacreBLEU's column of system names is text"
    assert isinstance(first, Result), "only sacreBLEU's column of system names is text"
    assert result.mean is not None, "resampling gives every system a mean"
    assert result.ci is not None, "resampling gives every system an interval"
    p_value = result.p_value
    if p_value is not None and result.score == first.score:
        p_value = 1.0  # sacreBLEU would report 0.001, as no resample has a difference above 0
    return Measure(
        name=name,
        score=float(result.score),
        mean=float(result.mean),
        margin=float(result.ci),
        signature=signature,
        p_value=p_value,
    )
