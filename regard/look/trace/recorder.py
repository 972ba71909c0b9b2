"""`look`: find an output as usual, then run the model over the pair once more and record every activation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, assert_never

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from regard.engine.engines.protocol import Request, Search
from regard.engine.engines.torch_engine import TorchEngine
from regard.errors import RequestError
from regard.look.interventions.activations import Activation, Reference, rows_of, with_rows
from regard.look.interventions.apply import intervened, recording_changed, replacing
from regard.look.interventions.interventions import Intervention, check, check_addresses, from_json
from regard.look.trace.attention_check import AttentionCheck, array_of
from regard.look.trace.beam import BeamRecorder
from regard.look.trace.blocks import (
    address_of,
    kinds_of,
    layers_of,
    optional_of,
    recorded_of,
    similarity_weights_of,
    sublayers_of,
)
from regard.look.trace.tokens import display_piece, read_tokens, token_ids
from regard.look.trace.trace import Trace
from regard.model.classifier import Classifier
from regard.model.language_model import LanguageModel
from regard.model.taps import addresses, recording
from regard.model.transformer import Transformer
from regard.packing import Packed, pack
from regard.text.vocabularies.vocabulary import Vocabulary

if TYPE_CHECKING:
    from regard.bundle.weights import Model

Text = str | Sequence[int]
"""A text, or token ids without those that start and end it."""
CANDIDATES = 10
"""Number of candidates stored for each prediction."""
LOGITS = 4 * 1024 * 1024
"""Logits computed at a time."""


@dataclass(frozen=True, slots=True)
class _Pair:
    """The ids that the two stacks read, and those that follow."""

    inputs: tuple[int, ...] = ()
    outputs: tuple[int, ...] = ()
    targets: tuple[int, ...] = ()


@torch.inference_mode()
def look(
    model: Model,
    subwords: Vocabulary,
    source: Text,
    target: Text | None = None,
    *,
    prefix: Sequence[int] = (),
    search: Search | None = None,
    interventions: Sequence[Intervention | Mapping[str, Any]] = (),
    bos: int | None = None,
    eos: int | None = None,
    multi_label: bool = False,
    engine: TorchEngine | None = None,
    read: Callable[[str], Sequence[int]] | None = None,
) -> Trace:
    """Trace what a model does with a text.

    Args:
        model: in evaluation mode, on any device. It is not changed.
        subwords: its vocabulary.
        source: what it reads. A language model reads this and then the target; a classifier only this.
        target: the output, whole or in part, as a text or as token ids, such as those of a node of a beam
            tree. Default: an encoder-decoder model searches for one. Of a classifier, the number of a label;
            default: the most likely.
        prefix: token ids with which the output of a search must begin.
        search: its options.
        interventions: changes inside the model, in the search too; also as plain values, as in JSON.
        bos: the token that starts an output; default: the vocabulary's.
        eos: the token that ends a text; default: the vocabulary's.
        multi_label: whether a classifier may give several labels, each decided independently.
        engine: an engine that runs this very model, to save the time of making one.
        read: the token ids of a text that an intervention refers to; default: those of the vocabulary.

    Raises:
        RequestError: model, vocabulary, texts and interventions do not fit each other.
    """
    _check_model(model, subwords, target)
    bos, eos = subwords.bos_id if bos is None else bos, subwords.eos_id if eos is None else eos
    interventions = resolved(model, subwords, from_json(interventions), read=read, bos=bos, eos=eos)
    ids, answer = _ids(subwords, source), None if target is None else _target_ids(model, subwords, target)
    observer = BeamRecorder(lambda tokens: [*map(display_piece, subwords.pieces(tokens))])
    if isinstance(model, Transformer) and answer is None:
        check(interventions, model.config, len(ids) + 1, None)
        request = Request(ids=ids, prefix=tuple(prefix))
        changed = intervened(model, interventions)
        assert isinstance(changed, Transformer), "an intervention keeps the architecture"
        if engine is None or changed is not model:
            engine = TorchEngine([changed], bos=bos, eos=eos, device=_device(changed))
        answer = _searched(engine, request, search or Search(), interventions, observer)
    elif prefix:
        raise RequestError("`prefix` needs a search, and here the output is given", code="no_search")
    elif answer and answer[-1] == eos and not isinstance(model, Classifier):  # a hypothesis that ended
        answer = answer[:-1]
    pair = _pair(model, subwords, ids, answer or (), bos, eos)
    length, most = max(len(pair.inputs), len(pair.outputs)), model.config.max_length
    if model.config.positions == "learned" and length > most:
        what = f"the text has {length:,} tokens, the model learned {most:,} positions: shorten it"
        raise RequestError(what, code="too_long")
    check(interventions, model.config, len(pair.inputs), len(pair.outputs))
    trace = _traced(model, subwords, pair, interventions, multi_label=multi_label)
    return replace(trace, beam=tree, engine=TorchEngine.name) if (tree := observer.tree()) else trace


@torch.inference_mode()
def resolved(
    model: Model,
    subwords: Vocabulary,
    interventions: Sequence[Intervention],
    *,
    read: Callable[[str], Sequence[int]] | None = None,
    bos: int | None = None,
    eos: int | None = None,
) -> tuple[Intervention, ...]:
    """Interventions with the values that their texts stand for, computed by the unchanged model.

    Raises:
        RequestError: an address is unknown, a text is too long or has no such positions; the message names
            the place.
    """
    if not any(isinstance(each, Activation) for each in interventions):
        return tuple(interventions)
    check_addresses(interventions, addresses(model), model.config.n_heads)
    bos, eos = subwords.bos_id if bos is None else bos, subwords.eos_id if eos is None else eos
    run = partial(_run_over, model, subwords, read or partial(_ids, subwords), bos, eos)
    referring: dict[Reference, list[Activation]] = {}
    for each in interventions:
        if isinstance(each, Activation):
            for reference in each.references:
                referring.setdefault(reference, []).append(each)
    seen: dict[Reference, Mapping[str, Tensor]] = {}

    def rows(each: Activation, reference: Reference) -> np.ndarray:
        if reference not in seen:  # once, for all interventions that refer to it
            seen[reference] = run(reference, referring[reference])
        if each.at not in seen[reference]:
            raise RequestError(f"{each.at} does not run on a text alone: give values", code="not_recorded")
        return rows_of(array_of(seen[reference][each.at]), each.head)

    found: list[Intervention] = []
    for i, each in enumerate(interventions):
        if isinstance(each, Activation) and each.references:
            try:
                each = with_rows(each, [rows(each, reference) for reference in each.references])
            except RequestError as error:
                raise RequestError(f"interventions[{i}] ({each.OP}): {error}", code=error.code) from error
        found.append(each)
    return tuple(found)


def _run_over(
    model: Model,
    subwords: Vocabulary,
    read: Callable[[str], Sequence[int]],
    bos: int,
    eos: int,
    reference: Reference,
    referring: Sequence[Activation],
) -> Mapping[str, Tensor]:
    """What the model computes for a text, at the addresses of the interventions that refer to it."""
    source, target = reference
    ids = token_ids(read(source), subwords.vocab_size)
    answer = None if target is None else _target_ids(model, subwords, target)
    writes = any(each.side == "output" for each in referring)
    if isinstance(model, Transformer) and answer is None and writes:
        engine = TorchEngine([model], bos=bos, eos=eos, device=_device(model))
        ((best, *_),) = engine.decode([Request(ids=ids)], Search(beam_size=1))
        answer = best.ids
    pair = _pair(model, subwords, ids, answer or (), bos, eos)
    if max(len(pair.inputs), len(pair.outputs)) > model.config.max_length:
        most = model.config.max_length
        raise RequestError(f"a text has more than {most:,} tokens: shorten it", code="too_long")
    packs = (pack([side], _device(model)) if side else None for side in (pair.inputs, pair.outputs))
    with recording(model, keep=sorted({each.at for each in referring})) as seen:
        predicting_states(model, *packs)
    return seen


def predicting_states(model: Model, inputs: Packed | None, outputs: Packed | None) -> Tensor:
    """The states before the output layer: one per token of the outputs, or one per text for its label."""
    match model:
        case Transformer():
            assert inputs is not None
            assert outputs is not None
            return model.decode(outputs, model.encode(inputs))
        case LanguageModel():
            assert outputs is not None
            return model.decode(outputs)
        case Classifier():
            assert inputs is not None
            return model.label_head(model.encode(inputs).index_select(0, inputs.boundaries.starts_B))
        case other:
            assert_never(other)


def log_probs_of(model: Model, states_ND: Tensor, ids: Sequence[int], *, multi_label: bool = False) -> Tensor:
    """The log-probability of one token or label per state, (N,)."""
    targets = torch.tensor(ids, dtype=torch.int64, device=states_ND.device)
    parts, start = [states_ND.new_empty(0)], 0
    for logits_NV in _slices_of_logits(model, states_ND):
        ids_N = targets[start : start + len(logits_NV)]
        log_probs_NV = logsigmoid(logits_NV) if multi_label else logits_NV.log_softmax(-1)
        parts.append(log_probs_NV.gather(1, ids_N[:, None])[:, 0])
        start += len(ids_N)
    return torch.cat(parts)


def _check_model(model: Model, subwords: Vocabulary, target: Text | None) -> None:
    if model.training:
        what = "the model is in training mode, where dropout changes its results: call model.eval()"
        raise RequestError(what, code="model_in_training")
    if model.config.vocab_size != subwords.vocab_size:
        sizes = f"the model has {model.config.vocab_size} subwords, the vocabulary {subwords.vocab_size}"
        raise RequestError(f"{sizes}: they do not belong together", code="vocabulary_mismatch")
    if isinstance(model, Classifier) and target is not None:
        n_labels = model.config.n_labels
        if isinstance(target, str) or len(target) != 1 or not 0 <= target[0] < n_labels:
            what = f"the target of a classifier is one label, as [number] from 0 to {n_labels - 1}"
            raise RequestError(what, code="unknown_label")


def _ids(subwords: Vocabulary, text: Text) -> tuple[int, ...]:
    ids = subwords.encode_one(text).tolist() if isinstance(text, str) else text
    return token_ids(ids, subwords.vocab_size)


def _target_ids(model: Model, subwords: Vocabulary, target: Text) -> tuple[int, ...]:
    """The ids of a target; of a classifier, its label, which was checked."""
    if isinstance(model, Classifier):
        assert not isinstance(target, str)
        return tuple(target)
    return _ids(subwords.outputs, target)


def _searched(
    engine: TorchEngine,
    request: Request,
    search: Search,
    interventions: Sequence[Intervention],
    observer: BeamRecorder,
) -> tuple[int, ...]:
    """The best output of a search, with the interventions in place."""
    (running,) = engine.models
    with recording_changed(running, interventions):
        (found,) = engine.decode([request], search, observer)
    if not found:
        what = "with these interventions the model's numbers are not finite, so that no output can be found"
        raise RequestError(what, code="not_finite")
    return found[0].ids


def _pair(
    model: Model, subwords: Vocabulary, ids: tuple[int, ...], answer: tuple[int, ...], bos: int, eos: int
) -> _Pair:
    match model:
        case Transformer():
            return _Pair(inputs=(*ids, eos), outputs=(bos, *answer), targets=(*answer, eos))
        case LanguageModel():
            begin = (bos,) if subwords.begins_texts or not ids else ()
            read = (*begin, *ids, *answer)
            return _Pair(outputs=read, targets=read[1:])
        case Classifier():
            return _Pair(inputs=(subwords.cls_id, *ids, *subwords.closing), targets=answer)
        case other:
            assert_never(other)


def _traced(
    model: Model,
    subwords: Vocabulary,
    pair: _Pair,
    interventions: tuple[Intervention, ...],
    *,
    multi_label: bool,
) -> Trace:
    """Run the model once and record it."""
    model = intervened(model, interventions)
    device, config = _device(model), model.config
    inputs = pack([pair.inputs], device) if pair.inputs else None
    outputs = pack([pair.outputs], device) if pair.outputs else None
    # Cloned, since the model may be trained further.
    arrays = {name: array_of(weight.clone()) for name, weight in _similarity_weights(model)}
    trace = Trace(
        config=config,
        inputs=read_tokens(subwords, pair.inputs) if pair.inputs else None,
        outputs=read_tokens(subwords, pair.outputs) if pair.outputs else None,
        targets=pair.targets,
        pieces={},
        interventions=interventions,
        arrays=arrays,
        multi_label=multi_label,
    )
    check_run, changes = AttentionCheck(trace, arrays), replacing(interventions, config)

    def watch(address: str, value: Tensor) -> None:
        check_run.see(address, value)
        if changes is not None:
            changes.watch(address, value)

    kept = recorded_of(config) | optional_of(config)
    with recording(model, changes, keep=kept.__contains__, watch=watch) as seen:
        states_ND = predicting_states(model, inputs, outputs)
    if missing := sorted(recorded_of(config) - seen.keys()):
        what = f"the model does not record {missing[0]}, and a trace needs it: `tap` it, as its module does"
        raise RequestError(what, code="not_recorded")
    for address, value in seen.items():
        name = address.replace("_positions.added", "_embedding.positions")  # as files call it
        arrays[name] = array_of(value)
    predictions = _predictions(model, seen, states_ND, pair.targets, multi_label=multi_label)
    arrays |= {f"said.{name}": array_of(value) for name, value in predictions.items()}
    if config.label_head != "none":
        arrays["label_head.output"] = array_of(states_ND)
    is_label = isinstance(model, Classifier)
    targets = pair.targets or ((int(arrays["said.ids"][-1, 0, 0]),) if is_label else ())
    mentioned = np.unique([*arrays["said.ids"].flat, *(targets if is_label else ())]).tolist()
    names = [str(i) for i in mentioned] if is_label else subwords.pieces(mentioned)
    return replace(trace, targets=targets, pieces=dict(zip(mentioned, names, strict=True)))


def _similarity_weights(model: Model) -> Iterator[tuple[str, Tensor]]:
    """The weights from which a trace computes scores; a similarity that was swapped in may lack them."""
    parameters = dict(model.named_parameters())
    for kind in kinds_of(model.config):
        for layer in range(layers_of(model.config, kind)):
            names = similarity_weights_of(model.config, address_of(kind, layer))
            yield from ((name, parameters[name]) for name in names if name in parameters)


def _predictions(
    model: Model, seen: Mapping[str, Tensor], states_ND: Tensor, targets: Sequence[int], *, multi_label: bool
) -> dict[str, Tensor]:
    """The candidates of every layer in every row, with their logits and the normaliser of the softmax.

    The stream after a layer goes through the last norm, a label head and the output layer, as if no layer
    followed (the logit lens); the last layer is the model's own prediction. A classifier without a target
    gets its most likely label as the target.
    """
    states = torch.stack([*_streams(model, seen), states_ND])
    n_layers, n_rows, _ = states.shape
    best = [_likeliest(logits) for logits in _slices_of_logits(model, states.flatten(0, 1))]
    ids, logits, normaliser = (
        torch.cat(each).unflatten(0, (n_layers, n_rows)) for each in zip(*best, strict=True)
    )
    if isinstance(model, Classifier):
        targets = targets or [int(ids[-1, 0, 0])]
    target_logits = _target_logits(model, states[:, : len(targets)], targets).to(normaliser.dtype)
    log_probs = logsigmoid(target_logits) if multi_label else target_logits - normaliser[:, : len(targets)]
    return {"ids": ids, "logits": logits, "normaliser": normaliser, "log_probs": log_probs}


def _streams(model: Model, seen: Mapping[str, Tensor]) -> list[Tensor]:
    """The stream after each layer but the last, through the norm after the stack."""
    stack = model.encoder if isinstance(model, Classifier) else model.decoder
    name = "encoder" if isinstance(model, Classifier) else "decoder"
    last = len(sublayers_of(model.config, name)) - 1
    streams = [seen[f"{name}.layers.{i}.add_and_norm.{last}.output"] for i in range(len(stack.layers) - 1)]
    if isinstance(model, Classifier):
        return [model.label_head(stack.norm(each[:1])) for each in streams]
    return [stack.norm(each) for each in streams]


def _slices_of_logits(model: Model, states_ND: Tensor) -> Iterator[Tensor]:
    """The logits of all states, a limited number at a time, at least in float32."""
    rows = max(1, LOGITS // model.output_probabilities.out_features)
    for part in states_ND.split(rows):
        logits_NV = model.output_probabilities(part)
        yield logits_NV.to(torch.promote_types(logits_NV.dtype, torch.float32))


def _likeliest(logits_NV: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    best = logits_NV.topk(min(CANDIDATES, logits_NV.shape[1]), dim=-1)
    return best.indices, best.values, logits_NV.logsumexp(dim=-1)


def _target_logits(model: Model, states: Tensor, targets: Sequence[int]) -> Tensor:
    """(layers, targets): one dot product each; the softmax over everything was taken before."""
    output = model.output_probabilities
    ids = torch.tensor(targets, dtype=torch.int64, device=states.device)
    logits = (states * output.weight[ids].to(states.dtype)).sum(-1)
    if output.bias is not None:
        logits = logits + output.bias[ids].to(states.dtype)
    return logits


def _device(model: Model) -> torch.device:
    return next(model.parameters()).device
