"""What an experiment found, as values, as JSON and as text."""

import json
import math

import pytest

from regard.experiments.experiment import (
    Both,
    Chart,
    Experiment,
    Findings,
    Judgement,
    Line,
    PerSeed,
    ResultTable,
    as_document,
    run_experiment,
)
from regard.experiments.report import format_cell, report


def found(size, seeds):
    assert size == "short"
    numbers = PerSeed.of(seed * 0.5 for seed in seeds)
    return Findings(
        (
            ResultTable(
                Both("losses", "损失表"),
                ("d_k", "steps", Both("loss", "损失")),
                ((Both("ours", "我们的"), 1200, numbers), ("GRU", 7, math.nan)),
            ),
        ),
        (Chart("loss", "steps", (Line("ours", (1, 2), (numbers, numbers)),)),),
        (Judgement(True, Both("two is more", "二更多")), Judgement(False, Both("one is more", "一更多"))),
    )


EXPERIMENT = Experiment("example", Both("a claim", "一个论断"), found)


def test_seeds_agree_or_do_not():
    low, high = PerSeed.of([1, 5, 2]), PerSeed.of([2, 6, 3])
    assert low.below(high)
    assert not high.below(low)
    assert not low.below(PerSeed.of([2, 6, 2]))
    assert (low.mean, low.low, low.high) == (8 / 3, 1.0, 5.0)


def test_a_run_is_json():
    document = json.loads(json.dumps(run_experiment(EXPERIMENT, "short", 3).document(), allow_nan=False))
    assert document["claim"] == {"en": "a claim", "zh": "一个论断"}
    assert (document["size"], document["seeds"]) == ("short", [1, 2, 3])
    (table,) = document["tables"]
    numbers = {"mean": 1.0, "low": 0.5, "high": 1.5, "values": [0.5, 1.0, 1.5]}
    assert table["rows"][0] == [{"en": "ours", "zh": "我们的"}, 1200, numbers]
    assert table["rows"][1] == ["GRU", 7, None]
    assert table["columns"] == ["d_k", "steps", {"en": "loss", "zh": "损失"}]
    assert document["charts"][0]["lines"][0]["x"] == [1, 2]
    assert [judgement["holds"] for judgement in document["verdict"]] == [True, False]


def test_numbers_of_json_have_at_most_eight_digits():
    assert as_document({"a": (1 / 3, math.inf, True)}) == {"a": [0.33333333, None, True]}


def test_a_run_is_text_in_columns_and_two_languages():
    lines = report(run_experiment(EXPERIMENT, "short", 2)).splitlines()
    assert lines[:2] == ["example: a claim", "一个论断"]
    assert lines[3:8] == [
        "losses · 损失表",
        "  d_k            steps  loss",
        "                        损失",
        "  ours · 我们的  1,200  0.75 (0.5 to 1)",
        "  GRU            7      nan",
    ]
    assert lines[-4:] == [
        "✓ holds: two is more",
        "  成立：二更多",
        "✗ does not hold: one is more",
        "  不成立：一更多",
    ]


def test_labels_that_both_languages_share_are_told_once():
    signs = Findings((ResultTable("d_k", ("n", "64"), (("GRU", 0.5),)),), (), ())
    lines = report(
        run_experiment(Experiment("example", Both("a claim", "一个论断"), lambda *_: signs), "short", 1)
    )
    assert lines.splitlines()[3:] == ["d_k", "  n    64", "  GRU  0.5"]


def test_what_trains_nothing_has_no_seeds():
    seeds = []
    experiment = Experiment("example", Both("", ""), lambda _, given: seeds.append(given), seeded=False)
    assert run_experiment(experiment, "short", 3).seeds == ()
    assert seeds == [()]


def test_seeds_that_agree_are_one_number():
    assert format_cell(PerSeed.of([2.0, 2.0])) == "2"


def test_a_table_has_rows_of_one_width():
    with pytest.raises(AssertionError, match="2 columns"):
        ResultTable("losses", ("a", "b"), (("x",),))


def test_a_line_has_a_number_for_each_place():
    with pytest.raises(AssertionError, match="2 x, 1 y"):
        Line("a", (1, 2), (PerSeed.of([1.0]),))
