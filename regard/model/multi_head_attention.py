"""Figure 2, right: Multi-Head Attention.

    MultiHead(Q, K, V) = Concat(head₁, …, head_h) W^O                                    (3.2.2)
    head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V)

One module, two forms of input: ordinary (batch, length, d_model) tensors with a boolean mask, and packed
(tokens, d_model) ones with `SameSequence`. Heads are always the last dimension but one: (…, heads, d_k).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from regard.config import ModelConfig, SimilarityName, registries
from regard.errors import ConfigError, ShapeError
from regard.model.fast.kernels import dense_attention, packed_attention
from regard.model.linear import Linear, side_by_side
from regard.model.masks import SameSequence, StoredKeys
from regard.model.positional_encoding import Turn
from regard.model.scaled_dot_product_attention import check_may_attend, masked_softmax
from regard.model.similarity import DotProduct
from regard.model.taps import is_recording, tap, wants

Mask = Tensor | SameSequence | None


class MultiHeadAttention(nn.Module):
    """h attentions side by side, each in its own projection of queries, keys and values (3.2.2).

    `d_k` and `d_v` are independent of each other and of d_model / n_heads. `turn` transforms queries and keys
    by their positions, such as `rotate` of `positional_encoding.py`.
    """

    taps = ("q", "k", "v", "scores", "weights", "heads", "head_outputs", "output")

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        *,
        d_k: int | None = None,
        d_v: int | None = None,
        bias: bool = False,
        similarity: SimilarityName = "scaled-dot",
        turn: Turn | None = None,
    ) -> None:
        super().__init__()
        for name, value in (("d_model", d_model), ("n_heads", n_heads), ("d_k", d_k), ("d_v", d_v)):
            if value is not None and value < 1:
                raise ConfigError(f"{name} = {value} must be at least 1", code="bad_value")
        if (d_k is None or d_v is None) and d_model % n_heads != 0:
            problem = f"d_model = {d_model} does not divide among n_heads = {n_heads}; give d_k and d_v"
            raise ConfigError(problem, code="bad_value")
        self.d_model, self.n_heads, self.turn = d_model, n_heads, turn
        self.d_k, self.d_v = d_k or d_model // n_heads, d_v or d_model // n_heads
        self.w_q = Linear(d_model, n_heads * self.d_k, bias=bias)
        self.w_k = Linear(d_model, n_heads * self.d_k, bias=bias)
        self.w_v = Linear(d_model, n_heads * self.d_v, bias=bias)
        self.w_o = Linear(n_heads * self.d_v, d_model, bias=bias)
        self.similarity: DotProduct = registries.similarities[similarity](n_heads, self.d_k)

    @classmethod
    def of_config(cls, config: ModelConfig, *, of_memory: bool = False) -> MultiHeadAttention:
        """The block that a configuration describes; there are no distances to the memory's tokens."""
        return cls(
            config.d_model,
            config.n_heads,
            d_k=config.d_k,
            d_v=config.d_v,
            bias=config.attention_bias,
            similarity=config.similarity,
            turn=None if of_memory else registries.positions[config.positions].turn,
        )

    def forward(
        self,
        x: Tensor,
        memory: Tensor | None = None,
        may_attend: Mask | StoredKeys = None,
        score_bias: Tensor | None = None,
    ) -> Tensor:
        """Attention of x on itself or on `memory`: (batch, length, d_model), or (tokens, d_model) packed.

        Args:
            x: the queries; without a memory also keys and values.
            memory: keys and values.
            may_attend: which query may attend to which key; by default all to all. A boolean tensor of any
                pattern, such as `~torch.eye(n, dtype=torch.bool)`, that broadcasts to (batch, heads, queries,
                keys); or a `SameSequence` for packed tokens.
            score_bias: added to the scores, by position of query and key: (heads, queries, keys). For packed
                tokens at least as large as the longest sequence.
        """
        if isinstance(may_attend, StoredKeys):
            return may_attend.attend(self, x)
        self._check(x, memory, may_attend, score_bias)
        q, k, v = self.project(x, memory, may_attend)  # Linear
        heads = self.attend(q, k, v, may_attend, score_bias)  # Scaled Dot-Product Attention
        return self.join(heads)  # Concat, Linear

    def project(self, x: Tensor, memory: Tensor | None, may_attend: Mask) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values of every head, ready to be compared."""
        if memory is None:
            q, k, v = side_by_side([self.w_q, self.w_k, self.w_v], x)
        else:
            q, (k, v) = self.w_q(x), side_by_side([self.w_k, self.w_v], memory)
        q, k, v = self.heads_of(q, self.d_k), self.heads_of(k, self.d_k), self.heads_of(v, self.d_v)
        if self.turn is not None:
            if isinstance(may_attend, SameSequence):
                places = may_attend.queries.positions_N
            else:
                places = torch.arange(x.shape[-2], device=x.device)
            q, k = self.turn(q, places), self.turn(k, places)
        q, k = self.similarity.prepare(q, k)
        return tap(self, "q", q), tap(self, "k", k), tap(self, "v", v)

    @staticmethod
    def heads_of(x: Tensor, width: int) -> Tensor:
        """(…, heads · width) to (…, heads, width)."""
        return x.unflatten(-1, (-1, width))

    def join(self, heads: Tensor) -> Tensor:
        """Concat and Linear: (…, heads, d_v) to (…, d_model)."""
        heads = tap(self, "heads", heads)
        output = self.w_o(heads.flatten(-2))
        if wants(self, "head_outputs"):
            shares = self.head_outputs(heads)
            output = output + (tap(self, "head_outputs", shares.clone()) - shares).sum(dim=-2)
        return tap(self, "output", output)

    def head_outputs(self, heads: Tensor) -> Tensor:
        """Each head's share of the output, (…, heads, d_model); their sum plus the bias is the output."""
        if type(self.w_o) is Linear:
            weight_DHU = self.w_o.weight.to(heads.dtype).unflatten(-1, (self.n_heads, self.d_v))
            return torch.einsum("...hu,dhu->...hd", heads, weight_DHU)
        # Another map, such as one with an adapter: what it makes of each head alone.
        alone = (
            heads[..., None, :, :]
            * torch.eye(self.n_heads, dtype=heads.dtype, device=heads.device)[..., None]
        )
        return self.w_o(alone.flatten(-2)) - self.w_o(torch.zeros_like(alone).flatten(-2))

    def attend(self, q: Tensor, k: Tensor, v: Tensor, may_attend: Mask, score_bias: Tensor | None) -> Tensor:
        """Scaled dot-product attention in every head: (…, heads, d_v)."""
        if not isinstance(may_attend, SameSequence):
            q_BHLK, k_BHMK, v_BHMU = (x.transpose(1, 2) for x in (q, k, v))
            return self.attend_padded(q_BHLK, k_BHMK, v_BHMU, may_attend, score_bias).transpose(1, 2)
        if self.similarity.is_dot_product and not is_recording(self):
            return packed_attention(q, k, v, may_attend, self.similarity.scale, score_bias)
        queries, keys = may_attend.queries.padded, may_attend.keys.padded
        (q_BLHK,), (k_BMHK,), (v_BMHU,) = queries.pad(q), keys.pad(k), keys.pad(v)
        q_BHLK, k_BHMK, v_BHMU = (x.transpose(1, 2) for x in (q_BLHK, k_BMHK, v_BMHU))
        heads_BHLU = self.attend_padded(q_BHLK, k_BHMK, v_BHMU, may_attend.as_mask(), score_bias)
        return queries.unpad([heads_BHLU.transpose(1, 2)])

    def attend_padded(
        self,
        q_BHLK: Tensor,
        k_BHMK: Tensor,
        v_BHMU: Tensor,
        may_attend: Tensor | None,
        score_bias: Tensor | None,
    ) -> Tensor:
        """Figure 2, left, by a fused kernel; written out where the activations are recorded."""
        if self.similarity.is_dot_product and not is_recording(self):
            return dense_attention(q_BHLK, k_BHMK, v_BHMU, may_attend, self.similarity.scale, score_bias)
        scores_BHLM = self.similarity.scores(q_BHLK, k_BHMK)  # MatMul, Scale
        if score_bias is not None:
            scores_BHLM = scores_BHLM + score_bias.to(scores_BHLM.dtype)
        scores_BHLM = tap(self, "scores", scores_BHLM)
        weights_BHLM = tap(self, "weights", masked_softmax(scores_BHLM, may_attend))  # Mask, SoftMax
        return weights_BHLM @ v_BHMU  # MatMul

    def _check(self, x: Tensor, memory: Tensor | None, may_attend: Mask, score_bias: Tensor | None) -> None:
        """Raise ShapeError for arguments that do not fit."""
        packed = isinstance(may_attend, SameSequence)
        form, n_dims = ("(tokens, d_model)", 2) if packed else ("(batch, length, d_model)", 3)
        for name, tensor in (("x", x), ("memory", memory)):
            if tensor is not None and (tensor.dim() != n_dims or tensor.shape[-1] != self.d_model):
                expected = f"{form} with d_model = {self.d_model}"
                raise ShapeError(name, expected, tuple(tensor.shape), code="bad_shape")
        keys = x if memory is None else memory
        if memory is not None and self.turn is not None:
            expected = "none: `turn` needs positions of self-attention; make this block without it"
            raise ShapeError("memory", expected, tuple(memory.shape), code="turn_with_memory")
        if score_bias is not None and score_bias.shape[-3:-2] not in ((1,), (self.n_heads,)):
            expected = f"({self.n_heads} heads, queries, keys)"
            raise ShapeError("score_bias", expected, tuple(score_bias.shape), code="bad_shape")
        if isinstance(may_attend, SameSequence):
            sides = (("x", x, may_attend.queries), ("memory", keys, may_attend.keys))
            for name, tensor, boundaries in sides:
                if tensor.shape[0] != boundaries.n_tokens:
                    expected = f"{boundaries.n_tokens} packed tokens"
                    raise ShapeError(name, expected, tensor.shape[0], code="token_count_mismatch")
            if may_attend.own is not None:
                check_may_attend(may_attend.own, may_attend.padded_shape(self.n_heads))
        elif keys.shape[0] != x.shape[0]:
            expected = f"{x.shape[0]} sequences, as x has"
            raise ShapeError("memory", expected, keys.shape[0], code="sequence_count_mismatch")
        elif may_attend is not None:
            check_may_attend(may_attend, torch.Size([x.shape[0], self.n_heads, x.shape[1], keys.shape[1]]))
            if memory is None and not torch.compiler.is_compiling():  # a graph cannot read the mask
                _check_polarity(may_attend, x.shape[1])


def _check_polarity(may_attend: Tensor, length: int) -> None:
    """Refuse a self-attention mask that looks inverted: in torch.nn's masks True means may *not*.

    An inverted causal or length mask leaves some token nothing to attend to, and no token itself.
    """
    square = may_attend.expand(torch.broadcast_shapes(may_attend.shape, (length, length)))
    no_self = ~square.diagonal(dim1=-2, dim2=-1).any(dim=-1)
    if (no_self & ~square.any(dim=-1).all(dim=-1)).any():
        got = (
            "a mask by which no token of some sequence attends to itself, and some to nothing; if True means "
            "masked, pass ~mask; if this is meant, pass x as `memory`, too"
        )
        raise ShapeError("may_attend", "True where a token may attend", got, code="inverted_mask")
