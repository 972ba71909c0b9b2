"""To look: find an output as fast as usual, then read the pair once more with everything named."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, assert_never

import numpy as np
import torch
from torch import Tensor

from regard.config import ModelConfig
from regard.engine.engines.protocol import Request, Search
from regard.engine.engines.torch_engine import TorchEngine
from regard.errors import RequestError
from regard.look.interventions.apply import intervened, replacing
from regard.look.interventions.interventions import Intervention, check
from regard.look.search.recording import BeamRecording
from regard.look.trace.contents import recorded_of, similarity_weights_of
from regard.look.trace.predictions import said
from regard.look.trace.tokens import read_tokens, shown, token_ids
from regard.look.trace.trace import Trace
from regard.model.classifier import Classifier
from regard.model.language_model import LanguageModel
from regard.model.taps import recording
from regard.model.transformer import Transformer
from regard.packing import Packed, pack
from regard.text.vocabularies.vocabulary import Vocabulary

if TYPE_CHECKING:
    from regard.bundle.weights import Model

Text = str | Sequence[int]
"""A text, or token ids without those that start and end it."""


@dataclass(frozen=True, slots=True)
class Read:
    """The ids that the two stacks read, and those that came next."""

    inputs: tuple[int, ...] = ()
    outputs: tuple[int, ...] = ()
    wanted: tuple[int, ...] = ()


@torch.inference_mode()
def look(
    model: Model,
    subwords: Vocabulary,
    source: Text,
    target: Text | None = None,
    *,
    prefix: Sequence[int] = (),
    search: Search | None = None,
    interventions: Sequence[Intervention] = (),
    bos: int | None = None,
    eos: int | None = None,
    several: bool = False,
    engine: TorchEngine | None = None,
) -> Trace:
    """Trace what a model does with a text.

    Args:
        model: out of training, on any device. It is not changed.
        subwords: its vocabulary.
        source: what it reads. The decoder alone reads this and then the target; the encoder alone, only this.
        target: what it is to have written, whole or in part, as a text or as token ids, such as those of a
            node of a beam tree; if an encoder-decoder model is given none, it is searched for. Of the encoder
            alone, the number of a label; by default the likeliest.
        prefix: token ids that an output which is searched for must begin with.
        search: how; by default as `Search` has it.
        interventions: what to change inside of the model, in the search too.
        bos: the token that starts an output; by default the vocabulary's.
        eos: the token that ends a text; by default the vocabulary's.
        several: whether a classifier may give a text several labels, each decided on by itself.
        engine: runs this very model, with its weights laid out already; by default one is made to search.

    Raises:
        RequestError: model, vocabulary, texts and interventions do not fit each other.
    """
    _check_model(model, subwords, target)
    bos, eos = subwords.bos_id if bos is None else bos, subwords.eos_id if eos is None else eos
    interventions = tuple(interventions)
    ids, answer = _ids(subwords, source), None if target is None else _wanted(model, subwords, target)
    observer = BeamRecording(lambda tokens: [*map(shown, subwords.pieces(tokens))])
    if isinstance(model, Transformer) and answer is None:
        check(interventions, model.config, len(ids) + 1, None)
        request = Request(ids=ids, prefix=tuple(prefix))
        watched = _translator(intervened(model, interventions))
        if engine is None or watched is not model:
            engine = TorchEngine([watched], bos=bos, eos=eos, device=_device(watched))
        answer = _found(engine, request, search or Search(), interventions, observer)
    elif prefix:
        raise RequestError("`prefix` is for a search, and here there is nothing to search for")
    elif answer and answer[-1] == eos and not isinstance(model, Classifier):  # a hypothesis that ended
        answer = answer[:-1]
    read = _read(model, subwords, ids, answer or (), bos, eos)
    _check_length(model.config, max(len(read.inputs), len(read.outputs)))
    check(interventions, model.config, len(read.inputs), len(read.outputs))
    trace = _traced(model, subwords, read, interventions, several=several)
    return replace(trace, beam=tree, engine=TorchEngine.name) if (tree := observer.tree()) else trace


def predicting_states(model: Model, inputs: Packed | None, outputs: Packed | None) -> Tensor:
    """The states behind the output layer: one for each token of the outputs, or one for each text's label."""
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


def _check_model(model: Model, subwords: Vocabulary, target: Text | None) -> None:
    if model.training:
        raise RequestError("the model is in training, where dropout blurs what it does: call model.eval()")
    if model.config.vocab_size != subwords.vocab_size:
        sizes = f"{model.config.vocab_size} subwords in the model, {subwords.vocab_size} in the vocabulary"
        raise RequestError(f"{sizes}: they do not belong together")
    if isinstance(model, Classifier) and target is not None:
        _check_label(model.config.n_labels, target)


def _check_label(n_labels: int, target: Text) -> None:
    if isinstance(target, str) or len(target) != 1 or not 0 <= target[0] < n_labels:
        raise RequestError(f"the target of the encoder alone is one label, from 0 to {n_labels - 1}")


def _check_length(config: ModelConfig, length: int) -> None:
    if config.positions == "learned" and length > config.max_length:
        raise RequestError(f"{length:,} tokens, and the model learned {config.max_length:,} positions")


def _ids(subwords: Vocabulary, text: Text) -> tuple[int, ...]:
    return token_ids(
        subwords.encode_one(text).tolist() if isinstance(text, str) else text, subwords.vocab_size
    )


def _wanted(model: Model, subwords: Vocabulary, target: Text) -> tuple[int, ...]:
    """The ids of a target; of a classifier, the label, which was checked."""
    if isinstance(model, Classifier):
        assert not isinstance(target, str)
        return tuple(target)
    return _ids(subwords.outputs, target)


def _translator(model: Model) -> Transformer:
    assert isinstance(model, Transformer), "an intervention keeps the architecture"
    return model


def _found(
    engine: TorchEngine,
    request: Request,
    search: Search,
    interventions: Sequence[Intervention],
    observer: BeamRecording,
) -> tuple[int, ...]:
    """The best output of a search, by the model as it is intervened in."""
    (running,) = engine.models
    change = replacing(interventions, running.config)
    with nullcontext() if change is None else recording(running, change, keep=lambda _: False):
        ((best, *_),) = engine.decode([request], search, observer)
    return best.ids


def _read(
    model: Model, subwords: Vocabulary, ids: tuple[int, ...], answer: tuple[int, ...], bos: int, eos: int
) -> Read:
    match model:
        case Transformer():
            return Read(inputs=(*ids, eos), outputs=(bos, *answer), wanted=(*answer, eos))
        case LanguageModel():
            begin = (bos,) if subwords.begins_texts or not ids else ()
            read = (*begin, *ids, *answer)
            return Read(outputs=read, wanted=read[1:])
        case Classifier():
            return Read(inputs=(subwords.cls_id, *ids, *subwords.closing), wanted=answer)
        case other:
            assert_never(other)


def _traced(
    model: Model, subwords: Vocabulary, read: Read, interventions: tuple[Intervention, ...], *, several: bool
) -> Trace:
    """One pass over what was read, recorded."""
    model = intervened(model, interventions)
    device, config = _device(model), model.config
    inputs = pack([read.inputs], device) if read.inputs else None
    outputs = pack([read.outputs], device) if read.outputs else None
    with recording(model, replacing(interventions, config), keep=recorded_of(config).__contains__) as seen:
        states_ND = predicting_states(model, inputs, outputs)
    arrays = {address: _array(value) for address, value in seen.items()}
    arrays |= _positions(model, inputs, "input") | _positions(model, outputs, "output")
    # Copied: the model may learn on.
    arrays |= {name: _array(model.get_parameter(name).clone()) for name in similarity_weights_of(config)}
    candidates = said(model, seen, states_ND, read.wanted, several=several)
    arrays |= {f"said.{name}": _array(value) for name, value in candidates.items()}
    is_label = isinstance(model, Classifier)
    wanted = read.wanted or ((int(arrays["said.ids"][-1, 0, 0]),) if is_label else ())
    mentioned = np.unique([*arrays["said.ids"].flat, *(wanted if is_label else ())]).tolist()
    names = [str(i) for i in mentioned] if is_label else subwords.pieces(mentioned)
    return Trace(
        config=config,
        inputs=read_tokens(subwords, read.inputs) if read.inputs else None,
        outputs=read_tokens(subwords, read.outputs) if read.outputs else None,
        wanted=wanted,
        pieces=dict(zip(mentioned, names, strict=True)),
        interventions=interventions,
        arrays=arrays,
        several=several,
    )


def _positions(model: Model, tokens: Packed | None, side: str) -> dict[str, np.ndarray]:
    """What is added to the embeddings below a stack, where something is."""
    if tokens is None or (positions := getattr(model, f"{side}_positions")) is None:
        return {}
    return {f"{side}_embedding.positions": _array(positions(tokens.boundaries))}


def _array(value: Tensor) -> np.ndarray:
    """On the host, in one piece, and in a dtype that numpy knows."""
    value = value.detach().cpu()
    if value.dtype in (torch.bfloat16, torch.float16):
        value = value.float()
    array: np.ndarray = value.numpy()
    return np.ascontiguousarray(array)


def _device(model: Model) -> torch.device:
    return next(model.parameters()).device
