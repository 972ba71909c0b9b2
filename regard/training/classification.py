"""A classifier from labelled texts: prepare, guess tokens first where asked to, train, test.

What `regard train --task classify` does. Guessing is a run of its own, in RUN/pretraining.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from regard.bundle import load_bundle
from regard.config import RunConfig
from regard.data.store import Store
from regard.durable import write_atomically
from regard.engine.classifier import TextClassifier
from regard.engine.options import ClassifyOptions
from regard.look.figures.heatmap import heatmap_svg
from regard.model.classifier import Classifier
from regard.scores.classification import ClassificationScore, score_labels
from regard.scores.tagging import TagScore, rows_of, score_tags
from regard.text.vocabularies.vocabulary import Vocabulary
from regard.training.checkpoints.folder import has_begun
from regard.training.distributed.world import World
from regard.training.ending import ASKED_TO_STOP
from regard.training.lesson import LabelledData, TaggedData
from regard.training.loop import Run
from regard.training.preparation import Tell
from regard.training.probing import Probing
from regard.training.starting import Start
from regard.training.tables import TableSource, prepare_tables, prepared_tables
from regard.training.task_run import TaskRun, Watch

PRETRAINING = "pretraining"
SHOWN_LENGTH = 20
"""Tokens that the shown text has, about."""


class ClassifierRun(TaskRun):
    """A run from labelled texts to a tested model."""

    def __init__(
        self,
        folder: Path,
        config: RunConfig,
        source: Callable[[], TableSource],
        world: World,
        *,
        start: Start | None = None,
        sharded: bool = False,
        tell: Tell = lambda _: None,
    ) -> None:
        super().__init__(folder, config, world)
        self.start, self.sharded, self.tell = start, sharded, tell if world.is_main else lambda _: None
        self.prepared = self._prepare(
            source, lambda data, found: prepare_tables(data, found, tell), prepared_tables
        )

    def train(self, watch: Watch) -> str:
        """Guess tokens where there are texts for it, then learn labels; says why it ended."""
        if self.prepared.plain is not None and not has_begun(self.folder):
            self.tell(f"first, hidden tokens are guessed, in {self.folder / PRETRAINING}")
            self.run = self._pretraining()
            if (reason := super().train(watch)) == ASKED_TO_STOP:
                return reason
            self.tell("now labels are learned")
        if self.prepared.plain is not None:
            self.start = Start.of(self.folder / PRETRAINING)
        lesson = self.prepared.lesson
        before = () if self.start is None else self.start.named_labels
        if before and before != tuple(lesson.labels) and not has_begun(self.folder):
            self.tell(f"the labels were {', '.join(before[:10])}: what tells them apart is learned anew")
        if not self.config.training.class_weights:
            lesson = replace(lesson, class_weights=[1.0] * len(lesson.labels))
        trial = LabelledTrial(lesson.valid, self.prepared.subwords, lesson)
        training = self.config.training
        probing = Probing(
            self.folder,
            lesson.valid,
            self.prepared.subwords,
            # What is looked at has one label: a softmax over all.
            sentences=0 if isinstance(lesson, TaggedData) else training.probe_sentences,
            every=training.validate_every,
            labels=lesson.labels,
        )
        self.run = Run(
            self.folder,
            self.config,
            lesson,
            world=self.world,
            sharded=self.sharded,
            sample=trial if self.world.is_main else lambda _: {},
            probe=probing,
            start=self.start,
        )
        if self.world.is_main:
            probing.go_on_from(self.run.progress.step)
        return super().train(watch)

    def _pretraining(self) -> Run:
        assert self.prepared.plain is not None
        steps = self.config.training.pretrain_steps
        training = replace(self.config.training, max_steps=steps, max_epochs=None, patience=0)
        return Run(
            self.folder / PRETRAINING,
            replace(self.config, training=training),
            self.prepared.plain,
            world=self.world,
            sharded=self.sharded,
            start=self.start,
        )

    def test(self) -> ClassificationScore | TagScore:
        """Label the test set with the best model; keep the scores, and a picture of the mistakes."""
        best = load_bundle(self.folder / "best", self.world.device).model
        lesson = self.prepared.lesson
        trial = LabelledTrial(self.prepared.test, self.prepared.subwords, lesson)
        score = trial.score(best)
        write_atomically(
            self.folder / "scores.json", json.dumps(score.as_dict(), ensure_ascii=False, indent=1)
        )
        write_atomically(self.folder / "confusion.svg", confusion_svg(score))
        return score

    def example(self) -> str:
        """A text of the test set."""
        trial = LabelledTrial(self.prepared.test, self.prepared.subwords, self.prepared.lesson)
        return trial.text


class LabelledTrial:
    """The same held-out texts, labelled each time."""

    def __init__(self, store: Store, subwords: Vocabulary, lesson: LabelledData) -> None:
        self.subwords, self.labels = subwords, tuple(lesson.labels)
        self.several = isinstance(lesson, TaggedData)
        examples = [store[i] for i in range(len(store))]
        self.inputs = [ids.tolist() for ids, _ in examples]
        self.right = [labels.tolist() for _, labels in examples]
        self.shown = int(np.argmin([abs(len(ids) - SHOWN_LENGTH) for ids in self.inputs]))
        self.text = subwords.decode(self.inputs[self.shown])

    def score(self, model: Any) -> ClassificationScore | TagScore:
        """How well a model labels them."""
        return self._scored(self._probabilities(model))

    def __call__(self, model: Any) -> dict[str, Any]:
        """Macro-F1 and calibration; and the label of one text."""
        was_training = model.training
        probs_BC = self._probabilities(model)
        model.train(was_training)
        score = self._scored(probs_BC)
        sample = {
            "source": self.text,
            "output": ", ".join(self._given(probs_BC[self.shown])),
            "reference": ", ".join(self.labels[i] for i in self.right[self.shown]),
        }
        return {
            "valid_macro_f1": score.macro_f1,
            "valid_calibration_error": score.calibration_error,
            "sample": sample,
        }

    def _given(self, probs_C: np.ndarray) -> list[str]:
        """The label that is given, or every one that is; with how probable it is."""
        best = [int(probs_C.argmax())]
        given = [i for i, probable in enumerate(probs_C >= ClassifyOptions().threshold) if probable] or best
        return [f"{self.labels[i]} ({probs_C[i]:.0%})" for i in (given if self.several else best)]

    def _scored(self, probs_BC: np.ndarray) -> ClassificationScore | TagScore:
        if not self.several:
            return score_labels(probs_BC, [right for (right,) in self.right], self.labels)
        return score_tags(probs_BC, rows_of(self.right, len(self.labels)), self.labels)

    def _probabilities(self, model: Any) -> np.ndarray:
        assert isinstance(model, Classifier)
        return TextClassifier(model, self.subwords, self.labels, self.several).probabilities(self.inputs)


def confusion_svg(score: ClassificationScore | TagScore) -> str:
    """What was taken for what: each right label's texts, by the labels that they were given."""
    counts, labels = np.array(score.confusion, np.float64), score.labels
    shares = counts / np.maximum(1.0, score.n_each)[:, None]
    note = "a row: texts of one label · a column: the label that they were given · as a share of the row"
    return heatmap_svg(shares, labels, labels, score.headline, note)
