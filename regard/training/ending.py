"""How a run ends: a limit is reached, somebody asks, or the loss runs away."""

from __future__ import annotations

import math
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from regard.config import TrainingConfig
from regard.config.checking import counted
from regard.errors import RegardError

ASKED_TO_STOP = "asked to stop"
"""Why a run left that may go on."""
MEMORY = 0.95
"""How much of the smoothed loss stays at each step: it looks back over twenty of them, about."""


class DivergedError(RegardError):
    """The loss is no longer a number, or far above what it was."""


@dataclass
class Progress:
    """What a run remembers beside weights and data; written with every checkpoint."""

    step: int = 0
    best_loss: float = math.inf
    best_step: int = 0
    validated: int = 0
    """The step of the last validation."""
    stale: int = 0
    """Validations since the best."""
    seconds: float = 0.0
    """Time spent training, interruptions not counted."""
    parts: int = 0
    """Parts that a process takes its share of a step in; 0 before the first step."""
    recent_loss: float = math.inf
    """Of the last steps, about."""
    lowest_loss: float = math.inf
    """The lowest that `recent_loss` has been."""


def reason_to_stop(training: TrainingConfig, progress: Progress, epochs: float) -> str | None:
    """The limit that is reached, in words; None while there is none."""
    most_epochs = training.max_epochs or math.inf
    minutes = math.inf if training.max_minutes is None else training.max_minutes
    limits = {
        f"{counted(progress.step, 'step is', 'steps are')} done": progress.step >= training.max_steps,
        f"{counted(most_epochs, 'epoch is', 'epochs are')} done": epochs >= most_epochs,
        f"{counted(minutes, 'minute is', 'minutes are')} over": progress.seconds >= 60 * minutes,
        f"no better loss in {counted(progress.stale, 'validation')}": 0 < training.patience <= progress.stale,
    }
    return next((words for words, reached in limits.items() if reached), None)


def share_done(training: TrainingConfig, progress: Progress, epochs: float) -> float:
    """How much of the run is behind, by the limit that comes first."""
    minutes = training.max_minutes
    return max(
        progress.step / training.max_steps,
        epochs / (training.max_epochs or math.inf),
        0.0 if minutes is None else progress.seconds / max(1e-9, 60 * minutes),
    )


def watch_loss(progress: Progress, loss: float, norm: float) -> str | None:
    """Take the loss of a step in; says what is wrong with it, if something is.

    A loss that has risen, for some twenty steps, to half as much again as it was and one nat more does not
    come back by itself. A single bad batch passes.
    """
    if not math.isfinite(loss) or not math.isfinite(norm):
        return f"the loss is {loss:.4g} and the gradient's norm {norm:.4g}"
    begun = math.isfinite(progress.recent_loss)
    progress.recent_loss = MEMORY * progress.recent_loss + (1 - MEMORY) * loss if begun else loss
    progress.lowest_loss = min(progress.lowest_loss, progress.recent_loss)
    if progress.recent_loss > 1.5 * progress.lowest_loss + 1.0:
        return f"the loss has risen from {progress.lowest_loss:.3g} to {progress.recent_loss:.3g}"
    return None


@contextmanager
def asked_to_stop() -> Iterator[Callable[[], bool]]:
    """Turn SIGINT and SIGTERM into a question that can be asked between steps."""
    asked: list[int] = []
    signals = (signal.SIGINT, signal.SIGTERM)

    def note(number: int, _: object) -> None:
        if asked:  # whoever asks twice means at once
            raise KeyboardInterrupt
        asked.append(number)

    before = [signal.signal(each, note) for each in signals]
    try:
        yield lambda: bool(asked)
    finally:
        for each, handler in zip(signals, before, strict=True):
            signal.signal(each, handler)
