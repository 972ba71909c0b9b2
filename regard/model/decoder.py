"""Figure 1, right: the decoder, N identical layers of masked self-attention, attention to the encoder and
feed-forward (3.1).

The decoder alone (`memory=False`) is the same stack without the attention to an encoder.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from regard.config import ModelConfig
from regard.errors import ShapeError
from regard.model.add_and_norm import AddAndNorm, make_norm
from regard.model.fast.cache import Cache, KeysValues, Recall, Store
from regard.model.feed_forward import FeedForward
from regard.model.masks import SameSequence
from regard.model.multi_head_attention import MultiHeadAttention
from regard.model.taps import tap
from regard.packing import Boundaries

Mask = Tensor | SameSequence | None


class DecoderLayer(nn.Module):
    """Masked Multi-Head Attention, Multi-Head Attention on the memory, Feed Forward, each with Add & Norm."""

    def __init__(self, config: ModelConfig, *, memory: bool = True) -> None:
        super().__init__()
        self.masked_multi_head_attention = MultiHeadAttention.of_config(config)
        self.multi_head_attention = MultiHeadAttention.of_config(config, of_memory=True) if memory else None
        self.feed_forward = FeedForward(config)
        self.add_and_norm = nn.ModuleList([AddAndNorm(config) for _ in range(3 if memory else 2)])

    def forward(
        self, x: Tensor, memory: Tensor | None, may_attend: Mask, may_attend_memory: Mask = None
    ) -> Tensor:
        """(batch, length, d_model) with masks, or (tokens, d_model) packed; `may_attend` is causal."""
        of_self, of_memory = self.masked_multi_head_attention, self.multi_head_attention
        x = self.add_and_norm[0](x, lambda y: of_self(y, may_attend=may_attend))
        if of_memory is not None:
            if memory is None:
                raise ShapeError("memory", "what the encoder made of the inputs", None)
            x = self.add_and_norm[1](x, lambda y: of_memory(y, memory, may_attend_memory))
        return self.add_and_norm[-1](x, self.feed_forward)

    def extend(self, x_ND: Tensor, own: Store, memory: KeysValues | None, recall: Recall) -> Tensor:
        """New tokens only, looking back through the cache."""
        of_self, of_memory = self.masked_multi_head_attention, self.multi_head_attention
        x_ND = self.add_and_norm[0](x_ND, lambda y: of_self.extend(y, own, recall))
        if of_memory is not None:
            assert memory is not None, "the cache was made without a memory"
            x_ND = self.add_and_norm[1](x_ND, lambda y: of_memory.consult(y, memory, recall))
        return self.add_and_norm[-1](x_ND, self.feed_forward)


class Decoder(nn.Module):
    """The stack of layers; behind pre-norm layers, one last norm."""

    def __init__(self, config: ModelConfig, *, memory: bool = True) -> None:
        super().__init__()
        layers = [DecoderLayer(config, memory=memory) for _ in range(config.decoder_layers)]
        self.layers: list[DecoderLayer] = nn.ModuleList(layers)  # type: ignore[assignment]
        self.norm = make_norm(config) if config.norm_position == "pre" else nn.Identity()  # Departure 1

    def forward(
        self, x: Tensor, memory: Tensor | None, may_attend: Mask, may_attend_memory: Mask = None
    ) -> Tensor:
        """Embedded outputs, shifted right, to the states that predict the next token."""
        for layer in self.layers:
            x = layer(x, memory, may_attend, may_attend_memory)
        return tap(self, "output", self.norm(x))

    def extend(self, x_ND: Tensor, cache: Cache, new: Boundaries) -> tuple[Tensor, Cache]:
        """The same for new tokens alone, and the cache with them in it."""
        return self.look_back(x_ND, cache.own, cache.memory, cache.recall(new)), cache.advanced(new)

    def look_back(
        self, x_ND: Tensor, own: Sequence[Store], memory: Sequence[KeysValues], recall: Recall
    ) -> Tensor:
        """States of new tokens, from what is remembered of those before them and of the memory."""
        for i, layer in enumerate(self.layers):
            x_ND = layer.extend(x_ND, own[i], memory[i] if memory else None, recall)
        return tap(self, "output", self.norm(x_ND))

    def remember(self, memory_BSD: Tensor) -> tuple[KeysValues, ...]:
        """Keys and values of a padded memory, for every layer."""
        blocks = [layer.multi_head_attention for layer in self.layers]
        return tuple(block.remember(memory_BSD) for block in blocks if block is not None)

    def empty_cache(self, n_rows: int, room: int, like: Tensor) -> tuple[KeysValues, ...]:
        """Room for so many tokens in each of `n_rows` rows, for every layer."""
        caches = []
        for layer in self.layers:
            attention = layer.masked_multi_head_attention
            shape = (n_rows, attention.n_heads, room)
            keys, values = like.new_zeros(*shape, attention.d_k), like.new_zeros(*shape, attention.d_v)
            caches.append(KeysValues(keys, values))
        return tuple(caches)
