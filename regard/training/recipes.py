"""How models of each architecture learn, by the size of the corpus: what plans choose from.

The constants were measured (docs/experiments.md, section 29).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from regard.config.model import Architecture

STACKS: dict[Architecture, tuple[str, ...]] = {
    "encoder-decoder": ("encoder", "decoder"),
    "encoder": ("encoder",),
    "decoder": ("decoder",),
}
"""The stacks of each architecture."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A size of model, and how many tokens a corpus should have for it."""

    tokens: float
    width: int
    layers: int
    heads: int = 4

    def sizes(self, architecture: Architecture) -> dict[str, Any]:
        """The settings of this shape."""
        layers = {f"{stack}_layers": self.layers for stack in STACKS[architecture]}
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
        rate=1e-3,
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
