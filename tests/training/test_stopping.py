"""When a run ends: limits, signals, and losses that run away."""

import math
import os
import signal

import pytest

from regard.training.stopping import Progress, reason_to_stop, share_done, stop_requests, watch_loss
from tests.training.copying import config


def after(losses, norm=1.0):
    """What is said of a run with these losses, first to last; and how many were taken in before it."""
    progress = Progress()
    for n, loss in enumerate(losses):
        if trouble := watch_loss(progress, loss, norm):
            return trouble, n
    return None, len(losses)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_told_at_once(bad):
    assert "nan" in after([5.0, bad])[0] or "inf" in after([5.0, bad])[0]
    assert after([5.0, 4.0], norm=bad)[1] == 0


def test_a_single_bad_batch_passes():
    assert after([3.0] * 50 + [40.0] + [3.0] * 50)[0] is None


def test_a_loss_that_stays_far_above_what_it_was_is_an_explosion():
    trouble, step = after([2.0] * 50 + [9.0] * 50)
    assert "risen from 2 to" in trouble
    assert 55 < step < 70


def test_a_high_start_and_a_slow_rise_are_none():
    assert after([11.0 * 0.97**n for n in range(100)])[0] is None
    assert after([4.0 + 0.02 * n for n in range(100)])[0] is None


def test_the_first_loss_is_the_mean_so_far():
    progress = Progress()
    watch_loss(progress, 7.0, 1.0)
    assert (progress.recent_loss, progress.lowest_loss) == (7.0, 7.0)


def test_what_is_no_number_does_not_spoil_the_mean():
    progress = Progress(recent_loss=2.0, lowest_loss=1.0)
    assert watch_loss(progress, math.nan, 1.0)
    assert (progress.recent_loss, progress.lowest_loss) == (2.0, 1.0)


def training(*settings):
    return config("training.max_steps=100", *settings).training


@pytest.mark.parametrize(
    ("settings", "progress", "epochs", "reason"),
    [
        ([], Progress(step=99), 1000.0, None),
        ([], Progress(step=100), 0.0, "100 steps are done"),
        (["training.max_epochs=3"], Progress(step=5), 2.99, None),
        (["training.max_epochs=3"], Progress(step=5), 3.0, "3 epochs are done"),
        (["training.max_minutes=2"], Progress(step=5, seconds=119.0), 0.0, None),
        (["training.max_minutes=2"], Progress(step=5, seconds=120.0), 0.0, "2 minutes are over"),
        (["training.patience=4"], Progress(step=5, stale=3), 0.0, None),
        (["training.patience=4"], Progress(step=5, stale=4), 0.0, "no better loss in 4 validations"),
        (["training.patience=1"], Progress(step=5, stale=1), 0.0, "no better loss in 1 validation"),
        (["training.max_epochs=1"], Progress(step=5), 1.0, "1 epoch is done"),
        (["training.max_minutes=1"], Progress(step=5, seconds=60.0), 0.0, "1 minute is over"),
        (["training.patience=0"], Progress(step=5, stale=400), 0.0, None),
    ],
)
def test_the_limit_that_is_reached_is_said(settings, progress, epochs, reason):
    assert reason_to_stop(training(*settings), progress, epochs) == reason


def test_the_limit_that_comes_first_tells_how_far_a_run_is():
    settings = ["training.max_epochs=4", "training.max_minutes=10"]
    progress = Progress(step=20, seconds=180.0)
    assert share_done(training(), progress, 3.0) == pytest.approx(0.2)
    assert share_done(training(*settings), progress, 1.0) == pytest.approx(0.3)
    assert share_done(training(*settings), progress, 2.0) == pytest.approx(0.5)


def test_a_first_signal_is_a_question_and_a_second_one_an_order():
    with stop_requests() as requested:
        assert not requested()
        os.kill(os.getpid(), signal.SIGTERM)
        assert requested()
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
