"""The table of what was chosen for a run, why, how long it takes, and what to type for another length."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING

from regard import bundled
from regard.config import ModelConfig, RunConfig, TrainingConfig
from regard.config.checking import counted
from regard.training.display.standing import duration
from regard.training.recipes import STACKS

if TYPE_CHECKING:
    from regard.tasks.task import Lesson
    from regard.training.starting import Start

LICENCE = "CC BY-SA 4.0"
"""The licence of the bundled translator, which holds for what is trained from it."""
SHAPE = ("d_model", "d_ff", "n_heads", "encoder_layers", "decoder_layers")
"""Settings of a model's size; if one of them is written, the size is not chosen."""
VALUE_WIDTH = 32
"""Widest column of values, so that most reasons end before column 80."""
ROUND = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10)
"""Leading digits of chosen numbers: timing varies, and small differences must not give other runs."""


@dataclass(frozen=True, slots=True)
class Length:
    """How long a planned run is expected to be."""

    steps: float
    passes: float
    minutes: float
    is_cut: bool
    """Whether the data deserves more steps than there is time for."""
    is_smaller: bool
    """Whether a larger model would not get through the data in the time."""


def rounded(number: float) -> int:
    """A number rounded down to a few leading digits; at least 1."""
    size = 10 ** math.floor(math.log10(max(1.0, number)))
    return int(size * max(digit for digit in ROUND if digit * size <= max(1.0, number)) + 1e-6)


def table(
    config: RunConfig,
    lesson: Lesson,
    written: Collection[str],
    length: Length,
    tokens: int,
    *,
    start: Start | None = None,
) -> str:
    """What was chosen and why, how long it takes, and what to type for less or more."""
    rows = [
        *_about_model(lesson.shaped(config.model), length, start),
        *_about_training(config.training, length),
    ]
    rows = [row for row in rows if row[2] or {*row[3]} & {*written}]
    width, wide = (max(len(row[i]) for row in rows) for i in (0, 1))
    lines = []
    for name, value, why, settings in rows:
        reason = "as set" if {*settings} & {*written} else why
        lines.append(f"  {name:{width}}  {value:{min(wide, VALUE_WIDTH)}}  {reason}".rstrip())
    data = f"{counted(len(lesson.train), 'example')}, {tokens:,} tokens"
    own = ", ".join(sorted(written)) or "nothing"
    ending = [f"This takes about {duration(60 * length.minutes)}.", *_other_lengths(config, written, length)]
    heading = wrap(f"chosen for {data} and this machine (set: {own}):", 80, subsequent_indent="  ")
    last = wrap(" ".join(ending), 80, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)
    return "\n".join([*heading, *lines, *last])


Row = tuple[str, str, str, tuple[str, ...]]
"""A name, a value, the reason, and the settings that the value shows."""


def _about_model(model: ModelConfig, length: Length, start: Start | None) -> Iterator[Row]:
    if start is None:
        layers = " + ".join(str(getattr(model, f"{stack}_layers")) for stack in STACKS[model.architecture])
        why = "a larger one is too slow here" if length.is_smaller else "for the amount of data"
        shape = tuple(f"model.{name}" for name in SHAPE)
        yield "model", f"{model.d_model} wide, {layers} layers, {model.n_heads} heads", why, shape
        yield "vocabulary", f"{model.vocab_size:,} subwords", "for the amount of text", ("model.vocab_size",)
    else:
        name = next((name for name in bundled.names() if bundled.folder(name) == start.bundle.folder), None)
        which = str(start.bundle.folder) if name is None else f"the bundled {name}, {LICENCE}"
        yield "model", which, "trained further", ()
    yield "dropout", f"{model.dropout:g}", "" if start else "for so many passes", ("model.dropout",)


def _about_training(training: TrainingConfig, length: Length) -> Iterator[Row]:
    steps, batch = training.max_steps, f"{training.batch_tokens:,} tokens"
    yield "batch", batch, "for the amount of data", ("training.batch_tokens",)
    count = f"about {float(f'{length.steps:.2g}'):,.0f}" if length.steps < steps else f"{steps:,}"
    yield "steps", count, counted(round(length.passes, 1), "pass", "passes") + " through the data", ()
    rate = "the paper's" if training.learning_rate is None else f"at most {training.learning_rate:g}"
    yield "learning rate", rate, f"{training.schedule} schedule", ("training.learning_rate",)
    patience = f"stops after {training.patience:,} without progress"
    every = f"every {counted(training.validate_every, 'step')}"
    yield "validation", every, patience if training.patience else "until the end", ()


def _other_lengths(config: RunConfig, written: Collection[str], length: Length) -> Iterator[str]:
    """What to type for a shorter and for a longer run."""
    training, minutes = config.training, length.minutes
    time = duration(180 * minutes)
    if minutes >= 1:
        yield f"Shorter: the same command with --max-minutes {_few_digits(minutes / 3)}."
    if "training.max_steps" in written:
        yield f"Longer: with --max-steps {rounded(3 * training.max_steps)}, about {time}."
    elif length.is_cut:
        yield f"Longer, and better: with --max-minutes {_few_digits(3 * minutes)}."
    else:
        epochs = rounded(3 * length.passes)
        yield f"Longer, which seldom helps: with --max-epochs {epochs}, about {time}."


def _few_digits(minutes: float) -> str:
    return f"{minutes:.1g}" if minutes < 2 else str(rounded(minutes))
