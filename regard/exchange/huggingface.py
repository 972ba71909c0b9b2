"""Import models from the folders of Hugging Face's `transformers`, and export ours to such folders.

An import does not need that library. An export is run by it once, to check what was written.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, assert_never

import numpy as np

from regard.bundle.bundle import Bundle, describe_bundle, load_bundle, read_labels, save_bundle
from regard.bundle.manifest import CONFIG, SUBWORDS
from regard.bundle.weights import empty_model, load_tensors, weight_problems
from regard.bundle.writing import check_replaceable, write_folder
from regard.config import ModelConfig, RunConfig, read_config
from regard.errors import BundleError, ConfigError
from regard.exchange.families.bart import Bart
from regard.exchange.families.bert import SEVERAL_LABELS, Bert
from regard.exchange.families.family import Family
from regard.exchange.families.folder import GENERATION, SAFE, SETTINGS, ForeignFolder
from regard.exchange.families.gpt2 import Gpt2
from regard.exchange.families.marian import FORBIDDEN, Marian
from regard.exchange.families.pegasus import Pegasus
from regard.exchange.generation import Candidates, generation_settings
from regard.exchange.outputs import (
    Original,
    agreement,
    expected_outputs,
    quiet_transformers,
)
from regard.exchange.sample_texts import sample_texts
from regard.exchange.verification import ProbeSequences, Verified, compare, draw_probe, log_probs
from regard.text.vocabularies import read_vocabulary
from regard.text.vocabularies.vocabulary import Vocabulary

if TYPE_CHECKING:
    from torch import Tensor

    from regard.bundle.weights import Model

IMPORTED: tuple[Family, ...] = (Marian(), Pegasus(), Bert(), Gpt2(), Bart())
RECORD = "regard.toml"
"""The configuration of the model folder that an exported folder was made from; `transformers` ignores it."""
N_TEXTS = 100
"""Texts with which an exported model is compared with the original."""


# --- in ---------------------------------------------------------------------------------------------------


def import_model(folder: Path | str, out: Path | str) -> Path:
    """Convert a Hugging Face folder to a model folder; returns its path.

    Weights are read from safetensors, or from a pickle that may contain nothing but weights. The model gives
    the same results as in `transformers`, runs without that library, and can be trained further.

    Args:
        folder: has `config.json`, weights, and the files of a tokenizer.
        out: the model folder to write; it must be new.

    Raises:
        BundleError: files or weights are missing or damaged, or `out` exists.
        ConfigError: with every setting that regard does not support.
    """
    foreign = ForeignFolder(folder)
    family = _family_of_folder(foreign)
    config = _config(family, foreign)
    weights = family.ours(foreign, config)
    if (record := _record(foreign)) is not None:
        config, weights = _without_zero_biases(config, record.model, weights)
    model = empty_model(config)
    if problems := weight_problems(model, weights):
        raise BundleError(problems, str(foreign.folder), code="wrong_weights")
    return save_bundle(
        out,
        load_tensors(model, weights, "cpu"),
        subwords=family.vocabulary(foreign, config),
        labels=family.labels(foreign, config),
        decoding=family.decoding(foreign) if record is None else record.decoding,
        task=family.task(foreign) if record is None else record.task,
        notes=f"Taken from {foreign.folder.name}, a model of Hugging Face's class {_class_name(foreign)}.",
    )


def _config(family: Family, foreign: ForeignFolder) -> ModelConfig:
    settings, where = foreign.settings, str(foreign.folder)
    try:
        config = family.config(settings)
    except ConfigError as error:  # the numbers contradict each other, or replace a missing setting
        raise ConfigError(settings.problems or error.problems, where, code="unsupported_setting") from error
    if settings.problems:
        raise ConfigError(settings.problems, where, code="unsupported_setting")
    return config


def _record(foreign: ForeignFolder) -> RunConfig | None:
    """The configuration that regard recorded when it exported the folder; None for folders of others.

    Raises:
        ConfigError: the record is damaged.
    """
    return read_config(file=foreign.folder / RECORD) if foreign.has(RECORD) else None


def _without_zero_biases(
    config: ModelConfig, recorded: ModelConfig, weights: dict[str, Tensor]
) -> tuple[ModelConfig, dict[str, Tensor]]:
    """The model without the biases that its export added, if they are still zero."""
    ours = replace(config, attention_bias=recorded.attention_bias, output_bias=recorded.output_bias)
    if ours != recorded:
        return config, weights
    names = {name for name, _ in empty_model(ours).named_parameters()}
    if any(weight.any() for name, weight in weights.items() if name not in names):
        return config, weights
    return ours, {name: weight for name, weight in weights.items() if name in names}


def _class_name(foreign: ForeignFolder) -> str:
    names = foreign.settings.get("architectures") or ["nothing"]
    return str(names[0])


def _family_of_folder(foreign: ForeignFolder) -> Family:
    name = _class_name(foreign)
    for family in IMPORTED:
        if name in family.classes:
            return family
    known = ", ".join(name for family in IMPORTED for name in family.classes)
    problem = f"architectures = {name} is not supported; supported are {known}"
    raise ConfigError(problem, str(foreign.folder), code="unsupported_setting")


# --- out --------------------------------------------------------------------------------------------------


def write_huggingface(
    model: Path,
    out: Path,
    *,
    original: Original | None = None,
    n_texts: int = N_TEXTS,
    texts: Path | None = None,
) -> Verified:
    """Write a model folder as a Hugging Face folder, and compare it with the original in `transformers`.

    Args:
        model: the model folder.
        out: the folder to write; it must be new.
        original: the loaded model, with torch on a CPU in float32. With it, the outputs for texts are
            compared, and the exported length penalty is fitted to them; without it, log-probabilities only.
        n_texts: the most texts.
        texts: a file of texts, one per line; by default see `sample_texts`.

    Raises:
        BundleError: the model folder is damaged or has no subwords; `out` exists; or the exported model
            computes something else.
        ConfigError: with every setting that the family cannot express; or `transformers` is not installed.
        RequestError: `texts` cannot be read.
    """
    transformers = _import_transformers()
    bundle = load_bundle(model)
    family = _family_of_config(bundle.config)
    vocabulary = None if bundle.subwords is None else read_vocabulary(bundle.subwords)
    if problems := [*family.inexpressible(bundle.config), *_unreadable(family, vocabulary, bundle)]:
        raise ConfigError(problems, f"{model}, for {family.classes[0]}", code="inexpressible_setting")
    if vocabulary is None or bundle.subwords is None:
        raise BundleError(f"has no {SUBWORDS}, which the tokenizer needs", str(model), code="missing_file")
    out = out.resolve()
    check_replaceable(out, overwrite=False)
    described = describe_bundle(model)
    samples = sample_texts(described, bundle.subwords, n_texts, texts)
    expected = expected_outputs(original, described, samples) if original is not None else []
    files = _files(bundle, family, vocabulary, [each.candidates for each in expected])
    write_folder(out, files, overwrite=False)
    with quiet_transformers():
        verified = _verified(getattr(transformers, family.classes[0]), out, bundle.model, vocabulary)
        if original is None:
            return verified
        return replace(
            verified, agreement=agreement(out, original, described, vocabulary, expected, samples.origin)
        )


def _verified(kind: Any, out: Path, model: Model, vocabulary: Vocabulary) -> Verified:
    """The comparison of the log-probabilities of a written model with those of the original."""
    probe = draw_probe(model.config)
    bos, eos = vocabulary.bos_id, vocabulary.eos_id
    ours = log_probs(model, probe, bos=bos, eos=eos)
    theirs = [*_their_log_probs(kind, out, probe, bos=bos, eos=eos)]
    return compare(f"transformers ({kind.__name__})", probe, ours, theirs, exact=True)


def _unreadable(family: Family, vocabulary: Vocabulary | None, bundle: Bundle) -> list[str]:
    """Why the family's tokenizer cannot read the vocabulary, if it cannot."""
    try:
        if vocabulary is not None:
            family.files(vocabulary, bundle.config, bundle.task)
    except ConfigError as error:
        return list(error.problems)
    return []


def _family_of_config(config: ModelConfig) -> Family:
    """The family that is closest to a configuration."""
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


def _import_transformers() -> Any:
    try:
        import transformers
    except ImportError as error:
        problem = "the export is checked with transformers, which is not installed"
        raise ConfigError(f"{problem}: pip install 'regard[exchange]'", code="missing_library") from error
    return transformers


def _files(
    bundle: Bundle, family: Family, vocabulary: Vocabulary, outputs: Sequence[Candidates]
) -> dict[str, bytes]:
    """The files of the folder by name; see `generation_settings` for `outputs`."""
    from safetensors.torch import save

    weights = {name: weight.detach().float() for name, weight in bundle.model.named_parameters()}
    labels = read_labels(bundle.folder, bundle.config.n_labels) if bundle.config.n_labels else ()
    settings = family.settings(bundle.config, vocabulary, labels)
    if labels and bundle.task.label_separator is not None:
        settings["problem_type"] = SEVERAL_LABELS
    bias = weights.get("output_probabilities.bias")
    forbidden = [] if bias is None else (bias <= FORBIDDEN).nonzero()[:, 0].tolist()
    generation = generation_settings(
        settings, bundle.config, bundle.decoding, forbidden=forbidden, outputs=outputs
    )
    return {
        SETTINGS: json.dumps(settings | {"dtype": "float32"}, indent=2).encode(),
        **({GENERATION: json.dumps(generation, indent=2).encode()} if generation else {}),
        RECORD: (bundle.folder / CONFIG).read_bytes(),
        SAFE: save(family.theirs(weights, bundle.config), metadata={"format": "pt"}),
        **family.files(vocabulary, bundle.config, bundle.task),
    }


def _their_log_probs(
    kind: Any, folder: Path, probe: ProbeSequences, *, bos: int, eos: int
) -> Iterable[np.ndarray]:
    """The log-probabilities of `transformers`, sequence by sequence."""
    import torch

    model = kind.from_pretrained(folder, local_files_only=True).eval()
    with torch.inference_mode():
        for i in range(max(len(probe.inputs), len(probe.outputs))):
            read = {name: torch.tensor([ids]) for name, ids in _arguments(probe, i, bos=bos, eos=eos).items()}
            # With a mask, `transformers` does not guess the padding from the ids.
            logits = model(**read, attention_mask=torch.ones_like(read["input_ids"])).logits
            yield logits.float().log_softmax(-1).reshape(-1, logits.shape[-1]).numpy()


def _arguments(probe: ProbeSequences, i: int, *, bos: int, eos: int) -> dict[str, list[int]]:
    """Sequence i of a probe, by the argument names of `transformers`."""
    if not probe.outputs:
        return {"input_ids": [*probe.inputs[i]]}
    outputs = [bos, *probe.outputs[i]]
    if not probe.inputs:
        return {"input_ids": outputs}
    return {"input_ids": [*probe.inputs[i], eos], "decoder_input_ids": outputs}
