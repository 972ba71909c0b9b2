"""How the learning rate changes over a run (5.3)."""

from __future__ import annotations

import math
from typing import assert_never

from regard.config import TrainingConfig

DECAY = 0.2
"""Share of a run in which "warmup-stable-decay" falls to nothing."""


def learning_rate(config: TrainingConfig, d_model: int, step: int) -> float:
    """The learning rate of a step, counted from 1."""
    match config.schedule:
        case "paper":
            rise, fall = step * config.warmup_steps**-1.5, step**-0.5
            return config.learning_rate * d_model**-0.5 * min(rise, fall)
        case "cosine":  # Departure 9
            return config.learning_rate * _warm_up(config, step) * _cosine(_done(config, step))
        case "warmup-stable-decay":  # Departure 9
            falling = min(1.0, (1.0 - _done(config, step)) / DECAY)
            return config.learning_rate * _warm_up(config, step) * falling
        case other:
            assert_never(other)


def _warm_up(config: TrainingConfig, step: int) -> float:
    return min(1.0, step / config.warmup_steps)


def _done(config: TrainingConfig, step: int) -> float:
    """Share of the run that lies before a step: the last step still learns."""
    return min(1.0, (step - 1) / config.max_steps)


def _cosine(done: float) -> float:
    return 0.5 * (1.0 + math.cos(math.pi * done))
