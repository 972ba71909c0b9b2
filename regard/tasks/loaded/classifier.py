"""A loaded encoder-only model, or an ensemble: labels texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from regard.bundle.bundle import read_labels
from regard.config.checking import did_you_mean
from regard.errors import RequestError
from regard.tasks.loaded import LoadedModel

if TYPE_CHECKING:
    from regard.engine.classifier import ClassifierEnsemble, TextClassifier
    from regard.look.trace.recorder import Text
    from regard.look.trace.trace import Trace


class LoadedClassifier(LoadedModel):
    """A model that labels texts: see `LoadedModel.classify`.

    An ensemble averages the probabilities of its members.
    """

    verb = "classify"

    @cached_property
    def classifier(self) -> TextClassifier | ClassifierEnsemble:
        """The model as a classifier of texts, loaded on first use.

        Raises:
            BundleError: models of an ensemble have different labels.
        """
        from regard.engine.classifier import ClassifierEnsemble, TextClassifier

        if len(self.described) > 1:
            return ClassifierEnsemble.load(self.described, self.device)
        model: Any = self.bundle.model
        several = self.task.label_separator is not None
        return TextClassifier(model, self.subwords, self.labels, several)

    @cached_property
    def labels(self) -> tuple[str, ...]:  # type: ignore[override]  # read on first use
        """The labels, in the order of the outputs."""
        return read_labels(self.folders[0], self.description.config.n_labels)

    def _target_ids(self, target: Text) -> Sequence[int]:
        """The number of a label, given by name or number."""
        if not isinstance(target, str):
            return target
        if target not in self.labels:
            known = did_you_mean(target, self.labels) or f"; there are {', '.join(self.labels)}"
            raise RequestError(f"there is no label {target!r}{known}", code="unknown_label")
        return [self.labels.index(target)]

    def _named(self, trace: Trace) -> Trace:
        """The trace with the hash of this model's weights, and with labels instead of their numbers."""
        return replace(super()._named(trace), pieces={i: self.labels[i] for i in trace.pieces})
