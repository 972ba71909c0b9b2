"""Starting from an existing model: its weights, as far as the new model has the same boxes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import nn

from regard.bundle import Bundle, load_bundle
from regard.bundle.bundle import read_labels
from regard.bundle.manifest import LABELS, SUBWORDS
from regard.config import ModelConfig
from regard.engine.loading import model_folder
from regard.errors import BundleError, ConfigError

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
            raise BundleError(
                f"has no {SUBWORDS}, which training needs", str(folder), code="missing_subwords"
            )
        return Start(bundle)

    @property
    def subwords(self) -> bytes:
        """Its vocabulary, which the new model uses."""
        assert self.bundle.subwords is not None, "Start.of refuses a folder without subwords"
        return self.bundle.subwords

    @property
    def named_labels(self) -> tuple[str, ...]:
        """The names of its labels; empty for a model that has none."""
        folder, n_labels = self.bundle.folder, self.bundle.config.n_labels
        return read_labels(folder, n_labels) if (folder / LABELS).exists() else ()

    def shape(self, model: ModelConfig) -> ModelConfig:
        """The shape of the new model: this one's, except for what does not concern weights.

        Raises:
            ConfigError: it lacks a stack that the new model has.
        """
        own, wanted = self.bundle.config, model.architecture
        if own.architecture not in (wanted, "encoder-decoder"):
            raise ConfigError(
                f"{self.bundle.folder}: has only the {own.architecture}; the task needs {wanted}",
                code="wrong_architecture",
            )
        # The head of a model that guesses tokens does not suit labels: they get a new pooler.
        head = "tanh" if own.label_head == GUESSING else own.label_head
        return replace(
            own, architecture=wanted, n_labels=model.n_labels, dropout=model.dropout, label_head=head
        )

    @torch.no_grad()
    def give(self, model: nn.Module, labels: Sequence[str] = ()) -> None:
        """Copy the weights that both models have to the new model.

        The output layer of another list of labels is not copied.
        """
        # All names of a shared weight: the other model may use another of them.
        own = dict(self.bundle.model.named_parameters(remove_duplicate=False))
        if self.bundle.config.label_head == GUESSING:
            own = {name: weight for name, weight in own.items() if not name.startswith("label_head.")}
        if labels and read_labels(self.bundle.folder, self.bundle.config.n_labels) != tuple(labels):
            own = {name: weight for name, weight in own.items() if not name.startswith(OUTPUT)}
        for name, weight in model.named_parameters():
            if name in own and own[name].shape == weight.shape:
                weight.copy_(own[name])
