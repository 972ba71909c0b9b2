"""Sizes that nobody has set, chosen from the data and the machine: the model, its steps, and how it learns.

A run that names no preset is planned once its data is prepared. Some steps of a candidate are timed. The
plan takes the largest model that suits the amount of data and gets through it often enough in the time that
is usual for such a corpus. A setting that is written stays as it is, and the plan follows it. The constants
were measured (docs/experiments.md, section 29).
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from regard import bundled
from regard.config import RunConfig, TrainingConfig
from regard.config.checking import counted
from regard.config.model import Architecture
from regard.training.display.standing import duration
from regard.training.distributed.world import World
from regard.training.loop import TrainingLoop

if TYPE_CHECKING:
    from regard.tasks.task import Lesson
    from regard.training.starting import Start

TIMED_STEPS = 6
"""Steps of a candidate that are timed."""
ENOUGH = 0.4
"""Least share of the wanted passes through the data; a model that gets fewer is too large."""
PATIENCE = 5
"""Validations in a row that may bring nothing before a run stops."""
DROPOUT = ((15, 0.3), (6, 0.2), (0, 0.1))
"""Dropout of a model that sees its data at least so often."""
POST_NORM = 0.1
"""A model that normalises after each sub-layer loses what it has learned at the rates of the others."""
LICENCE = "CC BY-SA 4.0"
"""The licence of the bundled translator, which holds for what is trained from it."""
SHAPE = ("d_model", "d_ff", "n_heads", "encoder_layers", "decoder_layers")
"""Settings of a model's size; if one of them is written, the size is not chosen."""
ROUND = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10)
"""Leading digits of chosen numbers: timing varies, and small differences must not give other runs."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A size of model, and how many tokens a corpus should have for it."""

    tokens: float
    width: int
    layers: int
    heads: int = 4

    def sizes(self, architecture: Architecture) -> dict[str, Any]:
        """The settings of this shape."""
        stacks = {"encoder-decoder": ("encoder", "decoder"), "encoder": ("encoder",), "decoder": ("decoder",)}
        layers = {f"{stack}_layers": self.layers for stack in stacks[architecture]}
        return {"d_model": self.width, "n_heads": self.heads, "d_ff": 4 * self.width, **layers}


@dataclass(frozen=True, slots=True)
class Recipe:
    """How the models of one architecture learn from scratch, as a function of the tokens of a pass."""

    rate: float
    """Highest learning rate of a model of width 256; wider ones take less."""
    wanted: float
    """Tokens from which a corpus of 100,000 tokens is learned: its passes, times 100,000 …"""
    growth: float
    """… and the power of the corpus's size by which they grow."""
    minutes: float
    """Time for 100,000 tokens on a CPU."""
    batch: tuple[int, int]
    """Smallest and largest batch, in tokens."""
    shapes: Sequence[Shape] = ()
    """From the smallest to the largest."""
    validations: int = 15
    """How many there are in a run."""
    spent: float = 0.85
    """Share of the time that goes to steps; the rest goes to validations and the test."""
    training: Mapping[str, Any] = field(default_factory=dict)
    model: Mapping[str, Any] = field(default_factory=dict)

    def passes(self, tokens: int) -> float:
        """How often a corpus should be seen."""
        return self.wanted / 1e5 * (tokens / 1e5) ** (self.growth - 1)

    def usual_minutes(self, tokens: int) -> float:
        """Time that a run may take, if nothing is said."""
        return min(120.0, max(2.0, self.minutes * (tokens / 1e5) ** 0.4))


RECIPES: dict[Architecture, Recipe] = {
    "encoder-decoder": Recipe(
        shapes=(
            Shape(0, 128, 2),
            Shape(15_000, 192, 3),
            Shape(60_000, 256, 3),
            Shape(4_000_000, 384, 6, 6),
            Shape(12_000_000, 512, 6, 8),
        ),
        rate=2e-3,
        wanted=3e6,
        growth=0.75,
        minutes=11,
        batch=(1024, 25_000),
        training={"schedule": "cosine", "weight_decay": 0.05, "clip_norm": 1.0},
        model={"positions": "rotary"},
    ),
    "decoder": Recipe(
        shapes=(
            Shape(0, 128, 3),
            Shape(100_000, 256, 4),
            Shape(1_000_000, 384, 6, 6),
            Shape(20_000_000, 512, 8, 8),
        ),
        rate=2e-3,
        wanted=3e6,
        growth=0.75,
        minutes=8,
        batch=(1024, 16_384),
    ),
    "encoder": Recipe(
        shapes=(Shape(0, 128, 2), Shape(50_000, 256, 2), Shape(500_000, 256, 4)),
        rate=1e-3,
        wanted=1e6,
        growth=0.6,
        minutes=2.5,
        batch=(1024, 8192),
        model={"positions": "rotary"},
    ),
}
FURTHER: dict[Architecture, Recipe] = {
    "encoder-decoder": Recipe(
        rate=6e-4,
        wanted=2.5e5,
        growth=0.6,
        minutes=8,
        batch=(1024, 8192),
        validations=8,
        spent=0.4,
        training={"schedule": "cosine", "clip_norm": 1.0, "selection": "best", "average_checkpoints": 1},
    ),
    "decoder": Recipe(
        rate=6e-4,
        wanted=3e5,
        growth=0.6,
        minutes=6,
        batch=(1024, 8192),
        training={"clip_norm": 1.0, "average_checkpoints": 1},
    ),
    "encoder": Recipe(
        rate=9e-4,
        wanted=3e5,
        growth=0.6,
        minutes=3,
        batch=(1024, 4096),
        validations=8,
        spent=0.7,
        training={"clip_norm": 1.0, "average_checkpoints": 1},
        model={"dropout": 0.1},
    ),
}
"""The same, for models that start from another one: its shape stays, and few passes are enough."""


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
    tokens = max(1, lesson.n_tokens(lesson.train, np.arange(len(lesson.train))))
    limit = config.training.max_minutes
    minutes = recipe.usual_minutes(tokens) if limit is None else limit
    sized = start is not None or any(f"model.{name}" in written for name in SHAPE)
    shapes = [None] if sized else [shape for shape in recipe.shapes if shape.tokens <= tokens]
    for shape in reversed(shapes):
        candidate = _sized(config, written, recipe, shape, tokens)
        wanted = _wanted_steps(candidate.training, written, recipe, tokens)
        seconds = seconds_per_step(candidate, lesson, world, start=start, threads=threads)
        affordable = recipe.spent * 60 * minutes / seconds
        if affordable >= ENOUGH * wanted:
            break
    smaller = shape is not shapes[-1]
    steps = min(wanted, affordable)
    planned = _timed(candidate, written, recipe, steps, wanted, tokens, further=start is not None)
    steps = min(steps, planned.training.max_steps)
    expected = min(steps * seconds / 60 / recipe.spent, math.inf if limit is None else limit)
    return Plan(
        planned, _table(planned, lesson, written, steps, expected, tokens, smaller=smaller, start=start)
    )


def _sized(
    config: RunConfig, written: Collection[str], recipe: Recipe, shape: Shape | None, tokens: int
) -> RunConfig:
    """The configuration with a shape, and with the batches of a corpus."""
    model = {**recipe.model, **(shape.sizes(config.model.architecture) if shape else {})}
    smallest, largest = recipe.batch
    batch = min(largest, max(smallest, 1 << round(math.log2(1024 * (tokens / 1e5) ** 0.5))))
    batch = max(batch, 2 * config.model.max_length)  # the longest sequence must fit
    return _changed(config, written, model=model, training={**recipe.training, "batch_tokens": batch})


def _wanted_steps(training: TrainingConfig, written: Collection[str], recipe: Recipe, tokens: int) -> float:
    """Steps in which the data is seen as often as it should be, or as it is written."""
    passes = recipe.passes(tokens) if training.max_epochs is None else training.max_epochs
    wanted = max(1.0, passes * tokens / training.batch_tokens)
    return min(wanted, training.max_steps) if "training.max_steps" in written else wanted


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
    limited = {"training.max_minutes", "training.max_epochs"} & {*written}
    passes = steps * config.training.batch_tokens / tokens
    rate = recipe.rate * 256 / config.model.d_model
    if further and config.model.norm_position == "post":
        rate *= POST_NORM
    every = rounded(steps / recipe.validations)
    training = {
        "max_steps": rounded(wanted if limited else steps),
        "learning_rate": float(f"{rate:.1e}"),
        "warmup_steps": min(1000, max(1, rounded(steps / 10))),
        "validate_every": every,
        "checkpoint_every": every,
        "patience": PATIENCE,
    }
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
    with tempfile.TemporaryDirectory(prefix="regard-timing-") as folder:
        timed = replace(config, training=training)
        loop = TrainingLoop(
            Path(folder), timed, lesson, world=World(world.device), start=start, threads=threads
        )
        return loop.time_steps(TIMED_STEPS) / world.size


def rounded(number: float) -> int:
    """A number rounded down to a few leading digits; at least 1."""
    size = 10 ** math.floor(math.log10(max(1.0, number)))
    return int(size * max(digit for digit in ROUND if digit * size <= max(1.0, number)) + 1e-6)


def _table(
    config: RunConfig,
    lesson: Lesson,
    written: Collection[str],
    steps: float,
    minutes: float,
    tokens: int,
    *,
    smaller: bool,
    start: Start | None,
) -> str:
    """What was chosen and why, how long it takes, and what to type for less or more."""
    model, training = lesson.shaped(config.model), config.training
    layers = " + ".join(str(n) for n in (model.encoder_layers, model.decoder_layers) if n)
    passes = steps * training.batch_tokens / tokens
    data = f"{counted(len(lesson.train), 'example')}, {tokens:,} tokens"
    fewer = "the larger ones would see it too rarely in that time" if smaller else f"for {data}"
    rows = [
        ("model", f"{model.d_model} wide, {layers} layers, {model.n_heads} heads", fewer),
        ("vocabulary", f"{model.vocab_size:,} subwords", "for the amount of text"),
        ("dropout", f"{model.dropout:g}", f"the data is seen {counted(round(passes, 1), 'time')}"),
        ("batch", f"{training.batch_tokens:,} tokens", "small corpora need many steps"),
        ("steps", f"{training.max_steps:,}", f"{60 * minutes / steps:.2g} s each, with validations"),
        ("learning rate", f"up to {training.learning_rate:g}", f"{training.schedule}, for this width"),
        (
            "validation",
            f"every {training.validate_every:,} steps",
            f"ends after {training.patience} without a better model" if training.patience else "",
        ),
    ]
    if start is not None:
        name = next((name for name in bundled.names() if bundled.folder(name) == start.bundle.folder), None)
        which = start.bundle.folder if name is None else f"the bundled {name}, {LICENCE}"
        rows[:2] = [("model", f"from {which}", "its weights are trained further")]
        rows = [row for row in rows if row[0] != "dropout"]
    width, wide = (max(len(row[i]) for row in rows) for i in (0, 1))
    lines = [f"  {name:{width}}  {value:{wide}}  {why}".rstrip() for name, value, why in rows]
    return "\n".join(
        [
            f"chosen for {data} and this machine (set: {', '.join(sorted(written)) or 'nothing'}):",
            *lines,
            f"  This takes about {duration(60 * minutes)}. To spend less or more: the same command with "
            f"--max-minutes {minutes / 3:.2g}, or with --max-minutes {3 * minutes:.2g}",
        ]
    )
