"""The decoder on new tokens only, which attend to the keys and values of earlier ones in a cache.

It computes what `Decoder.forward` does; a test holds the two equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from regard.model.decoder import Decoder
from regard.model.fast.cache import KeysValues, KeyValueStore, Recall
from regard.model.linear import side_by_side
from regard.model.masks import StoredKeys
from regard.model.multi_head_attention import MultiHeadAttention
from regard.model.taps import is_recording, tap
from regard.packing import PaddedView


def decode_new(
    decoder: Decoder, x_ND: Tensor, own: Sequence[KeyValueStore], memory: Sequence[KeysValues], recall: Recall
) -> Tensor:
    """States of new tokens, from the stored keys and values of earlier tokens and of the memory."""
    for i, layer in enumerate(decoder.layers):
        of_memory = MemoryKeys(memory[i], recall) if memory else None
        x_ND = layer(x_ND, None, OwnKeys(own[i], recall), of_memory)
    return tap(decoder, "output", decoder.norm(x_ND))


def memory_keys_values(
    decoder: Decoder, memory_BSD: Tensor, view: PaddedView | None = None
) -> tuple[KeysValues, ...]:
    """Keys and values of a padded memory, for every layer; computed once for all steps of decoding.

    With the view that padded the memory they can be recorded, as packed tensors.
    """
    blocks = [layer.multi_head_attention for layer in decoder.layers]
    return tuple(_keys_values(block, memory_BSD, view) for block in blocks if block is not None)


def empty_keys_values(decoder: Decoder, n_rows: int, room: int, like: Tensor) -> tuple[KeysValues, ...]:
    """Zeros for `room` tokens in each of `n_rows` rows, for every layer."""
    caches = []
    for layer in decoder.layers:
        attention = layer.masked_multi_head_attention
        shape = (n_rows, attention.n_heads, room)
        keys, values = like.new_zeros(*shape, attention.d_k), like.new_zeros(*shape, attention.d_v)
        caches.append(KeysValues(keys, values))
    return tuple(caches)


def _keys_values(block: MultiHeadAttention, memory_BSD: Tensor, view: PaddedView | None) -> KeysValues:
    k, v = side_by_side([block.w_k, block.w_v], memory_BSD)
    k_BSHK, v_BSHU = block.heads_of(k, block.d_k), block.heads_of(v, block.d_v)
    _, k_BSHK = block.similarity.prepare(k_BSHK, k_BSHK)
    if view is not None and is_recording(block):
        (k_BSHK,) = view.pad(tap(block, "k", view.unpad([k_BSHK])))
        (v_BSHU,) = view.pad(tap(block, "v", view.unpad([v_BSHU])))
    return KeysValues(k_BSHK.transpose(1, 2).contiguous(), v_BSHU.transpose(1, 2).contiguous())


@dataclass(frozen=True, eq=False)
class OwnKeys(StoredKeys):
    """Keys and values of earlier tokens: new ones attend to them and to themselves, and are stored."""

    past: KeyValueStore
    recall: Recall

    def attend(self, block: MultiHeadAttention, x_ND: Tensor) -> Tensor:  # type: ignore[override]
        """Masked self-attention."""
        recall = self.recall
        # For few tokens, concatenating the weights costs more than it saves.
        q, k = block.heads_of(block.w_q(x_ND), block.d_k), block.heads_of(block.w_k(x_ND), block.d_k)
        v = block.heads_of(block.w_v(x_ND), block.d_v)
        if block.turn is not None:
            q, k = block.turn(q, recall.new.positions_N), block.turn(k, recall.new.positions_N)
        q, k = block.similarity.prepare(q, k)
        q, k, v = tap(block, "q", q), tap(block, "k", k), tap(block, "v", v)
        self.past.write(recall, k, v)
        stored = self.past.up_to(recall.reach)
        return _joined(block, q, stored, recall, recall.own_may_attend, recall.own_score_bias)


@dataclass(frozen=True, eq=False)
class MemoryKeys(StoredKeys):
    """Keys and values of the memory, which new tokens attend to."""

    memory: KeysValues
    recall: Recall

    def attend(self, block: MultiHeadAttention, x_ND: Tensor) -> Tensor:  # type: ignore[override]
        """Attention to the encoder."""
        recall = self.recall
        q = block.heads_of(block.w_q(x_ND), block.d_k)
        q = tap(block, "q", block.similarity.prepare(q, q)[0])
        return _joined(block, q, self.memory, recall, recall.memory_may_attend, recall.memory_score_bias)


def _joined(
    block: MultiHeadAttention,
    q_NHK: Tensor,
    stored: KeysValues,
    recall: Recall,
    may_attend: Tensor | None,
    score_bias: Tensor | None,
) -> Tensor:
    """Attend, Concat, Linear."""
    q_RLHK = recall.pad(q_NHK)
    R, L, H, _ = q_RLHK.shape
    # Rows of one source attend to the same memory: they become more queries of it, and nothing is copied.
    lined_up = q_RLHK.reshape(stored.k_BHMK.shape[0], -1, H, block.d_k).transpose(1, 2)
    heads = block.attend_padded(lined_up, stored.k_BHMK, stored.v_BHMU, may_attend, score_bias)
    heads_NHU = recall.unpad(heads.transpose(1, 2).reshape(R, L, H, block.d_v))
    return block.join(heads_NHU)
