"""Figure 1, right: the decoder, N identical layers of masked self-attention, attention to the encoder and
feed-forward (3.1).

The decoder alone (`memory=False`) is the same stack without the attention to an encoder. Step by step
decoding from a cache is in `fast/cached_decoder.py`.
"""

from __future__ import annotations

from torch import Tensor, nn

from regard.config import ModelConfig
from regard.errors import ShapeError
from regard.model.add_and_norm import AddAndNorm, new_norm
from regard.model.feed_forward import FeedForward
from regard.model.masks import StoredKeys
from regard.model.multi_head_attention import Mask, MultiHeadAttention
from regard.model.taps import tap


class DecoderLayer(nn.Module):
    """Masked Multi-Head Attention, Multi-Head Attention on the memory, Feed Forward, each with Add & Norm.

    Decoding step by step calls it too, and thus its hooks: x is then (rows, d_model), one new token each.
    """

    def __init__(self, config: ModelConfig, *, memory: bool = True) -> None:
        super().__init__()
        self.masked_multi_head_attention = MultiHeadAttention.of_config(config)
        self.multi_head_attention = MultiHeadAttention.of_config(config, of_memory=True) if memory else None
        self.feed_forward = FeedForward(config)
        self.add_and_norm = nn.ModuleList([AddAndNorm(config) for _ in range(3 if memory else 2)])

    def forward(
        self,
        x: Tensor,
        memory: Tensor | None,
        may_attend: Mask | StoredKeys,
        may_attend_memory: Mask | StoredKeys = None,
        score_bias: Tensor | None = None,
    ) -> Tensor:
        """(batch, length, d_model) with masks, or (tokens, d_model) packed; `may_attend` is causal."""
        of_self, of_memory = self.masked_multi_head_attention, self.multi_head_attention
        x = self.add_and_norm[0](x, lambda y: of_self(y, None, may_attend, score_bias))
        if of_memory is not None:
            if memory is None and not isinstance(may_attend_memory, StoredKeys):
                raise ShapeError("memory", "the result of the encoder", None, code="missing_memory")
            x = self.add_and_norm[1](x, lambda y: of_memory(y, memory, may_attend_memory))
        return self.add_and_norm[-1](x, self.feed_forward)


class Decoder(nn.Module):
    """The stack of layers; after pre-norm layers, one last norm.

    Decoding step by step calls its layers and norm, with their hooks, not the stack itself.
    """

    taps = ("output",)

    def __init__(self, config: ModelConfig, *, memory: bool = True) -> None:
        super().__init__()
        layers = [DecoderLayer(config, memory=memory) for _ in range(config.decoder_layers)]
        self.layers: list[DecoderLayer] = nn.ModuleList(layers)  # type: ignore[assignment]
        self.norm = new_norm(config) if config.norm_position == "pre" else nn.Identity()  # Departure 1

    def forward(
        self,
        x: Tensor,
        memory: Tensor | None,
        may_attend: Mask,
        may_attend_memory: Mask = None,
        score_bias: Tensor | None = None,
    ) -> Tensor:
        """Embedded outputs, shifted right, to the states that predict the next token.

        All layers share the bias on self-attention's scores that `model.positions` may give.
        """
        for layer in self.layers:
            x = layer(x, memory, may_attend, may_attend_memory, score_bias)
        return tap(self, "output", self.norm(x))
