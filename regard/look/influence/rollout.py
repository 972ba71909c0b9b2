"""What reaches a token from below, when the attention of all layers is followed: rollout.

Each block is taken to pass on half of what a token was and half of what its attention mixes in, which stands
for the residual connection (Abnar and Zuidema, 2020). Shares are multiplied up the stack: of what arrives at
a token, they tell which part set out from which token. Rows sum to 1 over both sides together. Heads that are
switched off have no part in it, and a block without any head passes everything on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from regard.look.interventions.interventions import SkipBlock, heads_off
from regard.look.trace.blocks import Kind, address_of, layers_of

if TYPE_CHECKING:
    from regard.bundle.weights import Model
    from regard.look.trace.data import TraceData

Mixing = Callable[[Kind, int], np.ndarray]
"""How much the tokens of one block take from which: (queries, keys), rows that sum to 1.

Asked only of blocks with a head that is on."""


class Shares(NamedTuple):
    """Where that which arrives at each token of the last layer set out; None for a side that is not there."""

    of_inputs: np.ndarray | None
    of_outputs: np.ndarray | None


def rollout(trace: TraceData, mixing: Mixing | None = None) -> Shares:
    """Follow attention from the last layer down; by default the mean of each block's heads."""
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
    """The heads that hand something on: none of a block that is skipped."""
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
    """Attention weighed by what it carries: the length of Σ_heads weight · v W_O (Kobayashi et al., 2020).

    A head may look hard at a token whose value is next to nothing; this tells the two apart.
    """
    config = trace.config

    def mixing(kind: Kind, layer: int) -> np.ndarray:
        on = heads_on(trace, kind, layer)
        w_o = model.get_parameter(f"{address_of(kind, layer)}.w_o.weight").detach().double().cpu().numpy()
        parts = np.split(w_o, config.n_heads, axis=1)
        handed_HMD = np.stack([trace.v(kind, layer, head) @ parts[head].T for head in on])
        weights_HLM = np.stack([trace.attention(kind, layer, head) for head in on])
        # Query by query: all at once, a long text would take gigabytes.
        carried = (
            np.einsum("hm,hmd->md", weights_HM, handed_HMD) for weights_HM in weights_HLM.swapaxes(0, 1)
        )
        lengths_LM = np.stack([np.linalg.norm(carried_MD, axis=-1) for carried_MD in carried])
        shares_LM: np.ndarray = lengths_LM / lengths_LM.sum(-1, keepdims=True)
        return shares_LM

    return mixing
