"""Systems side by side on one test set: scores with intervals, and whether differences may be chance.

All of the statistics are sacreBLEU's: every system is scored on the same random resamples of the test set,
drawn from a fixed seed (12345, or what SACREBLEU_SEED says), which signatures state.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.significance import PairedTest, Result

from regard.scores.translation import MOSES, check_pairs, exact_share, tokenised_bleu, tokenizer_of

RESAMPLES = 1000
RESAMPLED_LINES = 20_000_000
"""Of larger sets fewer resamples are drawn: sacreBLEU holds all of them at once, 100 bytes a line."""
FEWEST_RESAMPLES = 100


@dataclass(frozen=True, kw_only=True, slots=True)
class Measure:
    """One metric of one system."""

    name: str
    score: float
    mean: float
    """Of the score over the resamples."""
    margin: float
    """Half the width of what holds 95% of the resamples' scores."""
    signature: str
    p_value: float | None = None
    """Of the difference from the first system; None for the first itself."""

    def __str__(self) -> str:
        return f"{self.name} {self.score:.2f}  μ = {self.mean:.2f} ± {self.margin:.2f}  ({self.signature})"


@dataclass(frozen=True, kw_only=True, slots=True)
class System:
    """What one system's outputs are worth."""

    name: str
    measures: tuple[Measure, ...]
    """BLEU, chrF and chrF++, as sacreBLEU names them."""
    tokenised_bleu: float | None
    """BLEU as older papers print it; None for languages without spaces."""
    exact: float
    """The share of outputs that are the reference to the letter."""

    def lines(self) -> Iterator[str]:
        """For people, a metric a line."""
        first, *others = map(str, self.measures)
        yield first
        if self.tokenised_bleu is not None:
            yield f"BLEU {self.tokenised_bleu:.2f}  ({MOSES})"
        yield from others
        yield f"exact matches: {self.exact:.1%}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """What several systems made of one test set; one alone has nothing to be compared with."""

    language: str | None
    n_lines: int
    resamples: int
    systems: tuple[System, ...]

    def __str__(self) -> str:
        n, resamples = f"{self.n_lines:,} lines", f"{self.resamples:,} resamples"
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
    """Score every system's outputs, and compare all others with the first.

    Args:
        systems: the outputs of each, by the name that the report calls it.
        references: one for each output.
        language: the code of the outputs' language.

    Raises:
        ShapeError: there is nothing to score, or a system has more or fewer lines than the references.
    """
    for outputs in systems.values():
        check_pairs(outputs, references)
    resamples = max(FEWEST_RESAMPLES, min(RESAMPLES, RESAMPLED_LINES // len(references)))
    # `force` silences a warning about tokenised text, which a log of every evaluation would repeat.
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
    assert isinstance(result, Result), "of sacreBLEU's columns only the names of systems are text"
    assert isinstance(first, Result), "the same"
    assert result.mean is not None, "resampling gives every system a mean"
    assert result.ci is not None, "and an interval"
    p_value = result.p_value
    if p_value is not None and result.score == first.score:
        p_value = 1.0  # sacreBLEU would say 0.001, since no resample differs by more than nothing
    return Measure(
        name=name,
        score=float(result.score),
        mean=float(result.mean),
        margin=float(result.ci),
        signature=signature,
        p_value=p_value,
    )
