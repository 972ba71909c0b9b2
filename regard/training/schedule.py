"""How the learning rate changes over a run (5.3).

A schedule is a function `(config, d_model, step, done) -> rate`, registered under a name:

* `step` counts from 1;
* `done` is the share of the run before this step, from 0 to 1.
"""

from __future__ import annotations

import math

from regard.config import TrainingConfig, registries

DECAY = 0.2
"""Share of a run in which "warmup-stable-decay" falls to zero."""
USUAL = (1e-6, 2e-2)
"""Highest rates outside this range are questioned: with Adam and Muon, weights change by about the rate."""


def learning_rate(config: TrainingConfig, d_model: int, step: int, done: float | None = None) -> float:
    """The learning rate of a step.

    Args:
        config: names the schedule and the highest rate.
        d_model: the model's width, which the paper's schedule uses.
        step: number of the step, counted from 1.
        done: share of the run before this step, by the limit that ends the run; by default from `max_steps`.
    """
    # The last step still learns: before it, the run is not quite done.
    done = min(1.0, (step - 1) / config.max_steps if done is None else done)
    rate: float = registries.schedules[config.schedule](config, d_model, step, done)
    return rate


def paper_peak(config: TrainingConfig, d_model: int) -> float:
    """The highest rate of the paper's schedule: (d_model · warmup_steps)^-0.5."""
    return float((d_model * config.warmup_steps) ** -0.5)


def highest_rate(config: TrainingConfig, d_model: int) -> float:
    """The rate at the end of the warm-up: as configured, or the paper's."""
    return paper_peak(config, d_model) if config.learning_rate is None else config.learning_rate


def doubt(config: TrainingConfig, d_model: int, *, planned: bool = False) -> str | None:
    """What is odd about the configured rate; None for a usual one.

    `planned`: a rate that is left out is chosen for the data; otherwise it is the paper's.
    """
    rate, (lowest, highest) = config.learning_rate, USUAL
    if rate is None or lowest <= rate <= highest:
        return None
    usual = "is chosen" if planned else f"is the paper's, here {paper_peak(config, d_model):.2g}"
    return (
        f"training.learning_rate = {rate:g} is very {'high' if rate > highest else 'low'}: it is the highest "
        f"rate, usually 0.0001 to 0.005; if it is left out, it {usual}"
    )


@registries.schedules.register("paper")
def paper(config: TrainingConfig, d_model: int, step: int, done: float) -> float:  # noqa: ARG001
    """d_model^-0.5 · min(step^-0.5, step · warmup_steps^-1.5) (5.3, eq. 3), unless another peak is set."""
    rise, fall = step * config.warmup_steps**-1.5, step**-0.5
    usual: float = d_model**-0.5 * min(rise, fall)
    share = 1.0 if config.learning_rate is None else config.learning_rate / paper_peak(config, d_model)
    return usual * share


@registries.schedules.register("cosine")
def cosine(config: TrainingConfig, d_model: int, step: int, done: float) -> float:
    """Departure 9: a warm-up, then half a cosine down to zero."""
    return highest_rate(config, d_model) * _warm_up(config, step) * (0.5 * (1.0 + math.cos(math.pi * done)))


@registries.schedules.register("warmup-stable-decay")
def warmup_stable_decay(config: TrainingConfig, d_model: int, step: int, done: float) -> float:
    """Departure 9: a warm-up, a level, and a straight fall to zero at the end."""
    return highest_rate(config, d_model) * _warm_up(config, step) * min(1.0, (1.0 - done) / DECAY)


def _warm_up(config: TrainingConfig, step: int) -> float:
    return min(1.0, step / config.warmup_steps)
