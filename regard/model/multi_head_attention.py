"""Figure 2, right: Multi-Head Attention.

    MultiHead(Q, K, V) = Concat(head₁, …, head_h) W^O                                    (3.2.2)
    head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V)

One module, two forms of input: ordinary (batch, length, d_model) tensors with a boolean mask, and packed
(tokens, d_model) ones with `SameSequence`. Heads are always the last dimension but one: (…, heads, d_k).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from regard.config import ModelConfig, SimilarityName
from regard.errors import ConfigError, ShapeError
from regard.model.fast.cache import KeysValues, Recall, Store
from regard.model.fast.kernels import dense_attention, packed_attention
from regard.model.linear import Linear, side_by_side
from regard.model.masks import SameSequence
from regard.model.positional_encoding import rotate
from regard.model.scaled_dot_product_attention import check_may_attend, masked_softmax
from regard.model.similarity import make_similarity
from regard.model.taps import is_recording, tap


class MultiHeadAttention(nn.Module):
    """h attentions side by side, each in its own projection of queries, keys and values (3.2.2).

    `d_k` and `d_v` are free of each other and of d_model / n_heads.
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        *,
        d_k: int | None = None,
        d_v: int | None = None,
        bias: bool = False,
        similarity: SimilarityName = "scaled-dot",
        rotary: bool = False,
    ) -> None:
        super().__init__()
        for name, value in (("n_heads", n_heads), ("d_k", d_k), ("d_v", d_v)):
            if value is not None and value < 1:
                raise ConfigError(f"{name} = {value} must be at least 1")
        if (d_k is None or d_v is None) and d_model % n_heads != 0:
            problem = f"d_model = {d_model} does not divide among n_heads = {n_heads}; give d_k and d_v"
            raise ConfigError(problem)
        self.d_model, self.n_heads, self.rotary = d_model, n_heads, rotary
        self.d_k, self.d_v = d_k or d_model // n_heads, d_v or d_model // n_heads
        if rotary and self.d_k % 2:
            raise ConfigError(f"d_k = {self.d_k}; rotary positions turn pairs, so it must be even")
        self.w_q = Linear(d_model, n_heads * self.d_k, bias=bias)
        self.w_k = Linear(d_model, n_heads * self.d_k, bias=bias)
        self.w_v = Linear(d_model, n_heads * self.d_v, bias=bias)
        self.w_o = Linear(n_heads * self.d_v, d_model, bias=bias)
        self.similarity = make_similarity(similarity, n_heads, self.d_k)

    @classmethod
    def of_config(cls, config: ModelConfig, *, of_memory: bool = False) -> MultiHeadAttention:
        """The block that a configuration describes; distance to the memory's tokens is not a position."""
        return cls(
            config.d_model,
            config.n_heads,
            d_k=config.d_k,
            d_v=config.d_v,
            bias=config.attention_bias,
            similarity=config.similarity,
            rotary=config.positions == "rotary" and not of_memory,
        )

    def forward(
        self, x: Tensor, memory: Tensor | None = None, may_attend: Tensor | SameSequence | None = None
    ) -> Tensor:
        """Attention of x on itself or on `memory`: (batch, length, d_model), or (tokens, d_model) packed."""
        self._check(x, memory, may_attend)
        q, k, v = self._project(x, memory, may_attend)
        q, k, v = tap(self, "q", q), tap(self, "k", k), tap(self, "v", v)
        heads = self._attend(q, k, v, may_attend)
        return self._join(heads)

    def remember(self, memory_BSD: Tensor) -> KeysValues:
        """Keys and values of a padded memory, worked out once for all steps of decoding."""
        k, v = side_by_side([self.w_k, self.w_v], memory_BSD)
        k_BSHK, v_BSHU = k.unflatten(-1, (-1, self.d_k)), v.unflatten(-1, (-1, self.d_v))
        _, k_BSHK = self.similarity.prepare(k_BSHK, k_BSHK)
        return KeysValues(k_BSHK.transpose(1, 2).contiguous(), v_BSHU.transpose(1, 2).contiguous())

    def extend(self, x_ND: Tensor, past: Store, recall: Recall) -> Tensor:
        """Attention of new tokens on themselves and on what came before, where their keys and values go."""
        q, k, v = self.w_q(x_ND), self.w_k(x_ND), self.w_v(x_ND)  # few tokens: to join the weights costs more
        q, k = self._turn(q, recall.new.positions_N), self._turn(k, recall.new.positions_N)
        q, k = self.similarity.prepare(q, k)
        q, k, v = tap(self, "q", q), tap(self, "k", k), tap(self, "v", v.unflatten(-1, (-1, self.d_v)))
        past.write(recall, k, v)
        return self._join(self._recall(q, past.up_to(recall.reach), recall, recall.own_may_attend))

    def consult(self, x_ND: Tensor, memory: KeysValues, recall: Recall) -> Tensor:
        """Attention of new tokens on a memory whose keys and values are remembered."""
        q = self.w_q(x_ND).unflatten(-1, (-1, self.d_k))
        q = tap(self, "q", self.similarity.prepare(q, q)[0])
        return self._join(self._recall(q, memory, recall, recall.memory_may_attend))

    def _recall(self, q_NHK: Tensor, stored: KeysValues, recall: Recall, may_attend: Tensor | None) -> Tensor:
        q_RLHK = recall.pad(q_NHK)
        R, L, H, _ = q_RLHK.shape
        # Rows of one source ask the same memory: they line up as more queries, and nothing is copied.
        lined_up = q_RLHK.reshape(stored.k_BHMK.shape[0], -1, H, self.d_k)
        heads = self._weigh(lined_up.transpose(1, 2), stored.k_BHMK, stored.v_BHMU, may_attend)
        return recall.unpad(heads.transpose(1, 2).reshape(R, L, H, self.d_v))

    def _project(
        self, x: Tensor, memory: Tensor | None, may_attend: Tensor | SameSequence | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        if memory is None:
            q, k, v = side_by_side([self.w_q, self.w_k, self.w_v], x)
        else:
            q, (k, v) = self.w_q(x), side_by_side([self.w_k, self.w_v], memory)
        if isinstance(may_attend, SameSequence):
            positions = may_attend.queries.positions_N
        else:
            positions = torch.arange(x.shape[-2], device=x.device)
        q, k = self._turn(q, positions), self._turn(k, positions)
        q, k = self.similarity.prepare(q, k)
        return q, k, v.unflatten(-1, (-1, self.d_v))

    def _turn(self, x: Tensor, positions: Tensor) -> Tensor:
        x = x.unflatten(-1, (-1, self.d_k))
        return rotate(x, positions) if self.rotary else x

    def _attend(self, q: Tensor, k: Tensor, v: Tensor, may_attend: Tensor | SameSequence | None) -> Tensor:
        if not isinstance(may_attend, SameSequence):
            q_BHLK, k_BHMK, v_BHMU = (x.transpose(1, 2) for x in (q, k, v))
            return self._weigh(q_BHLK, k_BHMK, v_BHMU, may_attend).transpose(1, 2)
        if self.similarity.is_dot_product and not is_recording():
            return packed_attention(q, k, v, may_attend, self.similarity.scale)
        queries, keys = may_attend.queries.padded, may_attend.keys.padded
        (q_BLHK,), (k_BMHK,), (v_BMHU,) = queries.pad(q), keys.pad(k), keys.pad(v)
        heads_BHLU = self._weigh(
            q_BLHK.transpose(1, 2), k_BMHK.transpose(1, 2), v_BMHU.transpose(1, 2), may_attend.as_mask()
        )
        return queries.unpad([heads_BHLU.transpose(1, 2)])

    def _weigh(self, q_BHLK: Tensor, k_BHMK: Tensor, v_BHMU: Tensor, may_attend: Tensor | None) -> Tensor:
        if self.similarity.is_dot_product and not is_recording():
            return dense_attention(q_BHLK, k_BHMK, v_BHMU, may_attend, self.similarity.scale)
        scores_BHLM = tap(self, "scores", self.similarity.scores(q_BHLK, k_BHMK))
        weights_BHLM = tap(self, "weights", masked_softmax(scores_BHLM, may_attend))
        return weights_BHLM @ v_BHMU

    def _join(self, heads: Tensor) -> Tensor:
        heads = tap(self, "heads", heads)
        return tap(self, "output", self.w_o(heads.flatten(-2)))

    def _check(self, x: Tensor, memory: Tensor | None, may_attend: Tensor | SameSequence | None) -> None:
        """Refuse what does not fit, naming the argument."""
        packed = isinstance(may_attend, SameSequence)
        form, n_dims = ("(tokens, d_model)", 2) if packed else ("(batch, length, d_model)", 3)
        for name, tensor in (("x", x), ("memory", memory)):
            if tensor is not None and (tensor.dim() != n_dims or tensor.shape[-1] != self.d_model):
                raise ShapeError(name, f"{form} with d_model = {self.d_model}", tuple(tensor.shape))
        keys = x if memory is None else memory
        if memory is not None and self.rotary:
            expected = "none: rotary positions are for self-attention, make this block with rotary=False"
            raise ShapeError("memory", expected, tuple(memory.shape))
        if isinstance(may_attend, SameSequence):
            sides = (("x", x, may_attend.queries), ("memory", keys, may_attend.keys))
            for name, tensor, boundaries in sides:
                if tensor.shape[0] != boundaries.n_tokens:
                    raise ShapeError(name, f"{boundaries.n_tokens} packed tokens", tensor.shape[0])
        elif keys.shape[0] != x.shape[0]:
            raise ShapeError("memory", f"{x.shape[0]} sequences, as x has", keys.shape[0])
        elif may_attend is not None:
            check_may_attend(may_attend, torch.Size([x.shape[0], self.n_heads, x.shape[1], keys.shape[1]]))
            if memory is None and not torch.compiler.is_compiling():  # a graph cannot ask what is in a mask
                _check_polarity(may_attend, x.shape[1])


def _check_polarity(may_attend: Tensor, length: int) -> None:
    """Refuse a self-attention mask that can only be upside down: torch.nn's masks say True = may *not*."""
    square = may_attend.expand(torch.broadcast_shapes(may_attend.shape, (length, length)))
    if not square.diagonal(dim1=-2, dim2=-1).any(dim=-1).all():
        hint = (
            "a mask in which no token of some sequence may attend to itself; if True means masked, pass ~mask"
        )
        raise ShapeError("may_attend", "True where a token may attend", hint)
