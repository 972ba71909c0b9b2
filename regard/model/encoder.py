"""Figure 1, left: the encoder, N identical layers of self-attention and feed-forward (3.1)."""

from __future__ import annotations

from torch import Tensor, nn

from regard.config import ModelConfig
from regard.model.add_and_norm import AddAndNorm, new_norm
from regard.model.feed_forward import FeedForward
from regard.model.multi_head_attention import Mask, MultiHeadAttention
from regard.model.taps import tap


class EncoderLayer(nn.Module):
    """Multi-Head Attention, Add & Norm, Feed Forward, Add & Norm."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.multi_head_attention = MultiHeadAttention.of_config(config)
        self.feed_forward = FeedForward(config)
        self.add_and_norm = nn.ModuleList([AddAndNorm(config), AddAndNorm(config)])

    def forward(self, x: Tensor, may_attend: Mask = None, score_bias: Tensor | None = None) -> Tensor:
        """(batch, length, d_model) with a mask, or (tokens, d_model) packed."""
        attention = self.multi_head_attention
        x = self.add_and_norm[0](x, lambda y: attention(y, None, may_attend, score_bias))
        return self.add_and_norm[1](x, self.feed_forward)


class Encoder(nn.Module):
    """The stack of layers; after pre-norm layers, one last norm."""

    taps = ("output",)

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.layers = nn.ModuleList([EncoderLayer(config) for _ in range(config.encoder_layers)])
        # Departure 1: pre-norm leaves the last sum without a norm, so the stack ends with one.
        self.norm = new_norm(config) if config.norm_position == "pre" else nn.Identity()

    def forward(self, x: Tensor, may_attend: Mask = None, score_bias: Tensor | None = None) -> Tensor:
        """Embedded inputs to the memory; all layers share the bias that `model.positions` may give."""
        for layer in self.layers:
            x = layer(x, may_attend, score_bias)
        return tap(self, "output", self.norm(x))
