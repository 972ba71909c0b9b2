"""To start from what exists: the weights of a model folder, as far as another model has the same boxes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import nn

from regard.bundle import Bundle, load_bundle
from regard.bundle.bundle import read_labels
from regard.bundle.manifest import LABELS, SUBWORDS
from regard.config import ModelConfig, TaskConfig
from regard.engine.loading import model_folder
from regard.errors import BundleError, ConfigError
from regard.text.vocabularies import read_vocabulary

GUESSING = "gelu-norm"
OUTPUT = "output_probabilities."


@dataclass(frozen=True, eq=False)
class Start:
    """A model to start from."""

    bundle: Bundle

    @staticmethod
    def of(folder: Path | str) -> Start:
        """Read a model folder, or a run's best.

        Raises:
            BundleError: it is missing, damaged or without subwords.
        """
        bundle = load_bundle(model_folder(folder))
        if bundle.subwords is None:
            raise BundleError(f"has no {SUBWORDS}, without which nothing can be learned on", str(folder))
        return Start(bundle)

    @property
    def subwords(self) -> bytes:
        """Its vocabulary, which the new model shares."""
        assert self.bundle.subwords is not None, "Start.of refuses a folder without subwords"
        return self.bundle.subwords

    @property
    def named_labels(self) -> tuple[str, ...]:
        """The labels that it has names for; none where it guesses tokens, or labels nothing."""
        folder, n_labels = self.bundle.folder, self.bundle.config.n_labels
        return read_labels(folder, n_labels) if (folder / LABELS).exists() else ()

    def does(self, task: TaskConfig) -> bool:
        """Whether it does this very task already, in all its directions."""
        own = self.bundle.task
        return own.name == task.name and {*task.directions} <= {*own.directions}

    def check_tags(self, languages: Sequence[str]) -> None:
        """Raise unless its subwords can say which language is wanted.

        Raises:
            ConfigError: they have no tag for a language.
        """
        known = read_vocabulary(self.subwords).languages
        if missing := [language for language in languages if language not in known]:
            told = (
                f"its subwords have no tag for {' and '.join(missing)}, so it cannot be told what is wanted"
            )
            advice = "train one way, without a tag, or start from one that has them"
            raise ConfigError(f"{self.bundle.folder}: {told}; {advice}")

    def shape(self, model: ModelConfig) -> ModelConfig:
        """The shape of the model that is to be trained: this one's, but for what is not a matter of weights.

        Raises:
            ConfigError: it has no such stack.
        """
        own, wanted = self.bundle.config, model.architecture
        if own.architecture not in (wanted, "encoder-decoder"):
            told = f"is a model of the {own.architecture} alone, and {wanted} is to be trained"
            raise ConfigError(f"{self.bundle.folder}: {told}")
        # What stands before guesses of words is not for other labels, which get a pooler, learned anew.
        head = "tanh" if own.label_head == GUESSING else own.label_head
        return replace(
            own, architecture=wanted, n_labels=model.n_labels, dropout=model.dropout, label_head=head
        )

    @torch.no_grad()
    def give(self, model: nn.Module, labels: Sequence[str] = ()) -> None:
        """Overwrite the weights of a model with those that it has in common with this one.

        An output layer is for one list of labels: where that is another, it is learned anew.
        """
        # Every name of a shared weight: the other model may know it by its second.
        own = dict(self.bundle.model.named_parameters(remove_duplicate=False))
        if self.bundle.config.label_head == GUESSING:
            own = {name: weight for name, weight in own.items() if not name.startswith("label_head.")}
        if labels and read_labels(self.bundle.folder, self.bundle.config.n_labels) != tuple(labels):
            own = {name: weight for name, weight in own.items() if not name.startswith(OUTPUT)}
        for name, weight in model.named_parameters():
            if name in own and own[name].shape == weight.shape:
                weight.copy_(own[name])
