"""Several classifiers asked together: the mean of their probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from regard.bundle.bundle import Description
from regard.engine.classification import Classification, Labelling
from regard.engine.classifier import TextClassifier, labelled
from regard.errors import BundleError


@dataclass(frozen=True, eq=False)
class ClassifierEnsemble:
    """Classifiers with the same labels; each reads a text with a vocabulary of its own."""

    members: tuple[TextClassifier, ...]

    @staticmethod
    def of(described: Sequence[Description], device: str = "auto") -> ClassifierEnsemble:
        """Read one from several model folders.

        Raises:
            RequestError: a model is for another task.
            BundleError: a folder is damaged, or its labels are not those of the first.
        """
        members = tuple(TextClassifier.of(each, device) for each in described)
        first = members[0]
        for each, member in zip(described, members, strict=True):
            if set(member.labels) != set(first.labels) or member.several != first.several:
                told = f"has other labels than {described[0].folder}: models of one ensemble share them"
                raise BundleError(told, str(each.folder))
        return ClassifierEnsemble(members)

    def classify(self, texts: Sequence[str], options: Labelling) -> list[Classification]:
        """Label texts.

        Raises:
            RequestError: a text is empty or no text; or too long for one of them, and that is an error.
        """
        each = [member.classify(texts, options) for member in self.members]
        return [self._together(found, options) for found in zip(*each, strict=True)]

    def n_tokens(self, text: str) -> int:
        """Tokens that are read to label a text, by all of them."""
        return sum(member.n_tokens(text) for member in self.members)

    def _together(self, found: Sequence[Classification], options: Labelling) -> Classification:
        first = found[0]
        mean = {
            label: sum(each.probabilities[label] for each in found) / len(found)
            for label in self.members[0].labels
        }
        return labelled(
            first.text,
            mean,
            options,
            several=self.members[0].several,
            cut=max(each.cut for each in found),
            unseen=tuple(dict.fromkeys(character for each in found for character in each.unseen)),
        )
