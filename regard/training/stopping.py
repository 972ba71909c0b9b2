"""How a run ends: at a limit, by a signal, or because the loss diverges."""

from __future__ import annotations

import math
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from regard.config import TrainingConfig
from regard.config.checking import counted
from regard.errors import RegardError
from regard.training.schedule import learning_rate

INTERRUPTED = "interrupted"
"""The reason of a run that a signal has stopped, and that may be resumed."""
LIMITS = ("max_steps", "max_epochs", "max_minutes", "patience")
"""Settings of training that may change when a run is resumed: they say when it ends."""
MEMORY = 0.95
"""Weight of the past in the smoothed loss: it averages about twenty steps."""


class DivergedError(RegardError):
    """The loss is not finite, or far above what it was."""


@dataclass
class Progress:
    """The state of a run beside weights and data; stored with every checkpoint."""

    step: int = 0
    best_loss: float = math.inf
    """Validation loss of the best model."""
    least_score: float = -math.inf
    """Score of the model that the run starts from; the best model has at least this."""
    best_step: int = 0
    validated: int = 0
    """The step of the last validation."""
    stale: int = 0
    """Validations since the best one."""
    seconds: float = 0.0
    """Time spent training, interruptions not counted."""
    parts: int = 0
    """Parts of a process's share of a step; 0 before the first step."""
    recent_loss: float = math.inf
    """Smoothed over the last steps."""
    lowest_loss: float = math.inf
    """The lowest `recent_loss` so far."""


def reason_to_stop(training: TrainingConfig, progress: Progress, epochs: float) -> str | None:
    """The limit that is reached, in words; None before."""
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
    """How much of the run is done, by the limit that comes first."""
    minutes = training.max_minutes
    return max(
        progress.step / training.max_steps,
        epochs / (training.max_epochs or math.inf),
        0.0 if minutes is None else progress.seconds / max(1e-9, 60 * minutes),
    )


def limits_of(training: TrainingConfig) -> dict[str, Any]:
    """The settings that say when a run ends."""
    return {name: getattr(training, name) for name in LIMITS}


def limits_note(
    before: Mapping[str, Any], training: TrainingConfig, d_model: int, progress: Progress, epochs: float
) -> str | None:
    """What to report if the limits of a run differ from those of its checkpoint; None if they do not."""
    now = limits_of(training)
    changed = {name: value for name, value in before.items() if name in now and value != now[name]}
    if not changed:
        return None
    note = "; ".join(
        f"training.{name} was {_word(was)} and is {_word(now[name])}" for name, was in changed.items()
    )
    if reason_to_stop(training, progress, epochs) is not None:
        return f"{note}: the run ends here, at step {progress.step:,}"
    old, new = (
        learning_rate(each, d_model, progress.step + 1, share_done(each, progress, epochs))
        for each in (replace(training, **changed), training)
    )
    if old == new:
        return note
    return (
        f"{note}: the schedule {training.schedule} follows the new limit, and the learning rate of the next "
        f"step is {new:.2e} instead of {old:.2e}"
    )


def _word(limit: float | None) -> str:
    return "none" if limit is None else f"{limit:,}"


def watch_loss(progress: Progress, loss: float, norm: float) -> str | None:
    """Take the loss of a step into account; returns what is wrong with it, if anything.

    A smoothed loss above 1.5 times its lowest value plus one nat does not recover. A single bad batch is
    ignored.
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
def stop_requests(stop: threading.Event | None = None) -> Iterator[Callable[[], bool]]:
    """Turn SIGINT, SIGTERM and an event into a function that says, between steps, whether one has come.

    A second signal raises KeyboardInterrupt. Only the main thread can handle signals; in other threads they
    are left alone, and the event stops a run.
    """
    received: list[int] = []
    is_set = (lambda: False) if stop is None else stop.is_set
    if threading.current_thread() is not threading.main_thread():
        yield is_set
        return
    signals = (signal.SIGINT, signal.SIGTERM)

    def note(number: int, _: object) -> None:
        if received:
            raise KeyboardInterrupt
        received.append(number)

    before = [signal.signal(each, note) for each in signals]
    try:
        yield lambda: bool(received) or is_set()
    finally:
        for each, handler in zip(signals, before, strict=True):
            signal.signal(each, handler)
