"""How the learning rate changes over a run (5.3)."""

from __future__ import annotations

import math
from typing import assert_never

from regard.config import TrainingConfig

DECAY = 0.2
"""Share of a run in which "warmup-stable-decay" falls to nothing."""


def learning_rate(config: TrainingConfig, d_model: int, step: int, done: float | None = None) -> float:
    """The learning rate of a step, counted from 1.

    Args:
        config: which schedule, and how high.
        d_model: the model's width, which the paper's schedule knows.
        step: the step that is to be taken.
        done: share of the run that lies before it, by the limit that will end the run; by steps if not given.
    """
    # The last step still learns: before it, not all of the run is done.
    done = min(1.0, (step - 1) / config.max_steps if done is None else done)
    match config.schedule:
        case "paper":
            rise, fall = step * config.warmup_steps**-1.5, step**-0.5
            return config.learning_rate * d_model**-0.5 * min(rise, fall)
        case "cosine":  # Departure 9
            return config.learning_rate * _warm_up(config, step) * _cosine(done)
        case "warmup-stable-decay":  # Departure 9
            falling = min(1.0, (1.0 - done) / DECAY)
            return config.learning_rate * _warm_up(config, step) * falling
        case other:
            assert_never(other)


def _warm_up(config: TrainingConfig, step: int) -> float:
    return min(1.0, step / config.warmup_steps)


def _cosine(done: float) -> float:
    return 0.5 * (1.0 + math.cos(math.pi * done))
