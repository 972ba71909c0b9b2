"""Intervals and p-values: sacreBLEU's own, and what they must be where one can tell."""

import pytest
from sacrebleu.metrics import BLEU, CHRF

from regard.errors import ShapeError
from regard.scores import comparison
from regard.scores.comparison import compare
from regard.scores.translation import score_translations
from tests.tasks.translators import REFERENCES

GOOD = [line + "!" for line in REFERENCES]
POOR = [line[: len(line) // 2] for line in REFERENCES]


def test_scores_are_those_of_one_system_alone():
    alone = score_translations(POOR, REFERENCES, "en")
    _, second = compare({"good": GOOD, "poor": POOR}, REFERENCES, "en").systems
    bleu, chrf, _ = second.measures
    assert (bleu.score, chrf.score) == (pytest.approx(alone.bleu), pytest.approx(alone.chrf))
    assert (second.tokenised_bleu, second.exact) == (pytest.approx(alone.tokenised_bleu), alone.exact)


@pytest.mark.parametrize("systems", [{"poor": POOR}, {"poor": POOR, "good": GOOD}])
def test_intervals_are_those_of_sacrebleu(systems):
    metrics = [BLEU(), CHRF(), CHRF(word_order=2)]
    first, *_ = compare(systems, REFERENCES, "en").systems
    for measure, metric in zip(first.measures, metrics, strict=True):
        expected = metric.corpus_score(POOR, [REFERENCES], n_bootstrap=1000)
        assert measure.score == pytest.approx(expected.score)
        assert measure.mean == pytest.approx(expected._mean, abs=1e-3)
        assert measure.margin == pytest.approx(expected._ci, abs=1e-3)
        assert measure.signature == str(metric.get_signature())


def test_a_clear_difference_is_significant_and_none_is_not():
    first, poor, again = compare({"good": GOOD, "poor": POOR, "again": list(GOOD)}, REFERENCES).systems
    assert all(measure.p_value is None for measure in first.measures)
    assert all(measure.p_value < 0.01 for measure in poor.measures)
    assert all(measure.p_value == 1 for measure in again.measures)


def test_the_report_says_what_p_means_where_there_is_one():
    report = str(compare({"good": GOOD, "poor": POOR}, REFERENCES))
    good, poor = (score_translations(each, REFERENCES).bleu for each in (GOOD, POOR))
    assert "Against good, by paired bootstrap resampling:\n  poor\n" in report
    assert f"    BLEU {poor - good:+.2f}, p = 0.001\n" in report
    assert "p is how often chance alone" in report
    assert "Against" not in str(compare({"good": GOOD}, REFERENCES))


def test_chinese_is_cut_by_signs_and_has_no_tokenised_bleu():
    (system,) = compare({"same": ["猫坐在垫子上。"]}, ["猫坐在垫子上。"], "zh").systems
    assert "tok:zh" in system.measures[0].signature
    assert system.tokenised_bleu is None
    assert "Moses" not in "".join(system.lines())


def test_large_sets_are_resampled_less_often(monkeypatch):
    monkeypatch.setattr(comparison, "RESAMPLED_LINES", 150 * len(REFERENCES))
    found = compare({"poor": POOR}, REFERENCES)
    assert found.resamples == 150
    assert "bs:150" in found.systems[0].measures[0].signature
    monkeypatch.setattr(comparison, "RESAMPLED_LINES", 1)
    assert compare({"poor": POOR}, REFERENCES).resamples == 100


def test_every_system_needs_a_line_for_each_reference():
    with pytest.raises(ShapeError, match="one for each of 23"):
        compare({"good": GOOD, "short": GOOD[1:]}, REFERENCES)
    with pytest.raises(ShapeError, match="at least one"):
        compare({"none": []}, [])
