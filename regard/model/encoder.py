"""Figure 1, left: the encoder, N identical layers of self-attention and feed-forward (3.1)."""

from __future__ import annotations

from torch import Tensor, nn

from regard.config import ModelConfig
from regard.model.add_and_norm import AddAndNorm, make_norm
from regard.model.feed_forward import FeedForward
from regard.model.masks import SameSequence
from regard.model.multi_head_attention import MultiHeadAttention
from regard.model.taps import tap


class EncoderLayer(nn.Module):
    """Multi-Head Attention, Add & Norm, Feed Forward, Add & Norm."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.multi_head_attention = MultiHeadAttention.of_config(config)
        self.feed_forward = FeedForward(config)
        self.add_and_norm = nn.ModuleList([AddAndNorm(config), AddAndNorm(config)])

    def forward(self, x: Tensor, may_attend: Tensor | SameSequence | None = None) -> Tensor:
        """(batch, length, d_model) with a mask, or (tokens, d_model) packed."""
        attention = self.multi_head_attention
        x = self.add_and_norm[0](x, lambda y: attention(y, may_attend=may_attend))
        return self.add_and_norm[1](x, self.feed_forward)


class Encoder(nn.Module):
    """The stack of layers; behind pre-norm layers, one last norm."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.layers = nn.ModuleList([EncoderLayer(config) for _ in range(config.encoder_layers)])
        # Departure 1: pre-norm leaves the last sum without a norm, so the stack ends with one.
        self.norm = make_norm(config) if config.norm_position == "pre" else nn.Identity()

    def forward(self, x: Tensor, may_attend: Tensor | SameSequence | None = None) -> Tensor:
        """Embedded inputs to the memory."""
        for layer in self.layers:
            x = layer(x, may_attend)
        return tap(self, "output", self.norm(x))
