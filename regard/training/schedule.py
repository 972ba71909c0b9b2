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


@registries.schedules.register("paper")
def paper(config: TrainingConfig, d_model: int, step: int, done: float) -> float:  # noqa: ARG001
    """d_model^-0.5 · min(step^-0.5, step · warmup_steps^-1.5) (5.3, eq. 3)."""
    rise, fall = step * config.warmup_steps**-1.5, step**-0.5
    return config.learning_rate * d_model**-0.5 * min(rise, fall)


@registries.schedules.register("cosine")
def cosine(config: TrainingConfig, d_model: int, step: int, done: float) -> float:  # noqa: ARG001
    """Departure 9: a warm-up, then half a cosine down to zero."""
    return config.learning_rate * _warm_up(config, step) * (0.5 * (1.0 + math.cos(math.pi * done)))


@registries.schedules.register("warmup-stable-decay")
def warmup_stable_decay(config: TrainingConfig, d_model: int, step: int, done: float) -> float:  # noqa: ARG001
    """Departure 9: a warm-up, a level, and a straight fall to zero at the end."""
    return config.learning_rate * _warm_up(config, step) * min(1.0, (1.0 - done) / DECAY)


def _warm_up(config: TrainingConfig, step: int) -> float:
    return min(1.0, step / config.warmup_steps)
