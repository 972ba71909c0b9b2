import pytest

from regard.config import TrainingConfig
from regard.training.schedule import doubt, learning_rate


def rates(schedule, steps, **settings):
    config = TrainingConfig(schedule=schedule, **settings)
    return [learning_rate(config, 512, step) for step in steps]


def test_the_paper_s_schedule_is_its_formula():
    """d_model^-0.5 * min(step^-0.5, step * warmup^-1.5), section 5.3; they meet where the warm-up ends."""
    early, peak, late = rates("paper", [100, 4000, 16000])
    assert early == pytest.approx(512**-0.5 * 100 * 4000**-1.5)
    assert peak == pytest.approx(512**-0.5 * 4000**-0.5)
    assert late == pytest.approx(peak / 2)


@pytest.mark.parametrize("schedule", ["paper", "cosine", "warmup-stable-decay"])
def test_the_rate_of_every_schedule_is_its_highest(schedule):
    steps = range(1, 3000)
    found = rates(schedule, steps, learning_rate=3e-3, warmup_steps=100, max_steps=100_000)
    assert max(found) == pytest.approx(3e-3, rel=1e-3)
    usual = rates(schedule, steps, warmup_steps=100, max_steps=100_000)
    assert max(usual) == pytest.approx((512 * 100) ** -0.5, rel=1e-3)
    assert found == pytest.approx([rate * 3e-3 / (512 * 100) ** -0.5 for rate in usual])


def test_a_rate_that_no_optimizer_takes_is_questioned():
    for rate in (1.0, 0.1, 1e-8):
        assert f"{rate:g}" in doubt(TrainingConfig(learning_rate=rate), 512)
        assert "paper" not in doubt(TrainingConfig(learning_rate=rate), 512, planned=True)
    for rate in (None, 1e-5, 1e-3, 1e-2):
        assert doubt(TrainingConfig(learning_rate=rate), 512) is None


@pytest.mark.parametrize("schedule", ["cosine", "warmup-stable-decay"])
def test_others_rise_to_the_rate_and_end_near_nothing(schedule):
    steps = range(1, 1001)
    found = rates(schedule, steps, learning_rate=0.5, warmup_steps=100, max_steps=1000)
    assert found[0] == pytest.approx(0.005)
    assert max(found) <= 0.5
    assert max(found) > 0.48
    assert 0 < found[-1] < 0.01
    peak = found.index(max(found))
    assert all(later <= earlier for earlier, later in zip(found[peak:], found[peak + 1 :], strict=False))


def test_the_plain_lies_between_the_warm_up_and_the_last_fifth():
    found = rates(
        "warmup-stable-decay", [100, 500, 800, 901], learning_rate=2.0, warmup_steps=100, max_steps=1000
    )
    assert found == pytest.approx([2.0, 2.0, 2.0, 1.0])


@pytest.mark.parametrize("schedule", ["cosine", "warmup-stable-decay"])
def test_another_limit_than_steps_tells_how_far_the_fall_is(schedule):
    config = TrainingConfig(schedule=schedule, warmup_steps=1, learning_rate=1.0, max_steps=1000)
    assert learning_rate(config, 512, 7, 0.95) == pytest.approx(learning_rate(config, 512, 951))
    assert learning_rate(config, 512, 7, 1.5) == pytest.approx(0.0)
