"""What a model says after each token, and what each of its layers would have said: the logit lens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from regard.look.trace.blocks import sublayers_of
from regard.model.classifier import Classifier

if TYPE_CHECKING:
    from regard.bundle.weights import Model

CANDIDATES = 10
"""How many of the likeliest tokens are kept."""
LOGITS = 4 * 1024 * 1024
"""Numbers in one slice of the output layer's results."""


def said(
    model: Model,
    seen: Mapping[str, Tensor],
    states_ND: Tensor,
    wanted: Sequence[int],
    *,
    several: bool = False,
) -> dict[str, Tensor]:
    """Candidates of every layer in every row, with their logits and what makes probabilities of them.

    A layer's stream goes through the last norm, a label head and the output layer, as if no layer came after
    it; the last layer's is what the model says. A classifier of which nothing is wanted is taken to want its
    best label. Of `several` labels each has a probability of its own: that a softmax would share out.
    """
    states = torch.stack([*_streams(model, seen), states_ND])
    n_layers, n_rows, _ = states.shape
    found = [_likeliest(logits) for logits in _slices_of_logits(model, states.flatten(0, 1))]
    ids, logits, normaliser = (
        torch.cat(each).unflatten(0, (n_layers, n_rows)) for each in zip(*found, strict=True)
    )
    if isinstance(model, Classifier):
        wanted = wanted or [int(ids[-1, 0, 0])]
    wanted_logits = _logits(model, states[:, : len(wanted)], wanted).to(normaliser.dtype)
    log_probs = logsigmoid(wanted_logits) if several else wanted_logits - normaliser[:, : len(wanted)]
    return {"ids": ids, "logits": logits, "normaliser": normaliser, "log_probs": log_probs}


def log_probs_of(model: Model, states_ND: Tensor, ids: Sequence[int], *, several: bool = False) -> Tensor:
    """Of each state the log-probability of one token or label, (N,)."""
    wanted = torch.tensor(ids, dtype=torch.int64, device=states_ND.device)
    found, start = [states_ND.new_empty(0)], 0
    for logits_NV in _slices_of_logits(model, states_ND):
        ids_N = wanted[start : start + len(logits_NV)]
        log_probs_NV = logsigmoid(logits_NV) if several else logits_NV.log_softmax(-1)
        found.append(log_probs_NV.gather(1, ids_N[:, None])[:, 0])
        start += len(ids_N)
    return torch.cat(found)


def _slices_of_logits(model: Model, states_ND: Tensor) -> Iterator[Tensor]:
    """The output layer's results, never many at once; in float32 at least."""
    rows = max(1, LOGITS // model.output_probabilities.out_features)
    for part in states_ND.split(rows):
        logits_NV = model.output_probabilities(part)
        yield logits_NV.to(torch.promote_types(logits_NV.dtype, torch.float32))


def _streams(model: Model, seen: Mapping[str, Tensor]) -> list[Tensor]:
    """What each layer but the last hands up, through the norm behind the stack."""
    stack = model.encoder if isinstance(model, Classifier) else model.decoder
    name = "encoder" if isinstance(model, Classifier) else "decoder"
    last = len(sublayers_of(model.config, name)) - 1
    streams = [seen[f"{name}.layers.{i}.add_and_norm.{last}.output"] for i in range(len(stack.layers) - 1)]
    if isinstance(model, Classifier):
        return [model.label_head(stack.norm(each[:1])) for each in streams]
    return [stack.norm(each) for each in streams]


def _likeliest(logits_NV: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    best = logits_NV.topk(min(CANDIDATES, logits_NV.shape[1]), dim=-1)
    return best.indices, best.values, logits_NV.logsumexp(dim=-1)


def _logits(model: Model, states: Tensor, wanted: Sequence[int]) -> Tensor:
    """(layers, wanted): a dot product for each, where a softmax of everything was taken already."""
    output = model.output_probabilities
    ids = torch.tensor(wanted, dtype=torch.int64, device=states.device)
    logits = (states * output.weight[ids].to(states.dtype)).sum(-1)
    if output.bias is not None:
        logits = logits + output.bias[ids].to(states.dtype)
    return logits
