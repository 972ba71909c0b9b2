"""The base of model families: a table of weight names, read in both directions, and the interface `Family`.

A line of the table (`Entry`) names some of our weights and some of theirs, and how to convert between them
(`Form`); mostly they are the same.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from regard.config import DecodingConfig, ModelConfig, TaskConfig
from regard.errors import BundleError
from regard.exchange.families.folder import ACTIVATIONS, ForeignFolder, ForeignSettings
from regard.exchange.generation import our_penalty
from regard.text.vocabularies.vocabulary import Vocabulary

Tensors = Sequence[Tensor]


@dataclass(frozen=True, slots=True)
class Form:
    """The conversion between our weights of an entry and theirs."""

    to_ours: Callable[[Tensors], Tensors]
    to_theirs: Callable[[Tensors], Tensors]


SAME = Form(lambda theirs: theirs, lambda ours: ours)
TRANSPOSED = Form(lambda theirs: [theirs[0].T], lambda ours: [ours[0].T])
THREE_IN_ONE = Form(lambda theirs: theirs[0].chunk(3), lambda ours: [torch.cat([*ours])])
"""W^Q, W^K and W^V concatenated."""
THREE_TRANSPOSED = Form(lambda theirs: theirs[0].T.chunk(3), lambda ours: [torch.cat([*ours]).T])
ONE_ROW = Form(lambda theirs: [theirs[0][0]], lambda ours: [ours[0][None]])
"""A vector, stored as a matrix of one row."""


@dataclass(frozen=True, slots=True)
class Entry:
    """Weights of ours, and the same weights under their names."""

    ours: tuple[str, ...]
    theirs: tuple[str, ...]
    form: Form = SAME


def entry(ours: str, theirs: str, form: Form = SAME) -> Entry:
    """The entry of one weight."""
    return Entry((ours,), (theirs,), form)


def both(ours: str, theirs: str, form: Form = SAME) -> Iterator[Entry]:
    """The entries of a weight and its bias."""
    yield entry(f"{ours}.weight", f"{theirs}.weight", form)
    yield entry(f"{ours}.bias", f"{theirs}.bias")


def to_ours(entries: Iterable[Entry], theirs: Mapping[str, Tensor], where: str) -> dict[str, Tensor]:
    """Our weights from theirs, in float32.

    Raises:
        BundleError: with every weight that is missing or unknown.
    """
    table = list(entries)
    known = {name for line in table for name in line.theirs}
    missing = [f"weight {name} is missing" for name in sorted(known - theirs.keys())]
    unknown = [f"weight {name} is unknown to regard" for name in sorted(theirs.keys() - known)]
    if missing or unknown:
        raise BundleError([*missing, *unknown], where, code="wrong_weights")
    ours: dict[str, Tensor] = {}
    for line in table:
        converted = line.form.to_ours([theirs[name].float() for name in line.theirs])
        ours |= zip(line.ours, converted, strict=True)
    return ours


def to_theirs(entries: Iterable[Entry], ours: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Their weights from ours; a bias that our model lacks is zero."""
    theirs: dict[str, Tensor] = {}
    for line in entries:
        weights = [ours[name] if name in ours else _no_bias(name, ours) for name in line.ours]
        converted = [weight.contiguous() for weight in line.form.to_theirs(weights)]
        theirs |= zip(line.theirs, converted, strict=True)
    return theirs


def _no_bias(name: str, ours: Mapping[str, Tensor]) -> Tensor:
    weight = name.removesuffix(".bias") + ".weight"
    assert name.endswith(".bias"), f"{name} is not among our weights"
    if weight in ours:
        return torch.zeros(len(ours[weight]))
    # A shared output layer has no weight under its own name.
    return torch.zeros(len(ours.get("output_embedding.weight", ours["input_embedding.weight"])))


EXPRESSIBLE: Mapping[str, Any] = {
    "norm": "layer",
    "feed_forward": tuple(dict.fromkeys(ACTIVATIONS.values())),
    "similarity": "scaled-dot",
}
"""Values of settings that all families can express."""


class Family(ABC):
    """A family of models: how settings, weights and vocabulary are imported and exported."""

    model_type: str
    """Its name in `config.json`."""
    classes: tuple[str, ...]
    """The classes of `transformers` that can be imported; the first is the one that is exported."""
    computed: re.Pattern[str] = re.compile("(?!)")
    """Names of tensors in some checkpoints that follow from the settings, and are ignored."""
    expressible: ClassVar[Mapping[str, Any]]
    """Allowed values of settings, beside `EXPRESSIBLE`: one value, or a tuple."""

    @abstractmethod
    def config(self, settings: ForeignSettings) -> ModelConfig:
        """The configuration for settings; unsupported ones are added to `settings.problems`."""

    @abstractmethod
    def entries(self, config: ModelConfig) -> Iterator[Entry]:
        """The table of weight names."""

    @abstractmethod
    def vocabulary(self, folder: ForeignFolder, config: ModelConfig) -> bytes | None:
        """The vocabulary, as a model folder holds it; None if there is none."""

    def aliases(self, config: ModelConfig) -> Mapping[str, str]:  # noqa: ARG002
        """Second names of shared weights, and their names in the table."""
        return {}

    def renamed(self, name: str) -> str:
        """A weight's name in the table; older versions of `transformers` wrote others."""
        return name

    def ours(self, folder: ForeignFolder, config: ModelConfig) -> dict[str, Tensor]:
        """Our weights from those of a folder.

        Raises:
            BundleError: some are missing or unknown.
        """
        theirs = {self.renamed(name): weight for name, weight in folder.weights().items()}
        theirs = {name: weight for name, weight in theirs.items() if not self.computed.fullmatch(name)}
        return to_ours(self.entries(config), self.tidied(theirs, folder, config), str(folder.folder))

    def tidied(
        self,
        theirs: dict[str, Tensor],
        folder: ForeignFolder,  # noqa: ARG002
        config: ModelConfig,
    ) -> dict[str, Tensor]:
        """The weights as the table names them: shared ones once, optional ones added."""
        for alias, name in self.aliases(config).items():
            if (shared := theirs.pop(alias, None)) is not None:
                theirs.setdefault(name, shared)
        return theirs

    def decoding(self, folder: ForeignFolder) -> DecodingConfig:
        """How to search for outputs, as far as the folder says."""
        settings = {**folder.settings.values, **folder.generation}
        exponent = settings.get("length_penalty")
        # The default of `transformers` is 1.
        penalty = our_penalty(1.0 if exponent is None else exponent)
        return DecodingConfig(beam_size=settings.get("num_beams") or 1, length_penalty=penalty)

    def task(self, folder: ForeignFolder) -> TaskConfig:  # noqa: ARG002
        """The task of the model."""
        return TaskConfig()

    def labels(self, folder: ForeignFolder, config: ModelConfig) -> Sequence[str]:  # noqa: ARG002
        """The labels of a classifier."""
        return ()

    # --- out -----------------------------------------------------------------------------------------------

    def inexpressible(self, config: ModelConfig) -> list[str]:
        """Every setting that the family cannot express, as sentences."""
        problems = []
        for name, allowed in {**EXPRESSIBLE, **self.expressible}.items():
            values = allowed if isinstance(allowed, tuple) else (allowed,)
            if (value := getattr(config, name)) not in values:
                known = " or ".join(map(repr, values))
                problems.append(f"model.{name} = {value!r} cannot be expressed there, only {known}")
        if not config.key_width == config.value_width == config.d_model / config.n_heads:
            widths = f"model.d_k = {config.key_width} and model.d_v = {config.value_width}"
            expected = f"d_model / n_heads = {config.d_model / config.n_heads:g}"
            problems.append(f"{widths} cannot be expressed there, only {expected}")
        return problems

    def theirs(self, weights: Mapping[str, Tensor], config: ModelConfig) -> dict[str, Tensor]:
        """Their weights from ours."""
        return to_theirs(self.entries(config), weights)

    @abstractmethod
    def settings(self, config: ModelConfig, vocabulary: Vocabulary, labels: Sequence[str]) -> dict[str, Any]:
        """The content of `config.json`."""

    @abstractmethod
    def files(self, vocabulary: Vocabulary, config: ModelConfig, task: TaskConfig) -> dict[str, bytes]:
        """The files of a tokenizer, by name.

        Raises:
            ConfigError: the family's tokenizer cannot read such a vocabulary.
        """


def hugging_face_activation(config: ModelConfig) -> str:
    """Hugging Face's name of the activation."""
    return next(name for name, ours in ACTIVATIONS.items() if ours == config.feed_forward)
