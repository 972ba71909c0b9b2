"""The blocks of a model: their names, their addresses in the model, and the arrays that a trace stores."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from functools import cache
from typing import Literal, NamedTuple, get_args

from regard.config import ModelConfig

Kind = Literal["encoder", "decoder", "cross"]
"""Attention of the encoder on itself, of the decoder on itself, of the decoder on the memory (3.2.3)."""
BlockName = Literal["encoder", "decoder", "cross", "encoder-feed-forward", "decoder-feed-forward"]

KINDS: tuple[Kind, ...] = get_args(Kind)
BLOCKS: tuple[BlockName, ...] = get_args(BlockName)

_MODULES: dict[BlockName, str] = {
    "encoder": "multi_head_attention",
    "decoder": "masked_multi_head_attention",
    "cross": "multi_head_attention",
    "encoder-feed-forward": "feed_forward",
    "decoder-feed-forward": "feed_forward",
}
_ADDRESS = re.compile(r"(encoder|decoder)\.layers\.(\d+)\.(\w+)\.(\w+)")


class Place(NamedTuple):
    """One activation of one block."""

    block: BlockName
    layer: int
    name: str


def blocks_of(config: ModelConfig) -> tuple[BlockName, ...]:
    """The blocks of each layer of a model, in the order in which they run."""
    match config.architecture:
        case "encoder-decoder":
            return ("encoder", "encoder-feed-forward", "decoder", "cross", "decoder-feed-forward")
        case "decoder":
            return ("decoder", "decoder-feed-forward")
        case "encoder":
            return ("encoder", "encoder-feed-forward")


def kinds_of(config: ModelConfig) -> tuple[Kind, ...]:
    """The kinds of attention that a model has."""
    present = blocks_of(config)
    return tuple(kind for kind in KINDS if kind in present)


def stack_of(block: BlockName) -> Literal["encoder", "decoder"]:
    """The stack that a block belongs to."""
    return "encoder" if block.startswith("encoder") else "decoder"


def layers_of(config: ModelConfig, block: BlockName) -> int:
    """The number of layers of a block's stack."""
    return config.encoder_layers if stack_of(block) == "encoder" else config.decoder_layers


def sublayers_of(config: ModelConfig, stack: str) -> tuple[BlockName, ...]:
    """The blocks of one layer of a stack, in the order in which they run."""
    return tuple(block for block in blocks_of(config) if stack_of(block) == stack)


def address_of(block: BlockName, layer: int) -> str:
    """The address of a block in its model."""
    return f"{stack_of(block)}.layers.{layer}.{_MODULES[block]}"


@cache  # called at every step of a search, with few different addresses
def place_of(address: str) -> Place | None:
    """Undo `address_of`, for an activation; None if it belongs to no block."""
    if (match := _ADDRESS.fullmatch(address)) is None:
        return None
    stack, layer, module, name = match.groups()
    named = (block for block in BLOCKS if stack_of(block) == stack and _MODULES[block] == module)
    block = next(named, None)
    return None if block is None else Place(block, int(layer), name)


INFLUENCE = "influence"
"""Array of the influence of each token read on the first prediction, or on the label; optional."""
SAID = ("ids", "logits", "normaliser", "log_probs")
"""Arrays of predictions by layer: candidates, their logits, log of the softmax's sum; of the targets."""


def recorded_of(config: ModelConfig) -> set[str]:
    """Addresses of the activations that are always stored; others follow from them, or are added."""
    return set(_recorded(config))


def contents_of(config: ModelConfig, stored: Container[str] = ()) -> set[str]:
    """Names of the arrays that a trace of such a model needs, beside those that it has `stored`."""
    found = recorded_of(config) | {f"said.{name}" for name in SAID}
    for side in (side_of(stack) for stack in _stacks(config)):
        if config.positions in ("sinusoidal", "learned"):
            found.add(f"{side}_embedding.positions")
        if config.positions in ("alibi", "t5-relative"):
            found.add(f"{side}_positions.score_bias")
    for kind in kinds_of(config):
        for block in (address_of(kind, i) for i in range(layers_of(config, kind))):
            if has_own_scores(config):
                found.add(f"{block}.scores")
            elif f"{block}.scores" not in stored:
                found |= set(similarity_weights_of(config, block))
    return found


def optional_of(config: ModelConfig) -> set[str]:
    """What positions may add: to embeddings, and to the scores of self-attention, (heads, queries, keys)."""
    sides = [side_of(stack) for stack in _stacks(config)]
    return {f"{side}_positions.{name}" for side in sides for name in ("added", "score_bias")}


def has_own_scores(config: ModelConfig) -> bool:
    """Whether a user registered the similarity: its scores cannot be computed here, and are stored."""
    return config.similarity not in ("scaled-dot", "dot", "cosine", "bilinear", "additive")


def similarity_weights_of(config: ModelConfig, block: str) -> list[str]:
    """Weights that the scores of a block need: those of the additive similarity."""
    return [f"{block}.similarity.weight"] if config.similarity == "additive" else []


def side_of(stack: str) -> str:
    """The side that a stack reads: input or output."""
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
