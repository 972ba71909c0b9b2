"""The blocks that one looks at: how they are called, and under which address a model keeps them."""

from __future__ import annotations

import re
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
    """The blocks that a model has in each layer, in the order in which they run."""
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
    """How many layers the block's stack has."""
    return config.encoder_layers if stack_of(block) == "encoder" else config.decoder_layers


def sublayers_of(config: ModelConfig, stack: str) -> tuple[BlockName, ...]:
    """The blocks of one layer of a stack, in the order in which they run."""
    return tuple(block for block in blocks_of(config) if stack_of(block) == stack)


def address_of(block: BlockName, layer: int) -> str:
    """Where the model keeps a block."""
    return f"{stack_of(block)}.layers.{layer}.{_MODULES[block]}"


@cache  # a search asks at every step, and a model has few addresses
def place_of(address: str) -> Place | None:
    """Undo `address_of`, for an activation; None for what belongs to no block."""
    if (match := _ADDRESS.fullmatch(address)) is None:
        return None
    stack, layer, module, name = match.groups()
    named = (block for block in BLOCKS if stack_of(block) == stack and _MODULES[block] == module)
    block = next(named, None)
    return None if block is None else Place(block, int(layer), name)
