"""Sizes that nobody has set, chosen from the data and the machine: the model, its steps, and how it learns.

A run that names no preset is planned once its data is prepared. Some steps of a candidate are timed. The
plan takes the largest model that suits the amount of data and gets through it often enough in the time that
is usual for such a corpus. A setting that is written stays as it is, and the plan follows it.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from regard.config import RunConfig, TrainingConfig
from regard.training.distributed.world import World
from regard.training.loop import TrainingLoop
from regard.training.plan_table import SHAPE, Length, rounded, table
from regard.training.recipes import FURTHER, RECIPES, Recipe, Shape

if TYPE_CHECKING:
    from regard.tasks.task import Lesson
    from regard.training.starting import Start

TIMED_STEPS = 6
"""Most steps of a candidate that are timed …"""
TIMED_SECONDS = 10.0
"""… and the time after which no other is begun, unless only one is done."""
TIMED_TOKENS = 2048
"""Size of the batches that are timed on a CPU; larger ones take longer in proportion."""
CUT = 0.8
"""A run that gets less than this share of the wanted steps is said to be short of time."""
ENOUGH = 0.4
"""Least share of the wanted passes through the data; a model that gets fewer is too large."""
PATIENCE = 5
"""Validations in a row that may bring nothing before a run stops."""
DROPOUT = ((15, 0.3), (6, 0.2), (0, 0.1))
"""Dropout of a model that sees its data at least so often."""
POST_NORM = 0.1
"""A model that normalises after each sub-layer loses what it has learned at the rates of the others."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A configuration, and a table of what was chosen."""

    config: RunConfig
    text: str


def plan(
    config: RunConfig,
    lesson: Lesson,
    written: Collection[str],
    world: World,
    *,
    start: Start | None = None,
    threads: int | None = None,
) -> Plan:
    """Choose what is not written.

    Args:
        config: the configuration: what is written, and defaults for the rest.
        lesson: the prepared data.
        written: names of the settings that stay as they are.
        world: the processes that train together.
        start: the model to start from, whose shape stays.
        threads: CPU threads of each process.
    """
    recipe = (RECIPES if start is None else FURTHER)[config.model.architecture]
    tokens = n_tokens(lesson)
    limit = config.training.max_minutes
    minutes = recipe.usual_minutes(tokens) if limit is None else limit
    sized = start is not None or any(f"model.{name}" in written for name in SHAPE)
    shapes = [None] if sized else [shape for shape in recipe.shapes if shape.tokens <= tokens]
    chosen = None
    for shape in shapes:  # from the smallest: the largest take longest to time, and are rarely affordable
        candidate = _sized(config, written, recipe, shape, tokens)
        usual = recipe.passes(tokens) * steps_per_pass(candidate.training, tokens)
        wanted = _written_steps(candidate.training, written, tokens) or usual
        seconds = seconds_per_step(candidate, lesson, world, start=start, threads=threads)
        affordable = recipe.spent * 60 * minutes / seconds
        if chosen is not None and affordable < ENOUGH * min(usual, wanted):
            break
        chosen = shape, candidate, usual, wanted, seconds, affordable
    assert chosen is not None, "a recipe has a shape for the smallest corpus"
    shape, candidate, usual, wanted, seconds, affordable = chosen
    is_long = wanted != usual and limit is None  # who writes a number of steps has the time for them
    steps = wanted if is_long else min(wanted, affordable)
    planned = _timed(candidate, written, recipe, steps, wanted, tokens, further=start is not None)
    steps = min(steps, planned.training.max_steps)
    expected = min(steps * seconds / 60 / recipe.spent, math.inf if limit is None else limit)
    length = Length(
        steps,
        steps / steps_per_pass(planned.training, tokens),
        expected,
        is_cut=steps < CUT * min(wanted, usual),
        is_smaller=shape is not shapes[-1],
    )
    return Plan(planned, table(planned, lesson, written, length, tokens, start=start))


def _sized(
    config: RunConfig, written: Collection[str], recipe: Recipe, shape: Shape | None, tokens: int
) -> RunConfig:
    """The configuration with a shape, and with the batches of a corpus."""
    model = {**recipe.model, **(shape.sizes(config.model.architecture) if shape else {})}
    smallest, largest = recipe.batch
    batch = min(largest, max(smallest, 1 << round(math.log2(1024 * (tokens / 1e5) ** 0.5))))
    batch = max(batch, 2 * config.model.max_length)  # the longest sequence must fit, of a pretraining too
    return _changed(config, written, model=model, training={**recipe.training, "batch_tokens": batch})


def steps_per_pass(training: TrainingConfig, tokens: int) -> float:
    """Steps of a pass through the data; no batch has parts of two."""
    return max(1.0, tokens / training.batch_tokens)


def steps_of_passes(training: TrainingConfig, tokens: int) -> int:
    """A number of steps that does not end a run before its `max_epochs`."""
    return rounded(2 * (training.max_epochs or 0) * steps_per_pass(training, tokens) + 2)


def with_room(
    config: RunConfig, lesson: Lesson, written: Collection[str], state: Mapping[str, Any]
) -> RunConfig:
    """The configuration of a planned run that is resumed with another limit, which is to be what ends it.

    Args:
        config: what was chosen, and the limits that are written now.
        lesson: the prepared data.
        written: names of the settings that stay as they are.
        state: of the checkpoint from which the run goes on.
    """
    training, limits, progress = config.training, state.get("limits", {}), state.get("progress", {})
    if "training.max_steps" in written:
        return config
    steps = training.max_steps
    if training.max_epochs not in (None, limits.get("max_epochs")):
        steps = max(steps, steps_of_passes(training, n_tokens(lesson)))
    if training.max_minutes not in (None, limits.get("max_minutes")) and progress.get("seconds"):
        per_minute = 60 * state["step"] / progress["seconds"]
        # The machine may have been busy until now.
        steps = max(steps, rounded(3 * per_minute * training.max_minutes))
    return replace(config, training=replace(training, max_steps=steps))


def n_tokens(lesson: Lesson) -> int:
    """Tokens of a pass through the data."""
    return max(1, lesson.n_tokens(lesson.train, np.arange(len(lesson.train))))


def _written_steps(training: TrainingConfig, written: Collection[str], tokens: int) -> float | None:
    """The steps that are written as a limit, of passes or of steps; None if neither is."""
    epochs = training.max_epochs
    of_epochs = None if epochs is None else epochs * steps_per_pass(training, tokens)
    of_steps = training.max_steps if "training.max_steps" in written else None
    return min((max(1.0, limit) for limit in (of_epochs, of_steps) if limit is not None), default=None)


def _timed(
    config: RunConfig,
    written: Collection[str],
    recipe: Recipe,
    steps: float,
    wanted: float,
    tokens: int,
    *,
    further: bool,
) -> RunConfig:
    """The configuration with what follows from the number of steps."""
    passes = steps / steps_per_pass(config.training, tokens)
    rate = recipe.rate * 256 / config.model.d_model
    if further and config.model.norm_position == "post":
        rate *= POST_NORM
    every = rounded(steps / recipe.validations)
    most = rounded(steps if config.training.max_minutes is None else wanted)
    if config.training.max_epochs is not None:
        most = steps_of_passes(config.training, tokens)
    training = {
        "max_steps": most,
        "learning_rate": float(f"{rate:.1e}"),
        "warmup_steps": min(1000, max(1, rounded(steps / 10))),
        "validate_every": every,
        "checkpoint_every": every,
        "patience": PATIENCE,
    }
    if "training.learning_rate" in written and config.training.learning_rate is None:
        del training["warmup_steps"]  # the paper's rate follows from it, and would be high
    dropout = next(dropout for least, dropout in DROPOUT if passes >= least)
    model = {} if further else {"dropout": dropout}
    return _changed(config, written, model=model, training=training)


def _changed(config: RunConfig, written: Collection[str], **sections: Mapping[str, Any]) -> RunConfig:
    """The configuration with these settings, except for those that are written."""
    for section, values in sections.items():
        free = {name: value for name, value in values.items() if f"{section}.{name}" not in written}
        config = replace(config, **{section: replace(getattr(config, section), **free)})
    return config


def seconds_per_step(
    config: RunConfig, lesson: Lesson, world: World, *, start: Start | None = None, threads: int | None = None
) -> float:
    """Time of a training step with this configuration on this machine, by taking some."""
    # Compiling would take longer than it saves here, so that on GPUs the time is an upper bound.
    training = replace(config.training, compile=False, max_steps=10**9, max_minutes=None, max_epochs=None)
    if world.device.type == "cpu":  # where the time of a step grows with its tokens, and may be a minute
        longest = max(side.longest for side in lesson.train.facts.sides) + 1
        training = replace(training, batch_tokens=min(training.batch_tokens, max(TIMED_TOKENS, longest)))
    with tempfile.TemporaryDirectory(prefix="regard-timing-") as folder:
        timed = replace(config, training=training)
        loop = TrainingLoop(
            Path(folder), timed, lesson, world=World(world.device), start=start, threads=threads
        )
        seconds = loop.time_steps(TIMED_STEPS, TIMED_SECONDS)
    return seconds * config.training.batch_tokens / training.batch_tokens / world.size
