"""Timing: how often, and that it leaves the threads as they were."""

import pytest
import torch

from regard.experiments.timing import core_seconds


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
