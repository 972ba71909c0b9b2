from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.look.figures.axes import (
    Scale,
    covering,
    line_path,
    round_ticks,
    smoothed,
    spread,
    thinned,
)
from regard.look.figures.svg import tick_label
from tests.look.pictures import points

ranges = st.tuples(st.floats(-100, 100), st.floats(1e-6, 1e6)).map(
    lambda pair: (pair[0] * pair[1], pair[0] * pair[1] + pair[1])
)


def test_a_scale_by_hand():
    scale = Scale(0, 10, 100, 0)
    assert [scale.at(value) for value in (0, 2.5, 10, 99)] == [100, 75, 0, 0]
    log = Scale(1, 100, 0, 200, log=True)
    assert [log.at(value) for value in (1, 10, 100)] == pytest.approx([0, 100, 200])


@given(ranges, st.integers(1, 12))
def test_ticks_are_round_inside_and_few(ends, most):
    low, high = ends
    ticks = round_ticks(low, high, most)
    assert len(ticks) <= most
    for tick in ticks:
        assert low - 1e-6 * (high - low) <= tick <= high + 1e-6 * (high - low)
    if len(ticks) > 1:
        step = ticks[1] - ticks[0]
        mantissa = float(f"{step:.3e}".split("e")[0])
        assert mantissa in (1, 2, 5)
        assert all(tick / step == pytest.approx(round(tick / step), abs=1e-3) for tick in ticks)


def test_steps_are_counted_in_whole_numbers():
    assert round_ticks(0, 2, 9, least_step=1) == [0, 1, 2]


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (1.4, 11, [1.5, 2, 3, 4, 5, 7, 10]),
        (0.01, 100, [0.01, 0.1, 1, 10, 100]),
        (4.1, 4.9, [4.2, 4.4, 4.6, 4.8]),
    ],
)
def test_ticks_of_a_logarithm(low, high, expected):
    assert Scale(low, high, 0, 1, log=True).ticks(7) == expected


@pytest.mark.parametrize(
    ("value", "label"),
    [
        (0.0, "0"),
        (20000.0, "20,000"),
        (0.5, "0.5"),
        (2e-4, "2e-4"),
        (1e-5, "1e-5"),
        (3e9, "3e9"),
        (1.5, "1.5"),
    ],
)
def test_labels_are_written_as_one_writes_them(value, label):
    assert tick_label(value) == label


def test_a_scale_covers_what_is_finite():
    scale = covering(np.array([2.0, np.nan, np.inf, 5.0]), 0, 1)
    assert scale.low == 0 < 5 < scale.high < 6
    log = covering(np.array([0.0, 2.0, 5.0]), 0, 1, log=True)
    assert 1.5 < log.low < 2 < 5 < log.high < 6
    covering(np.array([]), 0, 1)
    covering(np.array([0.0]), 0, 1)


def test_thinning_keeps_the_spikes_of_every_column():
    x = np.linspace(0, 100, 50_000)
    y = np.random.default_rng(7).normal(size=x.size)
    y[31_337], y[17] = 99, -99
    kept = thinned(x, y)
    assert len(kept) <= 4 * 101
    for column in range(100):
        here, of_kept = y[np.floor(x) == column], y[kept][np.floor(x[kept]) == column]
        assert (here.min(), here.max()) == (of_kept.min(), of_kept.max())
        assert (here[0], here[-1]) == (of_kept[0], of_kept[-1])


def test_few_points_are_all_kept():
    assert thinned(np.array([0.0, 1.0, 2.0]), np.array([5.0, 3.0, 4.0])).tolist() == [0, 1, 2]


def test_a_line_is_broken_where_a_value_is_missing():
    x = np.arange(5.0)
    d = line_path(x, np.array([1.0, 2.0, np.nan, 3.0, 4.0]))
    assert points(d) == [(0, 1), (1, 2), (3, 3), (4, 4)]
    assert d.count("M") == 2
    assert line_path(x, np.full(5, np.nan)) == ""


def test_a_point_that_stands_alone_is_a_dot():
    assert line_path(np.arange(3.0), np.array([np.nan, 2.0, np.nan])) == "M1 2h0"


@given(st.lists(st.one_of(st.just(np.nan), st.floats(-100, 100)), min_size=1), st.integers(0, 5))
def test_smoothing_is_a_mean_of_neighbours(values, reach):
    found = smoothed(np.array(values), reach)
    for i, value in enumerate(values):
        near = [v for v in values[max(0, i - reach) : i + reach + 1] if not np.isnan(v)]
        expected = np.nan if np.isnan(value) else np.mean(near)
        assert found[i] == pytest.approx(expected, abs=1e-9, nan_ok=True)


@given(st.lists(st.floats(0, 100), max_size=5))
def test_labels_are_spread_and_keep_their_order(places):
    found = spread(places, 15, 0, 100)
    order = sorted(range(len(places)), key=places.__getitem__)
    for before, after in pairwise(order):
        assert found[after] - found[before] >= 15 - 1e-9
    assert all(-1e-9 <= place <= 100 + 1e-9 for place in found)


def test_labels_with_room_stay_where_they_are():
    assert spread([70.0, 20.0], 15, 0, 100) == [70.0, 20.0]
