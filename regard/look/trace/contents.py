"""What a trace holds, by name: what is recorded in one pass, and what is added to it."""

from __future__ import annotations

from collections.abc import Iterator

from regard.config import ModelConfig
from regard.look.trace.blocks import KINDS, address_of, kinds_of, layers_of, stack_of, sublayers_of

INFLUENCE = "influence"
"""Of each token read on the first that was written, or on the label; where somebody worked that out."""
SAID = ("ids", "logits", "normaliser", "log_probs")
"""What every layer would say: candidates, their logits, the log of the softmax's sum; and what was wanted."""


def recorded_of(config: ModelConfig) -> set[str]:
    """The activations that are kept, by address; scores, weights and heads follow from them."""
    return set(_recorded(config))


def contents_of(config: ModelConfig) -> set[str]:
    """All the arrays of a trace of such a model."""
    found = recorded_of(config) | {f"said.{name}" for name in SAID}
    for stack in _stacks(config):
        if config.positions in ("sinusoidal", "learned"):
            found.add(f"{side_of(stack)}_embedding.positions")
    return found | set(similarity_weights_of(config))


def similarity_weights_of(config: ModelConfig) -> list[str]:
    """The weights without which scores do not follow from queries and keys: of the additive similarity."""
    if config.similarity != "additive":
        return []
    blocks = [address_of(kind, i) for kind in kinds_of(config) for i in range(layers_of(config, kind))]
    return [f"{block}.similarity.weight" for block in blocks]


def side_of(stack: str) -> str:
    """The name of what a stack reads."""
    return "input" if stack == "encoder" else "output"


def _stacks(config: ModelConfig) -> list[str]:
    return sorted({stack_of(kind) for kind in kinds_of(config)})


def _recorded(config: ModelConfig) -> Iterator[str]:
    around = ("output", "normed") if config.norm_position == "pre" else ("output",)
    for stack in _stacks(config):
        yield from (f"{side_of(stack)}_embedding.{name}" for name in ("embedded", "with_positions"))
        yield f"{stack}.output"
        for i, block in enumerate(sublayers_of(config, stack)):
            within = ("q", "k", "v", "output") if block in KINDS else ("output",)
            for layer in range(layers_of(config, block)):
                yield from (f"{address_of(block, layer)}.{name}" for name in within)
                yield from (f"{stack}.layers.{layer}.add_and_norm.{i}.{name}" for name in around)
