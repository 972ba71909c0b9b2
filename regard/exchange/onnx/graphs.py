"""A model as graphs of padded tensors, the form that ONNX runtimes read, with their inputs and outputs.

A graph is a module around the model's own boxes and weights. A mask marks the tokens of a row, and a token's
position is the number of tokens before it, so padding may be on either side of a row, or inside it.

An output that is an input elsewhere has the same name there: `memory.0.key`. Keys and values that a step
returns as `present.0.key` are inputs of the next step as `past.0.key`.

Letters: `B` rows, `S` tokens of the inputs, `L` new tokens, `P` tokens before them, `M` = P + L.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, assert_never

import torch
from torch import Tensor, nn

from regard.config import ModelConfig
from regard.model.classifier import Classifier
from regard.model.fast.cache import KeysValues, Recall
from regard.model.fast.cached_decoder import decode_new, memory_keys_values
from regard.model.language_model import LanguageModel
from regard.model.transformer import Transformer
from regard.packing import Boundaries, Packed

Dimension = int | str
"""A size, or the name of a variable size."""


@dataclass(frozen=True, slots=True)
class Port:
    """A tensor that is an input or output of a graph."""

    name: str
    shape: tuple[Dimension, ...]
    dtype: Literal["int64", "float32"] = "float32"


Ports = tuple["Port | Ports", ...]
"""The arguments of a graph in order; some are sequences of tensors."""


@dataclass(frozen=True, slots=True)
class Interface:
    """The inputs and outputs of a graph."""

    inputs: Ports
    outputs: Ports


def interfaces(config: ModelConfig) -> dict[str, Interface]:
    """The graphs of a model of this shape, by name."""
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
    """All tensors in one sequence, as a runtime numbers them."""
    for port in ports:
        if isinstance(port, Port):
            yield port
        else:
            yield from flat(port)


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


class EncoderGraph(nn.Module):
    """Maps inputs to the memory, and to its keys and values for every layer of the decoder."""

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids_BS: Tensor, mask_BS: Tensor) -> tuple[Tensor, ...]:
        """Memory (B, S, D); then for every layer keys (B, H, S, K) and values (B, H, S, U)."""
        memory_BSD = _encoded(self.model, ids_BS, mask_BS)
        return memory_BSD, *_flat(memory_keys_values(self.model.decoder, memory_BSD))


class ClassifierGraph(nn.Module):
    """Maps inputs, which begin with [CLS], to the logits of labels."""

    def __init__(self, model: Classifier) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids_BS: Tensor, mask_BS: Tensor) -> Tensor:
        """(B, labels)."""
        first_BD = _encoded(self.model, ids_BS, mask_BS)[:, 0]
        logits: Tensor = self.model.output_probabilities(self.model.label_head(first_BD))
        return logits


class DecoderGraph(nn.Module):
    """Maps new tokens, and keys and values of those before them, to logits and keys and values of all."""

    def __init__(self, model: Transformer | LanguageModel) -> None:
        super().__init__()
        self.model = model

    def forward(
        self,
        ids_BL: Tensor,
        mask_BM: Tensor,
        past: Sequence[Tensor],
        memory_mask_BS: Tensor | None = None,
        memory: Sequence[Tensor] = (),
    ) -> tuple[Tensor, ...]:
        """Logits (B, L, V); then for every layer keys (B, H, M, K) and values (B, H, M, U)."""
        model = self.model
        # The exporter sees three independent sizes; this relates them.
        torch._check(mask_BM.shape[1] == past[0].shape[2] + ids_BL.shape[1])
        recall = _Rows.of(ids_BL, mask_BM, memory_mask_BS)
        own = [_Growing(pair) for pair in _pairs(past)]
        x_ND = model.embed_outputs(Packed(ids_BL.flatten(), recall.new))
        states_ND = decode_new(model.decoder, x_ND, own, _pairs(memory), recall)
        logits_BLV = model.output_probabilities(states_ND).reshape(*ids_BL.shape, -1)
        return logits_BLV, *_flat([block.stored for block in own])


@dataclass(frozen=True, eq=False, kw_only=True)
class _Rows(Recall):
    """The attention of new tokens, equally many in every row, to all tokens so far."""

    shape: tuple[int, int]
    """(B, L)."""

    @staticmethod
    def of(ids_BL: Tensor, mask_BM: Tensor, memory_mask_BS: Tensor | None) -> _Rows:
        (B, L), M = ids_BL.shape, mask_BM.shape[1]
        place_M = torch.arange(M, device=ids_BL.device)
        # The exporter cannot infer that a slice from M - L on has length L.
        place_L = torch.arange(L, device=ids_BL.device) + (M - L)
        return _Rows(
            new=_boundaries(_positions(mask_BM).index_select(1, place_L)),
            reach=M,
            own_may_attend=mask_BM.bool()[:, None, None] & (place_M <= place_L[:, None]),
            memory_may_attend=None if memory_mask_BS is None else memory_mask_BS.bool()[:, None, None],
            in_step=False,
            shape=(B, L),
        )

    def pad(self, q_NHK: Tensor) -> Tensor:
        return q_NHK.reshape(*self.shape, *q_NHK.shape[1:])

    def unpad(self, heads_RLHU: Tensor) -> Tensor:
        return heads_RLHU.flatten(0, 1)


class _Growing:
    """Keys and values of one block; new ones are concatenated, as a graph cannot modify a tensor."""

    def __init__(self, past: KeysValues) -> None:
        self.stored = past

    def write(self, recall: Recall, k_NHK: Tensor, v_NHU: Tensor) -> None:
        old, k_BLHK, v_BLHU = self.stored, recall.pad(k_NHK), recall.pad(v_NHU)
        k_BHMK = torch.cat([old.k_BHMK, k_BLHK.transpose(1, 2)], dim=2)
        v_BHMU = torch.cat([old.v_BHMU, v_BLHU.transpose(1, 2)], dim=2)
        self.stored = KeysValues(k_BHMK, v_BHMU)

    def up_to(self, _reach: int) -> KeysValues:
        return self.stored


def _encoded(model: Transformer | Classifier, ids_BS: Tensor, mask_BS: Tensor) -> Tensor:
    """The encoder's states of all input tokens, (B, S, D)."""
    inputs = Packed(ids_BS.flatten(), _boundaries(_positions(mask_BS)))
    x_ND = model.embed_inputs(inputs)
    states_BSD: Tensor = model.encoder(x_ND.reshape(*ids_BS.shape, -1), mask_BS.bool()[:, None, None])
    return states_BSD


def _positions(mask_BM: Tensor) -> Tensor:
    """The number of tokens before each one; 0 in padding that opens a row."""
    return (mask_BM.cumsum(1) - 1).clamp(min=0)


def _boundaries(positions_BL: Tensor) -> Boundaries:
    row_B1 = torch.arange(positions_BL.shape[0], device=positions_BL.device)[:, None]
    return Boundaries(row_B1.expand_as(positions_BL).flatten(), positions_BL.flatten(), None, None)


def _pairs(flat: Sequence[Tensor]) -> list[KeysValues]:
    return [KeysValues(k, v) for k, v in zip(flat[::2], flat[1::2], strict=True)]


def _flat(pairs: Sequence[KeysValues]) -> list[Tensor]:
    return [tensor for pair in pairs for tensor in (pair.k_BHMK, pair.v_BHMU)]
