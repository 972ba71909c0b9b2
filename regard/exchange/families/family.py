"""What must be known of a family of models to take them in, and to hand ours out as one of them."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from torch import Tensor

from regard.config import DecodingConfig, ModelConfig, TaskConfig
from regard.exchange.families.naming import Entry, to_ours, to_theirs
from regard.exchange.huggingface.folder import ACTIVATIONS, ForeignFolder, Settings
from regard.text.vocabularies.vocabulary import Vocabulary


class Family(ABC):
    """A family of models: settings, weights and vocabulary, in and out."""

    model_type: str
    """What `config.json` calls it."""
    classes: tuple[str, ...]
    """The classes of `transformers` that regard can take in; the first is the usual one."""
    computed: re.Pattern[str] = re.compile("(?!)")
    """Names of what some checkpoints hold though it follows from the settings."""

    @abstractmethod
    def config(self, settings: Settings) -> ModelConfig:
        """The shape that settings describe; what cannot be had is added to their problems."""

    @abstractmethod
    def entries(self, config: ModelConfig) -> Iterator[Entry]:
        """The table of names."""

    @abstractmethod
    def vocabulary(self, folder: ForeignFolder, config: ModelConfig) -> bytes | None:
        """The vocabulary, as a model folder holds it; None where there is none."""

    def aliases(self, config: ModelConfig) -> Mapping[str, str]:  # noqa: ARG002
        """Second names of weights that are shared, with the name in the table."""
        return {}

    def renamed(self, name: str) -> str:
        """A weight's name as the table has it, whichever version wrote it."""
        return name

    def ours(self, folder: ForeignFolder, config: ModelConfig) -> dict[str, Tensor]:
        """Our weights from those of a folder.

        Raises:
            BundleError: some are missing or left over.
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
        """The weights that the table names: what is shared, once; what may be left out, put in."""
        for alias, name in self.aliases(config).items():
            if (shared := theirs.pop(alias, None)) is not None:
                theirs.setdefault(name, shared)
        return theirs

    def decoding(self, folder: ForeignFolder) -> DecodingConfig:
        """How outputs are searched for, as far as that is told."""
        beam_size = folder.generation.get("num_beams") or folder.settings.get("num_beams") or 1
        return DecodingConfig(beam_size=beam_size)

    def task(self, folder: ForeignFolder) -> TaskConfig:  # noqa: ARG002
        """What the model is for."""
        return TaskConfig()

    def labels(self, folder: ForeignFolder, config: ModelConfig) -> Sequence[str]:  # noqa: ARG002
        """What a classifier tells apart."""
        return ()

    # --- out -----------------------------------------------------------------------------------------------

    @abstractmethod
    def inexpressible(self, config: ModelConfig) -> list[str]:
        """Every setting that the family has nothing for, as sentences."""

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
    """Hugging Face's name for the activation."""
    return next(name for name, ours in ACTIVATIONS.items() if ours == config.feed_forward)


def only_these(config: ModelConfig, **expressible: Any) -> list[str]:
    """Settings that have other values than a family knows, as sentences."""
    found = []
    for name, known in expressible.items():
        values = known if isinstance(known, tuple) else (known,)
        if (value := getattr(config, name)) not in values:
            found.append(
                f"model.{name} = {value!r} has no place there, only {' or '.join(map(repr, values))}"
            )
    return found


def one_width(config: ModelConfig) -> list[str]:
    """What stands against heads of d_model / n_heads, the only ones that Hugging Face's models have."""
    if config.key_width == config.value_width == config.d_model / config.n_heads:
        return []
    widths = f"model.d_k = {config.key_width} and model.d_v = {config.value_width}"
    return [f"{widths} have no place there, only d_model / n_heads = {config.d_model / config.n_heads:g}"]
