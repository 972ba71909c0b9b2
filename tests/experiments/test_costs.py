"""Costs: that threads are left as they were, what is kept, and where lines cross."""

import pytest
import torch

from regard.experiments.small_models import core_seconds, crossing, kept_bytes


def test_work_is_done_on_one_core_four_times():
    seen, before = [], torch.get_num_threads()
    assert core_seconds(lambda: seen.append(torch.get_num_threads())) >= 0
    assert seen == [1, 1, 1, 1]
    assert torch.get_num_threads() == before


def test_threads_come_back_after_a_mistake():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with pytest.raises(ZeroDivisionError):
            core_seconds(lambda: 1 / 0)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_a_layer_keeps_what_its_gradient_needs():
    x = torch.randn(5, 7)
    assert kept_bytes(torch.nn.Linear(7, 3), x) == 0  # its input and its weights, which are there anyway
    two = torch.nn.Sequential(torch.nn.Linear(7, 3), torch.nn.Tanh(), torch.nn.Linear(3, 2))
    assert kept_bytes(two, x) == 5 * 3 * 4  # the hyperbolic tangents, needed twice and kept once


def test_two_lines_cross_where_one_comes_to_exceed_the_other_for_good():
    assert crossing((1, 4, 16), (1, 2, 4), (2, 2, 2)) == pytest.approx(4)
    assert crossing((1, 4, 16), (1, 1, 4), (2, 2, 2)) == pytest.approx(8)
    assert crossing((1, 4, 16), (1, 1, 1), (2, 2, 2)) is None
    assert crossing((1, 4, 16), (3, 3, 3), (2, 2, 2)) is None
    assert crossing((1, 4, 16, 64), (1, 4, 1, 4), (2, 2, 2, 2)) == pytest.approx(32)
    assert crossing((1, 4, 16), (1, 4, 1), (2, 2, 2)) is None
