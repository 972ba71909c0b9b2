"""The model as graphs of padded tensors, which is how ONNX runtimes are fed.

Each graph is a module over the model's own boxes and weights; only what surrounds them is written here. A
mask says where a row has tokens, and a token's position is the number of tokens before it: so it does not
matter on which side rows of unlike length have their gaps, nor where in the middle a decoder's have.

Letters: `B` rows, `S` tokens of the inputs, `L` new tokens, `P` tokens before them, `M` = P + L.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from regard.model.classifier import Classifier
from regard.model.fast.cache import KeysValues, Recall
from regard.model.fast.cached_decoder import decode_new, memory_keys_values
from regard.model.language_model import LanguageModel
from regard.model.transformer import Transformer
from regard.packing import Boundaries, Packed


class EncoderGraph(nn.Module):
    """Inputs to the memory, and to its keys and values in every layer of the decoder."""

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids_BS: Tensor, mask_BS: Tensor) -> tuple[Tensor, ...]:
        """Memory (B, S, D); then of each layer keys (B, H, S, K) and values (B, H, S, U)."""
        memory_BSD = _encoded(self.model, ids_BS, mask_BS)
        return memory_BSD, *_flat(memory_keys_values(self.model.decoder, memory_BSD))


class ClassifierGraph(nn.Module):
    """Inputs, each of which begins with [CLS], to the logits of labels."""

    def __init__(self, model: Classifier) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids_BS: Tensor, mask_BS: Tensor) -> Tensor:
        """(B, labels)."""
        first_BD = _encoded(self.model, ids_BS, mask_BS)[:, 0]
        logits: Tensor = self.model.output_probabilities(self.model.label_head(first_BD))
        return logits


class DecoderGraph(nn.Module):
    """New tokens, and keys and values of those before them, to logits and to the keys and values of all."""

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
        """Logits (B, L, V); then of each layer keys (B, H, M, K) and values (B, H, M, U)."""
        model = self.model
        # The exporter sees three sizes, and must be told what they have to do with each other.
        torch._check(mask_BM.shape[1] == past[0].shape[2] + ids_BL.shape[1])
        recall = _Rows.of(ids_BL, mask_BM, memory_mask_BS)
        own = [_Growing(each) for each in _pairs(past)]
        x_ND = model.embed_outputs(Packed(ids_BL.flatten(), recall.new))
        states_ND = decode_new(model.decoder, x_ND, own, _pairs(memory), recall)
        logits_BLV = model.output_probabilities(states_ND).reshape(*ids_BL.shape, -1)
        return logits_BLV, *_flat([each.stored for each in own])


@dataclass(frozen=True, eq=False, kw_only=True)
class _Rows(Recall):
    """Looking back from as many new tokens in every row, laid row behind row."""

    shape: tuple[int, int]
    """(B, L)."""

    @staticmethod
    def of(ids_BL: Tensor, mask_BM: Tensor, memory_mask_BS: Tensor | None) -> _Rows:
        (B, L), M = ids_BL.shape, mask_BM.shape[1]
        place_M = torch.arange(M, device=ids_BL.device)
        # A slice from M - L on would have a length that the exporter cannot tell to be L.
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
    """Keys and values of one block, to which new ones are joined: a graph can change nothing."""

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
    """States of all the tokens of the inputs, (B, S, D)."""
    inputs = Packed(ids_BS.flatten(), _boundaries(_positions(mask_BS)))
    x_ND = model.embed_inputs(inputs)
    states_BSD: Tensor = model.encoder(x_ND.reshape(*ids_BS.shape, -1), mask_BS.bool()[:, None, None])
    return states_BSD


def _positions(mask_BM: Tensor) -> Tensor:
    """How many tokens stand before each one; 0 in a gap that opens a row."""
    return (mask_BM.cumsum(1) - 1).clamp(min=0)


def _boundaries(positions_BL: Tensor) -> Boundaries:
    row_B1 = torch.arange(positions_BL.shape[0], device=positions_BL.device)[:, None]
    return Boundaries(row_B1.expand_as(positions_BL).flatten(), positions_BL.flatten(), None, None)


def _pairs(flat: Sequence[Tensor]) -> list[KeysValues]:
    return [KeysValues(k, v) for k, v in zip(flat[::2], flat[1::2], strict=True)]


def _flat(pairs: Sequence[KeysValues]) -> list[Tensor]:
    return [tensor for each in pairs for tensor in (each.k_BHMK, each.v_BHMU)]
