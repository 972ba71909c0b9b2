"""What goes into the graphs of a model and what comes out: names, types and shapes, as data.

What comes out under one name goes in under the same where it is the same: `memory.0.key`. Keys and values
that come out of a step as `present.0.key` go into the next as `past.0.key`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, assert_never

from regard.config import ModelConfig

Dimension = int | str
"""A number, or the name of what may be of any size."""


@dataclass(frozen=True, slots=True)
class Port:
    """One tensor that goes into a graph, or comes out."""

    name: str
    shape: tuple[Dimension, ...]
    dtype: Literal["int64", "float32"] = "float32"


Ports = tuple["Port | Ports", ...]
"""The arguments of a graph in their order; some of them are sequences."""


@dataclass(frozen=True, slots=True)
class Interface:
    """All that goes into a graph and comes out."""

    inputs: Ports
    outputs: Ports


def interfaces(config: ModelConfig) -> dict[str, Interface]:
    """The graphs that a model of this shape becomes, by name."""
    match config.architecture:
        case "encoder-decoder":
            return {"encoder": _encoder(config), "decoder": _decoder(config)}
        case "decoder":
            return {"decoder": _decoder(config)}
        case "encoder":
            logits = Port("logits", ("batch", config.n_labels))
            return {"classifier": Interface(_read("source"), (logits,))}
        case other:
            assert_never(other)


def flat(ports: Ports) -> Iterator[Port]:
    """The tensors one by one, as a runtime counts them."""
    for each in ports:
        if isinstance(each, Port):
            yield each
        else:
            yield from flat(each)


def _encoder(config: ModelConfig) -> Interface:
    memory = Port("memory", ("batch", "source", config.d_model))
    return Interface(_read("source"), (memory, _keys_values(config, "memory", "source")))


def _decoder(config: ModelConfig) -> Interface:
    ids, _ = _read("length")
    inputs: Ports = (
        ids,
        Port("attention_mask", ("batch", "past + length"), "int64"),
        _keys_values(config, "past", "past"),
    )
    if config.architecture == "encoder-decoder":
        mask = Port("memory_mask", ("batch", "source"), "int64")
        inputs = (*inputs, mask, _keys_values(config, "memory", "source"))
    logits = Port("logits", ("batch", "length", config.vocab_size))
    return Interface(inputs, (logits, _keys_values(config, "present", "past + length")))


def _read(length: str) -> tuple[Port, Port]:
    shape = ("batch", length)
    return Port("input_ids", shape, "int64"), Port("attention_mask", shape, "int64")


def _keys_values(config: ModelConfig, name: str, length: str) -> tuple[Port, ...]:
    widths = {"key": config.key_width, "value": config.value_width}
    return tuple(
        Port(f"{name}.{i}.{kind}", ("batch", config.n_heads, length, width))
        for i in range(config.decoder_layers)
        for kind, width in widths.items()
    )
