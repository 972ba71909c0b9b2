"""The picture of a run: nothing sticks out, nothing overlaps, and lines go through their numbers."""

import math

import pytest

from regard.experiments.experiment import (
    Both,
    Chart,
    Experiment,
    ExperimentRun,
    Findings,
    Line,
    PerSeed,
    in_both,
)
from regard.experiments.picture import STROKES, picture
from tests.look.pictures import all_of, outside, overlapping, points, texts


def line(name, x, *seeds):
    return Line(name, x, [PerSeed.of(values) for values in zip(*seeds, strict=True)])


def drawn(*charts, seeds=(1, 2)):
    claim = Both("a claim of some length about d_k, √d_k and the softmax", "关于 softmax 的一个论断")
    findings = Findings((), charts, ())
    return picture(ExperimentRun(Experiment("example", claim, lambda *_: findings), "short", seeds, findings))


def of_d_k(name):
    return Chart(name, "d_k", (line("ours", (4, 64, 1024), (1, 2, 3)),), log_x=True)


CHARTS = {
    "one": [Chart("loss", "steps", (line("ours", (1, 2, 3), (3.0, 2.0, 1.0)),))],
    "three": [of_d_k("loss"), of_d_k("entropy"), of_d_k("gradient")],
    "one place": [Chart("loss", "d_k", (line("ours", (8,), (2.0,)),), log_x=True)],
    "the same": [Chart("loss", "x", tuple(line(f"line {i}", (0, 1), (0.5, 0.5)) for i in range(6)))],
    "many places": [Chart("loss", "x", (line("ours", range(1000), [1e-4] * 1000),), log_y=True)],
    "no number": [Chart("loss", "x", (line("ours", (1, 2, 3), (1, math.nan, 2), (2, math.nan, 2)),))],
    "both languages": [
        Chart(
            Both("loss", "损失"),
            Both("steps", "步数"),
            tuple(line(Both(f"line {i}", f"第 {i} 条线"), (0, 1), (0.5, 0.5)) for i in range(6)),
        )
    ],
    "never a number": [Chart("loss", "x", (line("ours", (1, 2), (math.nan, math.nan)),))],
}


@pytest.mark.parametrize("charts", CHARTS.values(), ids=CHARTS)
def test_all_words_have_room(charts):
    svg = drawn(*charts)
    assert not outside(svg)
    assert not overlapping(svg)
    assert "nan" not in svg
    assert {word for chart in charts for word in in_both(chart.name, "\n").split("\n")} <= {*texts(svg)}


def test_a_line_goes_through_the_mean_of_its_seeds():
    svg = drawn(Chart("loss", "x", (line("ours", (0, 1, 2), (0.0, 2.0, 4.0), (0.0, 4.0, 8.0)),)))
    (path,) = [path for path in all_of(svg, "path") if path.get("class") == "blue-line"]
    (x0, y0), (x1, y1), (x2, y2) = points(path.get("d"))
    assert x1 - x0 == pytest.approx(x2 - x1, abs=0.02)
    assert y0 - y1 == pytest.approx(y1 - y2, abs=0.02)
    (band,) = [path for path in all_of(svg, "path") if path.get("class") == "blue"]
    heights = [y for _, y in points(band.get("d"))]
    assert min(heights) < y2 < y0 == max(heights)


def test_the_places_of_a_few_numbers_are_the_ticks():
    svg = drawn(Chart("loss", "d_k", (line("ours", (4, 64, 1024), (1, 2, 3)),), log_x=True))
    assert {"4", "64", "1,024"} <= {*texts(svg)}


def test_places_too_close_to_another_have_no_tick():
    svg = drawn(Chart("share", "symbols", (line("ours", (6, 9, 12, 13, 24), (1, 2, 3, 4, 5)),)))
    assert {"6", "9", "12", "24"} <= {*texts(svg)}
    assert "13" not in texts(svg)


@pytest.mark.parametrize(("seeds", "told"), [((), 0), ((1,), 1), ((1, 2, 3), 1)])
def test_seeds_are_told_where_there_are_any(seeds, told):
    svg = drawn(*CHARTS["one"], seeds=seeds)
    assert sum("seed" in text for text in texts(svg)) == told


def test_a_claim_is_told_in_english_then_in_chinese():
    svg = drawn(*CHARTS["one"])
    both = Both("a claim of some length about d_k, √d_k and the softmax", "关于 softmax 的一个论断")
    assert texts(svg)[1:3] == [both.en, both.zh]


def test_lines_that_cannot_be_told_apart_are_refused():
    lines = tuple(line(str(i), (0, 1), (i, i)) for i in range(len(STROKES) + 1))
    with pytest.raises(AssertionError, match="7 lines"):
        drawn(Chart("loss", "x", lines))
