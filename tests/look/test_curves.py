import math
import random
import re

import pytest

from regard.look.figures.curves import curves_svg, read_record
from tests.look.pictures import all_of, outside, overlapping, parse, points, size, texts


def events(steps, *, validate_every=0, spikes=(), missing=()):
    chance = random.Random(11)
    for step in range(1, steps + 1):
        loss = 2 + 6 * math.exp(-8 * step / steps) + chance.gauss(0, 0.1)
        loss = math.nan if step in missing else 9.5 if step in spikes else loss
        yield {
            "step": step,
            "loss": loss,
            "tokens": 700,
            "learning_rate": 1e-3 / step,
            "seconds": step / 10,
        }
        if validate_every and step % validate_every == 0:
            valid = 2.1 + abs(step / steps - 0.6)
            yield {"step": step, "valid_loss": valid, "valid_bleu": 30.0 * step / steps}


def lines(picture, colour):
    return [path for path in all_of(picture, "path") if path.get("class") == f"{colour}-line"]


def grid(picture):
    """The extent of the axes of the first panel: left, right, top line, bottom line."""
    rows = [re.fullmatch(r"M([\d.]+) ([\d.]+)H([\d.]+)", path.get("d")) for path in lines(picture, "soft")]
    return next((float(row[1]), float(row[3]), float(row[2])) for row in rows if row)


RUNS = {
    "nothing": [],
    "a step": list(events(1)),
    "a run": list(events(1300, validate_every=100, spikes=[700])),
    "without validation": list(events(97)),
    "not finite": list(events(97, validate_every=10, missing=range(50, 60))),
    "never finite": list(events(7, missing=range(8))),
    "validation alone": [{"step": 5, "valid_loss": 2.0}],
    "infinite": [{"step": 1, "loss": math.inf}, {"step": 2, "loss": 3.0}],
    "all the same": [{"step": step, "loss": 0.0, "learning_rate": 0.0} for step in range(1, 5)],
    "wide numbers": [{"step": 10**9, "loss": 1e30, "learning_rate": 1e-30, "tokens": 1, "seconds": 1e-9}],
    "many steps": [{"step": step, "loss": 2.0, "learning_rate": 1e-3} for step in (1, 20_000_000)],
    "averaged and tested": [
        *events(100, validate_every=10),
        {"step": 100, "averaged": 5, "valid_loss": 2.05},
        {"step": 100, "test": {"bleu": 41.2, "chrf": 60.1, "bleu_signature": "words"}},
        {"said": "words"},
        {"unknown": 1},
    ],
}


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize("title", ["runs/zh-en", "<&>\x1b猫 " * 40])
def test_no_text_is_cut_or_meets_another(run, title):
    picture = curves_svg(run, title)
    assert outside(picture) == []
    assert overlapping(picture) == []
    assert "nan" not in picture
    assert "inf" not in picture


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_all_points_lie_inside_the_picture(run):
    picture = curves_svg(run)
    width, height = size(picture)
    for path in all_of(picture, "path"):
        assert all(0 <= x <= width and 0 <= y <= height for x, y in points(path.get("d")))
    for circle in all_of(picture, "circle"):
        assert 0 < float(circle.get("cx")) < width
        assert 0 < float(circle.get("cy")) < height


def test_a_run_that_learns_labels_shows_their_accuracy():
    run = [each | ({"valid_accuracy": 0.75} if "valid_loss" in each else {}) for each in RUNS["a run"]]
    picture = curves_svg(run, unit="text")
    assert "nats a text" in picture
    assert "validation accuracy 75.0%" in picture
    assert (outside(picture), overlapping(picture)) == ([], [])
    assert "accuracy" not in curves_svg(run)


def test_the_lines_of_the_losses_lie_between_the_axes():
    picture = curves_svg(RUNS["a run"])
    left, right, bottom = grid(picture)
    for colour in ("blue", "orange"):
        drawn = points(lines(picture, colour)[0].get("d"))
        assert all(left <= x <= right and y <= bottom for x, y in drawn)
        assert drawn[-1][0] == pytest.approx(right, abs=0.1)


def test_lower_losses_are_lower_and_later_steps_further_right():
    picture = curves_svg([{"step": 1, "loss": 4.0}, {"step": 2, "loss": 3.0}, {"step": 4, "loss": 3.5}])
    (x1, y1), (x2, y2), (x4, y4) = points(lines(picture, "blue")[0].get("d"))
    assert x1 < x2 < x4
    assert x4 - x2 == pytest.approx(2 * (x2 - x1), abs=0.05)
    assert y2 > y4 > y1  # pixels are counted downwards


def test_many_steps_make_a_small_file_that_keeps_its_spike():
    calm = curves_svg(events(30_000))
    picture = curves_svg(events(30_000, spikes=[18_541]))
    assert len(picture) < 150_000
    left, right, _ = grid(picture)
    at = left + 0.61803 * (right - left)
    top = min(points(lines(picture, "blue")[0].get("d")), key=lambda point: point[1])
    assert top[0] == pytest.approx(at, abs=1)
    assert min(points(lines(calm, "blue")[0].get("d")), key=lambda point: point[1])[0] < left + 30


def test_the_best_validation_is_marked_where_it_happened():
    picture = curves_svg(RUNS["a run"])
    (ring,) = [circle for circle in all_of(picture, "circle") if "best" in circle.get("class")]
    left, right, _ = grid(picture)
    assert float(ring.get("cx")) == pytest.approx(left + 800 / 1300 * (right - left), abs=0.1)
    assert ring[0].text.endswith("at step 800")
    assert "○ best 2.115" in texts(picture)


def test_steps_without_a_finite_loss_are_marked_and_counted():
    picture = curves_svg(RUNS["not finite"])
    assert len(lines(picture, "ink")) == 10
    assert any("10 steps without a finite loss" in text for text in texts(picture))
    assert lines(picture, "blue")[0].get("d").count("M") == 2


def test_what_is_not_there_is_not_drawn():
    names = " ".join(texts(curves_svg(RUNS["without validation"])))
    assert "validation" not in names
    assert "learning rate" in names
    assert "BLEU" not in names
    assert "no step yet" in texts(curves_svg([]))


def test_the_mean_of_checkpoints_is_no_point_of_the_validation_line():
    picture = curves_svg(RUNS["averaged and tested"])
    assert "◇ mean of 5 2.050" in texts(picture)
    assert len(points(lines(picture, "orange")[0].get("d"))) == 10
    facts = " ".join(texts(picture))
    assert "test BLEU 41.20" in facts
    assert "test chrF 60.10" in facts
    assert "signature" not in facts


def test_the_title_names_the_run():
    picture = curves_svg([], "runs/猫 <1>")
    assert parse(picture)[0].text == "runs/猫 <1>"
    assert "runs/猫 <1>" in texts(picture)


def test_the_speed_is_tokens_by_time():
    record = read_record(events(1000))
    assert record.speed.values == pytest.approx([7000.0] * len(record.speed))
    assert len(record.speed) == 120
    assert (record.tokens, record.seconds, record.last_step) == (700_000, 100.0, 1000)


def test_the_speed_leaves_validations_out():
    run = [
        {"step": step, "tokens": 60, "seconds": step + (90.0 if step > 3 else 0.0)} for step in range(1, 7)
    ]
    run.insert(3, {"step": 3, "valid_loss": 2.0})
    assert read_record(run).speed.values.tolist() == [60] * 5


def test_a_run_that_is_told_from_its_middle_has_no_first_speed():
    record = read_record(
        [{"step": 5, "tokens": 10, "seconds": 3.0}, {"step": 6, "tokens": 8, "seconds": 5.0}]
    )
    assert (record.speed.steps.tolist(), record.speed.values.tolist()) == ([6], [4])


def test_the_speed_takes_steps_whose_tokens_and_time_are_both_known():
    run = [{"step": 2, "tokens": 500}, {"step": 1, "seconds": 7.0}]
    run += [{"step": step, "tokens": 10 * step, "seconds": 20.0 + 2 * step} for step in (3, 4, 5)]
    run.append({"step": 6, "seconds": 99.0})
    record = read_record(run)
    assert (record.speed.steps.tolist(), record.speed.values.tolist()) == ([4, 5], [20, 25])


def test_a_validation_after_the_first_step_takes_time_from_the_second_step_only():
    run = [{"step": 1, "tokens": 60, "seconds": 2.0}, {"step": 1, "valid_loss": 3.0}]
    run += [{"step": 2, "tokens": 60, "seconds": 95.0}, {"step": 3, "tokens": 60, "seconds": 96.0}]
    record = read_record(run)
    assert (record.speed.steps.tolist(), record.speed.values.tolist()) == ([1, 3], [30, 60])
