"""A model folder as Hugging Face keeps models, run by `transformers` before anybody relies on it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, assert_never

import numpy as np

from regard.bundle.bundle import Bundle, load_bundle, read_labels
from regard.bundle.manifest import SUBWORDS
from regard.bundle.writing import write_folder
from regard.config import ModelConfig
from regard.errors import BundleError, ConfigError
from regard.exchange.families.bart import Bart
from regard.exchange.families.bert import SEVERAL_LABELS, Bert
from regard.exchange.families.family import Family
from regard.exchange.families.gpt2 import Gpt2
from regard.exchange.families.marian import Marian, Pegasus
from regard.exchange.huggingface.folder import SAFE, SETTINGS
from regard.exchange.verification import Probe, Verified, compared, log_probs, probe
from regard.text.vocabularies import read_vocabulary
from regard.text.vocabularies.vocabulary import Vocabulary


def write_huggingface(model: Path, out: Path) -> Verified:
    """Write a model folder as a Hugging Face folder, and have `transformers` run it.

    Raises:
        BundleError: the model folder is damaged or has no subwords; something is in the way of the new one;
            or the new one computes something else.
        ConfigError: with every setting that the family has no place for; or `transformers` is not installed.
    """
    transformers = _transformers()
    bundle = load_bundle(model)
    family = _family(bundle.config)
    vocabulary = None if bundle.subwords is None else read_vocabulary(bundle.subwords)
    if problems := [*family.inexpressible(bundle.config), *_unreadable(family, vocabulary, bundle)]:
        raise ConfigError(problems, f"{model}, for {family.classes[0]}")
    if vocabulary is None:
        raise BundleError(f"has no {SUBWORDS}, without which nothing can be read", str(model))
    out = out.resolve()
    write_folder(out, _files(bundle, family, vocabulary), overwrite=False)
    given = probe(bundle.config)
    bos, eos = vocabulary.bos_id, vocabulary.eos_id
    ours = log_probs(bundle.model, given, bos=bos, eos=eos)
    theirs = [*_theirs(getattr(transformers, family.classes[0]), out, given, bos=bos, eos=eos)]
    return compared(f"transformers ({family.classes[0]})", given, ours, theirs, exact=True)


def _unreadable(family: Family, vocabulary: Vocabulary | None, bundle: Bundle) -> list[str]:
    """Why the family's tokenizer cannot read the vocabulary: no settings would help."""
    try:
        if vocabulary is not None:
            family.files(vocabulary, bundle.config, bundle.task)
    except ConfigError as error:
        return list(error.problems)
    return []


def _family(config: ModelConfig) -> Family:
    """The family that comes nearest."""
    match config.architecture:
        case "encoder":
            return Bert()
        case "decoder":
            return Gpt2()
        case "encoder-decoder" if config.embedding_norm:
            return Bart()
        case "encoder-decoder":
            return Pegasus() if config.norm_position == "pre" else Marian()
        case other:
            assert_never(other)


def _transformers() -> Any:
    try:
        import transformers
    except ImportError as error:
        missing = "what is written is run by transformers, which is not installed"
        raise ConfigError(f"{missing}: pip install 'regard[exchange]'") from error
    return transformers


def _files(bundle: Bundle, family: Family, vocabulary: Vocabulary) -> dict[str, bytes]:
    from safetensors.torch import save

    weights = {name: each.detach().float() for name, each in bundle.model.named_parameters()}
    labels = read_labels(bundle.folder, bundle.config.n_labels) if bundle.config.n_labels else ()
    settings = family.settings(bundle.config, vocabulary, labels)
    if labels and bundle.task.label_separator is not None:
        settings["problem_type"] = SEVERAL_LABELS
    return {
        SETTINGS: json.dumps(settings | {"dtype": "float32"}, indent=2).encode(),
        SAFE: save(family.theirs(weights, bundle.config), metadata={"format": "pt"}),
        **family.files(vocabulary, bundle.config, bundle.task),
    }


def _quietly(load: Callable[[], Any]) -> Any:
    """Without bars of progress, which `transformers` draws unless told otherwise."""
    from transformers import logging

    drawn = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        return load()
    finally:
        if drawn:
            logging.enable_progress_bar()


def _theirs(kind: Any, folder: Path, given: Probe, *, bos: int, eos: int) -> Iterable[np.ndarray]:
    """What `transformers` says of a probe, sequence by sequence."""
    import torch

    model = _quietly(lambda: kind.from_pretrained(folder, local_files_only=True).eval())
    with torch.inference_mode():
        for i in range(max(len(given.inputs), len(given.outputs))):
            read = {name: torch.tensor([ids]) for name, ids in _read(given, i, bos=bos, eos=eos).items()}
            # Which tokens are padding is not to be guessed from their ids.
            logits = model(**read, attention_mask=torch.ones_like(read["input_ids"])).logits
            yield logits.float().log_softmax(-1).reshape(-1, logits.shape[-1]).numpy()


def _read(given: Probe, i: int, *, bos: int, eos: int) -> dict[str, list[int]]:
    """One sequence of a probe, or a pair, under the names of arguments there."""
    if not given.outputs:
        return {"input_ids": [*given.inputs[i]]}
    outputs = [bos, *given.outputs[i]]
    if not given.inputs:
        return {"input_ids": outputs}
    return {"input_ids": [*given.inputs[i], eos], "decoder_input_ids": outputs}
