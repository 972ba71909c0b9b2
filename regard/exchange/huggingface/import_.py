"""Models of Hugging Face's `transformers` as model folders of ours. That library is not needed for it."""

from __future__ import annotations

from pathlib import Path

from regard.bundle.bundle import save_bundle
from regard.bundle.weights import empty_model, load_tensors, weight_problems
from regard.config import ModelConfig
from regard.errors import BundleError, ConfigError
from regard.exchange.families.bart import Bart
from regard.exchange.families.bert import Bert
from regard.exchange.families.family import Family
from regard.exchange.families.gpt2 import Gpt2
from regard.exchange.families.marian import Marian
from regard.exchange.huggingface.folder import ForeignFolder

FAMILIES: tuple[Family, ...] = (Marian(), Bert(), Gpt2(), Bart())


def import_model(folder: Path | str, out: Path | str) -> Path:
    """Take a model in: write a folder as Hugging Face keeps it as a model folder of ours.

    Its weights are read from safetensors, or from a pickle in which nothing but weights is opened. The result
    gives what `transformers` gives, is run without that library, and can be trained further.

    Args:
        folder: with `config.json`, weights, and the files of a tokenizer.
        out: the model folder to write; it must be new.

    Raises:
        BundleError: files or weights are missing or damaged, or something is in the way of the new folder.
        ConfigError: with every setting that regard does not have.
    """
    foreign = ForeignFolder(folder)
    family = _family(foreign)
    config = _config(family, foreign)
    model, weights = empty_model(config), family.ours(foreign, config)
    if problems := weight_problems(model, weights):
        raise BundleError(problems, str(foreign.folder))
    return save_bundle(
        out,
        load_tensors(model, weights, "cpu"),
        subwords=family.vocabulary(foreign, config),
        labels=family.labels(foreign, config),
        decoding=family.decoding(foreign),
        task=family.task(foreign),
        notes=f"Taken from {foreign.folder.name}, a model of Hugging Face's class {_class(foreign)}.",
    )


def _config(family: Family, foreign: ForeignFolder) -> ModelConfig:
    settings = foreign.settings
    try:
        config = family.config(settings)
    except ConfigError as error:  # of numbers that contradict each other, or stand in for what is missing
        raise ConfigError(settings.problems or error.problems, str(foreign.folder)) from error
    if settings.problems:
        raise ConfigError(settings.problems, str(foreign.folder))
    return config


def _class(foreign: ForeignFolder) -> str:
    named = foreign.settings.get("architectures") or ["nothing"]
    return str(named[0])


def _family(foreign: ForeignFolder) -> Family:
    wanted = _class(foreign)
    for family in FAMILIES:
        if wanted in family.classes:
            return family
    known = ", ".join(name for family in FAMILIES for name in family.classes)
    raise ConfigError(f"architectures = {wanted} is not supported, only {known} are", str(foreign.folder))
