"""What attention weights alone say: rollout through all layers, weighting by norms, and roles of heads.

Rollout takes each block to pass on half of a token's vector and half of what its attention mixes in, for the
residual connection (Abnar and Zuidema, 2020), and multiplies these shares up the stack. Rows sum to 1 over
both sides together. Heads that are off take no part; a block without a head passes everything on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

import numpy as np

from regard.errors import RequestError
from regard.look.interventions.interventions import SkipBlock, heads_off
from regard.look.trace.blocks import Kind, address_of, layers_of

if TYPE_CHECKING:
    from regard.bundle.weights import Model
    from regard.look.trace.data import TraceData


Mixing = Callable[[Kind, int], np.ndarray]
"""The mixture of tokens that a block computes: (queries, keys), rows sum to 1. Called only for blocks with
a head that is on."""


class Shares(NamedTuple):
    """For each token of the last layer the shares of the tokens below; None for a missing side."""

    of_inputs: np.ndarray | None
    of_outputs: np.ndarray | None


def rollout(trace: TraceData, mixing: Mixing | None = None) -> Shares:
    """Multiply the mixtures of all layers; default: the mean of each block's heads."""
    mixing = mean_attention(trace) if mixing is None else mixing
    of_inputs = None
    if trace.inputs is not None:
        of_inputs = np.eye(len(trace.inputs))
        for layer in range(layers_of(trace.config, "encoder")):
            if heads_on(trace, "encoder", layer):
                of_inputs = (of_inputs + mixing("encoder", layer) @ of_inputs) / 2
    if trace.outputs is None:
        return Shares(of_inputs, None)
    of_outputs = np.eye(len(trace.outputs))
    from_memory = None if of_inputs is None else np.zeros((len(trace.outputs), len(of_inputs)))
    for layer in range(layers_of(trace.config, "decoder")):
        if heads_on(trace, "decoder", layer):
            weights_TT = mixing("decoder", layer)
            of_outputs = (of_outputs + weights_TT @ of_outputs) / 2
            from_memory = None if from_memory is None else (from_memory + weights_TT @ from_memory) / 2
        if from_memory is not None and of_inputs is not None and heads_on(trace, "cross", layer):
            from_memory = (from_memory + mixing("cross", layer) @ of_inputs) / 2
            of_outputs = of_outputs / 2
    return Shares(from_memory, of_outputs)


def heads_on(trace: TraceData, kind: Kind, layer: int) -> list[int]:
    """The heads that are on; none if the block is skipped."""
    if SkipBlock(block=kind, layer=layer) in trace.interventions:
        return []
    off = heads_off(trace.interventions, kind, layer)
    return [head for head in range(trace.config.n_heads) if head not in off]


def mean_attention(trace: TraceData) -> Mixing:
    """The attention of a block, as the mean of its heads."""

    def mixing(kind: Kind, layer: int) -> np.ndarray:
        heads = [trace.attention(kind, layer, head) for head in heads_on(trace, kind, layer)]
        mean_LM: np.ndarray = np.mean(heads, axis=0)
        return mean_LM

    return mixing


def norm_weighted(model: Model, trace: TraceData) -> Mixing:
    """Attention weighted by the norm of what it carries, Σ_heads weight · v W_O (Kobayashi et al., 2020).

    A head may give much weight to a token whose value is close to 0.
    """
    config = trace.config

    def mixing(kind: Kind, layer: int) -> np.ndarray:
        on = heads_on(trace, kind, layer)
        w_o = model.get_parameter(f"{address_of(kind, layer)}.w_o.weight").detach().cpu().double().numpy()
        parts = np.split(w_o, config.n_heads, axis=1)
        handed_HMD = np.stack([trace.v(kind, layer, head) @ parts[head].T for head in on])
        weights_HLM = np.stack([trace.attention(kind, layer, head) for head in on])
        # One query at a time: all at once would take gigabytes for a long text.
        carried = (
            np.einsum("hm,hmd->md", weights_HM, handed_HMD) for weights_HM in weights_HLM.swapaxes(0, 1)
        )
        lengths_LM = np.stack([np.linalg.norm(carried_MD, axis=-1) for carried_MD in carried])
        shares_LM: np.ndarray = lengths_LM / lengths_LM.sum(-1, keepdims=True)
        return shares_LM

    return mixing


Role = Literal["itself", "previous", "next", "first", "last", "special", "focus"]
"""Attention to the token itself, the previous or the next one, the first or the last that it may attend to,
to special tokens; and focus: 1 if one token has all attention, 0 if it is spread evenly."""

ROLES: tuple[Role, ...] = get_args(Role)

RELATIONS: dict[Kind, tuple[Role, ...]] = {
    "encoder": ("itself", "previous", "next", "first", "last"),
    "decoder": ("itself", "previous", "first"),
    "cross": ("first", "last"),
}
"""The roles by which a head is named. The last token that a masked query sees is itself; the places of two
different texts have no neighbours in common."""
NAMED_FROM = 0.5
"""How far a head must be from even attention (0) towards attention to its place alone (1) to have a role."""


@dataclass(frozen=True, slots=True)
class HeadSummary:
    """What the weights of one head do in one text; means over the queries."""

    role: Role | None
    """The relation that its attention follows; None if it follows none."""
    share: float
    """The share of attention that goes to this role's token; 0 without a role."""
    even: float
    """The share that an even head would give it."""
    entropy: float
    """In bits."""
    confidence: float
    """The largest weight."""
    distance: float | None
    """From query to key in tokens, by weight; None for cross-attention."""


def head_summaries(trace: TraceData, kind: Kind) -> list[list[HeadSummary]]:
    """The role and the statistics of every head of every layer, in this text.

    A head has the role whose token gets the most attention beyond an even head's share: (share - even) /
    (1 - even), at least `NAMED_FROM`. Queries that see a single token have no choice, and do not count.
    An even head therefore has no role, however short the text.
    """
    may_attend_LM = trace.may_attend(kind)
    even_LM = may_attend_LM / may_attend_LM.sum(axis=1, keepdims=True)
    even = {role: _shares(trace, even_LM, kind, role) for role in RELATIONS[kind]}
    apart_LM = np.abs(np.subtract.outer(*(np.arange(n) for n in even_LM.shape)))

    def summary(layer: int, head: int) -> HeadSummary:
        weights_LM = trace.attention(kind, layer, head).astype(np.float64)
        best: tuple[float, Role | None, float, float] = (NAMED_FROM, None, 0.0, 0.0)
        for role, even_shares in even.items():
            if even_shares.size:
                share, base = float(_shares(trace, weights_LM, kind, role).mean()), float(even_shares.mean())
                if (gain := (share - base) / (1 - base)) > best[0] or (gain == best[0] and best[1] is None):
                    best = gain, role, share, base
        logs_LM = np.log2(np.where(weights_LM > 0, weights_LM, 1.0))
        return HeadSummary(
            role=best[1],
            share=best[2],
            even=best[3],
            entropy=float(-(weights_LM * logs_LM).sum(axis=1).mean()),
            confidence=float(weights_LM.max(axis=1).mean()),
            distance=None if kind == "cross" else float((weights_LM * apart_LM).sum(axis=1).mean()),
        )

    heads = range(trace.config.n_heads)
    return [[summary(layer, head) for head in heads] for layer in range(layers_of(trace.config, kind))]


def head_roles(traces: Sequence[TraceData], kind: Kind) -> dict[Role, np.ndarray]:
    """For each role (layers, heads): the mean share of attention over all texts.

    Raises:
        RequestError: no trace is given.
    """
    if not traces:
        raise RequestError("give at least one trace to measure roles on", code="no_traces")
    shape = (layers_of(traces[0].config, kind), traces[0].config.n_heads)
    return {role: _mean_share(traces, kind, role, shape) for role in ROLES}


def _mean_share(traces: Sequence[TraceData], kind: Kind, role: Role, shape: tuple[int, int]) -> np.ndarray:
    found = np.zeros(shape)
    for layer, head in np.ndindex(shape):
        rows = [_shares(trace, trace.attention(kind, layer, head), kind, role) for trace in traces]
        together = np.concatenate(rows)
        found[layer, head] = together.mean() if together.size else np.nan
    return found


def _shares(trace: TraceData, weights_LM: np.ndarray, kind: Kind, role: Role) -> np.ndarray:
    """One number for each query to which the role applies."""
    may_attend_LM = trace.may_attend(kind)
    if role == "focus":
        return _focus(weights_LM, may_attend_LM)
    n_queries, n_keys = weights_LM.shape
    query, n_seen = np.arange(n_queries), may_attend_LM.sum(axis=1)
    if role == "special":
        special = np.array([token.special for token in trace.keys(kind).tokens])
        return weights_LM[:, special].sum(axis=1)
    last = n_keys - 1 - may_attend_LM[:, ::-1].argmax(axis=1)
    goal = {
        "itself": query, "previous": query - 1, "next": query + 1,
        "first": may_attend_LM.argmax(axis=1), "last": last,
    }[role]  # fmt: skip
    # A query that sees a single token has no choice.
    fair = (goal >= 0) & (goal < n_keys) & (n_seen > 1)
    fair[fair] &= may_attend_LM[query[fair], goal[fair]]
    return weights_LM[query[fair], goal[fair]]


def _focus(weights_LM: np.ndarray, may_attend_LM: np.ndarray) -> np.ndarray:
    """1 - entropy / maximal entropy, of the rows that see several tokens."""
    n_seen = may_attend_LM.sum(axis=1)
    logs_LM = np.log(np.where(weights_LM > 0, weights_LM, 1.0))
    entropy = -(weights_LM * logs_LM).sum(axis=1)
    return 1 - entropy[n_seen > 1] / np.log(n_seen[n_seen > 1])
