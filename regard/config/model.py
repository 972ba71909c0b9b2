"""The shape of a model. The defaults are the paper's base model; the docstrings are the help text."""

from dataclasses import dataclass
from math import lcm
from typing import Annotated, ClassVar, Literal

from regard.config import registries
from regard.config.checking import not_a_fraction, refuse_problems, too_large, too_small

Architecture = Literal["encoder-decoder", "decoder", "encoder"]
NormPosition = Literal["post", "pre"]
SharedEmbeddings = Literal["none", "two-way", "three-way"]
LabelHeadName = Literal["none", "tanh", "gelu-norm"]
NormName = Annotated[str, registries.norms]
FeedForwardName = Annotated[str, registries.feed_forwards]
PositionsName = Annotated[str, registries.positions]
SimilarityName = Annotated[str, registries.similarities]

MOST, MOST_LAYERS = 1 << 24, 1000
"""The largest sizes, and most layers: more is a mistake, or a file that is meant to exhaust memory."""

PAIRED = {"sinusoidal": "d_model", "rotary": "d_k"}
"""Positions that pair up numbers, and the width that must therefore be even."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelConfig:
    """The shape of a model: which boxes of Figure 1 it has, and how wide they are."""

    SECTION: ClassVar[str] = "model"

    architecture: Architecture = "encoder-decoder"
    """Both stacks of Figure 1 (3.1), the decoder alone (to generate) or the encoder alone (to classify)."""
    vocab_size: int = 37000
    """Number of subwords, special tokens included; one vocabulary serves inputs and outputs (5.1)."""
    n_labels: int = 0
    """Number of classes; for the encoder alone."""
    d_model: int = 512
    """Width of every sub-layer's output, and of the embeddings (3.1)."""
    n_heads: int = 8
    """Parallel attention heads, the paper's h (3.2.2)."""
    d_k: int | None = None
    """Width of one head's queries and keys; none takes d_model / n_heads (3.2.2)."""
    d_v: int | None = None
    """Width of one head's values; none takes d_model / n_heads (3.2.2)."""
    d_ff: int = 2048
    """Inner width of the feed-forward sub-layer (3.3)."""
    encoder_layers: int = 6
    """Layers of the encoder, the paper's N (3.1)."""
    decoder_layers: int = 6
    """Layers of the decoder, the paper's N (3.1)."""
    dropout: float = 0.1
    """Dropout probability on the output of each sub-layer and on the embedded inputs; P_drop (5.4)."""
    norm_position: NormPosition = "post"
    """Normalise after adding the residual, as in the paper (3.1), or before the sub-layer."""
    norm: NormName = "layer"
    """Layer normalisation, as in the paper (3.1), or root-mean-square normalisation."""
    norm_epsilon: float = 1e-5
    """Added to the variance, or to the mean square, before a norm divides by its root."""
    feed_forward: FeedForwardName = "relu"
    """Activation of the feed-forward sub-layer: ReLU as in the paper (3.3), another one, or a gated form."""
    positions: PositionsName = "sinusoidal"
    """How order is represented: sinusoids or a learned table (3.5), rotated queries and keys, a bias on
    scores by distance (ALiBi, T5), or not at all."""
    similarity: SimilarityName = "scaled-dot"
    """How queries are compared with keys: the paper's scaled dot product (3.2.1), or another way."""
    max_length: int = 1024
    """Longest sequence in tokens; also the number of learned positions (3.5)."""
    shared_embeddings: SharedEmbeddings = "three-way"
    """Which layers share one matrix: decoder input and output (two-way), and the encoder input too (3.4)."""
    scale_embeddings: bool = True
    """Multiply embeddings by sqrt(d_model) (3.4)."""
    embedding_norm: bool = False
    """Normalise the sum of embedding and position before the first layer."""
    attention_bias: bool = False
    """Add a bias to the projections of attention; the paper's have none (3.2.2)."""
    output_bias: bool = False
    """Add a bias to the logits of subwords; those of labels always have one."""
    label_head: LabelHeadName = "none"
    """The map before the output layer of the encoder alone: none, or one of BERT's two."""

    def __post_init__(self) -> None:
        refuse_problems(self)

    @property
    def key_width(self) -> int:
        """The width of one head's queries and keys."""
        return self.d_model // self.n_heads if self.d_k is None else self.d_k

    @property
    def value_width(self) -> int:
        """The width of one head's values."""
        return self.d_model // self.n_heads if self.d_v is None else self.d_v

    def problems(self) -> list[str]:
        """Every contradiction among the settings."""
        sizes = self._size_problems()
        # These checks divide by the sizes, so each size must be valid first.
        widths = [] if sizes else self._width_problems()
        epsilon = (
            [] if self.norm_epsilon > 0 else [f"model.norm_epsilon = {self.norm_epsilon} must be above 0"]
        )
        fractions = not_a_fraction(self, "dropout")
        return [*sizes, *widths, *epsilon, *fractions, *self._architecture_problems()]

    def _size_problems(self) -> list[str]:
        sizes = ("vocab_size", "d_model", "n_heads", "d_k", "d_v", "d_ff", "max_length")
        others = ("n_labels", "encoder_layers", "decoder_layers")
        largest = dict.fromkeys((*sizes, "n_labels"), MOST) | dict.fromkeys(others[1:], MOST_LAYERS)
        return [
            *too_small(self, dict.fromkeys(sizes, 1) | dict.fromkeys(others, 0)),
            *too_large(self, largest),
        ]

    def _width_problems(self) -> list[str]:
        """The first contradiction among the widths; the width that it proposes satisfies the other checks."""
        if (self.d_k is None or self.d_v is None) and self.d_model % self.n_heads:
            return [
                f"model.d_model = {self.d_model} does not divide among {self.n_heads} heads; "
                f"{self._nearest_width()} does"
            ]
        paired = PAIRED.get(self.positions)
        width = self.d_model if paired == "d_model" else self.key_width
        if paired and width % 2:
            return [f'model.positions = "{self.positions}" needs an even model.{paired}, not {width}']
        return [
            *registries.positions.problems(self.positions, self),
            *registries.similarities.problems(self.similarity, self),
            *registries.feed_forwards.problems(self.feed_forward, self),
            *registries.norms.problems(self.norm, self),
        ]

    def _nearest_width(self) -> int:
        """The multiple nearest to d_model (the larger of two) that its heads and positions allow."""
        step = self.n_heads
        paired = PAIRED.get(self.positions)
        if paired == "d_model":
            step = lcm(step, 2)
        elif paired == "d_k" and self.d_k is None:
            step *= 2
        return max(step, (self.d_model + step // 2) // step * step)

    def _architecture_problems(self) -> list[str]:
        found = []
        alone = self.architecture == "encoder"
        if alone and self.n_labels < 2:
            found.append(
                f"model.n_labels = {self.n_labels} is too few for the encoder alone; it needs 2 or more"
            )
        if not alone and self.n_labels > 0:
            found.append(
                f'model.n_labels = {self.n_labels} is for model.architecture = "encoder", '
                f'not "{self.architecture}"'
            )
        if not alone and self.label_head != "none":
            found.append(
                f'model.label_head = "{self.label_head}" is for model.architecture = "encoder", '
                f'not "{self.architecture}"'
            )
        if self.architecture != "decoder" and self.encoder_layers == 0:
            found.append(f'model.encoder_layers = 0 leaves "{self.architecture}" without an encoder')
        if not alone and self.decoder_layers == 0:
            found.append(f'model.decoder_layers = 0 leaves "{self.architecture}" without a decoder')
        return found
