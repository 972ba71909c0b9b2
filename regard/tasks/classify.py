"""The task `classify`: labels for texts, from tables; one label for each text, or several."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from torch import nn

from regard import bundled
from regard.bundle import Description, describe_bundle, load_bundle
from regard.bundle.bundle import read_labels
from regard.config import ModelConfig, RunConfig, TrainingConfig, registries
from regard.data.batches import Budget
from regard.data.batches.examples import (
    LABELLED_EXTRA,
    PLAIN_EXTRA,
    Batch,
    make_labelled_batch,
    make_plain_batch,
    make_tagged_batch,
)
from regard.data.reading import refuse_shared_files
from regard.data.reading.labelled import labelled_corpus, split_labels, unlabelled_corpus
from regard.data.store import Store
from regard.durable import write_atomically
from regard.engine.classifier import ClassifierEnsemble, TextClassifier
from regard.engine.options import ClassifyOptions
from regard.errors import ConfigError, CorpusError
from regard.look.figures.curves import Unit
from regard.look.figures.heatmap import heatmap_svg
from regard.model.classifier import Classifier
from regard.scores.classification import ClassificationScore, TagScore, rows_of, score_labels, score_tags
from regard.scores.tfidf import MOST_TEXTS, fit_baseline
from regard.tasks.label_preparation import LabelledSource, prepare_labelled, read_labelled
from regard.tasks.loaded.classifier import LoadedClassifier
from regard.tasks.objectives import HIDDEN, HiddenTokens, OneLabel, SeveralLabels
from regard.tasks.task import SET_NAMES, Job, Lesson, Prepared, Reporter, Task, TestResult, one_file
from regard.text.detection import other_language
from regard.text.files import display_name
from regard.text.files.tables import Column
from regard.text.vocabularies.vocabulary import Vocabulary

if TYPE_CHECKING:
    from regard.bundle.weights import Model

Score = ClassificationScore | TagScore
LEAST_WEIGHT = 1e-3
"""Smallest class weight."""
SAMPLED, FITTING = 300, 0.9
"""Texts whose language is detected, and the share that must be in a language of the bundled translator."""
SHOWN_TOKENS = 20
"""Length of the text that is shown at a validation, about."""


@dataclass(frozen=True, eq=False, kw_only=True)
class LabelLesson(Lesson):
    """Texts with one label each."""

    unit: ClassVar[Unit] = "text"
    cls: int
    class_weights: Sequence[float]
    """The weight of each label."""

    def shaped(self, model: ModelConfig) -> ModelConfig:
        """With as many labels as the data has."""
        return replace(super().shaped(model), n_labels=len(self.labels))

    def budget(self, tokens: int, *, fixed: bool = False) -> Budget:
        """Tokens of texts; labels do not count."""
        assert not fixed, "the number of texts in a batch varies"
        return Budget(tokens=(tokens, None), extra=LABELLED_EXTRA)

    def batch(self, store: Store, indices: np.ndarray, fill_to: Sequence[int | None] | None = None) -> Batch:
        """A batch of texts and labels."""
        assert fill_to is None, "the number of texts in a batch varies"
        return make_labelled_batch(store, indices, cls=self.cls)

    def n_targets(self, store: Store, indices: np.ndarray) -> int:  # noqa: ARG002
        """One for each text."""
        return len(indices)

    def n_tokens(self, store: Store, indices: np.ndarray) -> int:
        """Tokens that are read, with a [CLS] each."""
        return int(store.lengths(0, indices).sum()) + len(indices)

    def objective(self, model: Model, training: TrainingConfig, *, compiled: bool) -> nn.Module:
        """The label."""
        assert not compiled, "the number of texts in a batch varies"
        return OneLabel(model, training, torch.tensor(self.class_weights))


@dataclass(frozen=True, eq=False, kw_only=True)
class SeveralLabelsLesson(LabelLesson):
    """Texts with any number of labels: each label is decided on."""

    unit: ClassVar[Unit] = "decision"
    has_probes: ClassVar[bool] = False  # a probe shows one label: a softmax over all

    def batch(self, store: Store, indices: np.ndarray, fill_to: Sequence[int | None] | None = None) -> Batch:
        """A batch of texts and all their labels."""
        assert fill_to is None, "the number of texts in a batch varies"
        return make_tagged_batch(store, indices, cls=self.cls, n_labels=len(self.labels))

    def n_targets(self, store: Store, indices: np.ndarray) -> int:  # noqa: ARG002
        """One for each text and label."""
        return len(indices) * len(self.labels)

    def objective(self, model: Model, training: TrainingConfig, *, compiled: bool) -> nn.Module:
        """Every label."""
        assert not compiled, "the number of texts in a batch varies"
        return SeveralLabels(model, training, torch.tensor(self.class_weights))


@dataclass(frozen=True, eq=False, kw_only=True)
class HiddenTokensLesson(Lesson):
    """Texts without labels, whose hidden tokens are guessed."""

    compiles: ClassVar[bool] = True
    has_probes: ClassVar[bool] = False
    cls: int

    def shaped(self, model: ModelConfig) -> ModelConfig:
        """Every subword is a label."""
        model = super().shaped(model)
        return replace(model, n_labels=model.vocab_size)

    def budget(self, tokens: int, *, fixed: bool = False) -> Budget:
        """Tokens of texts."""
        return Budget(tokens=(tokens,), extra=PLAIN_EXTRA, fixed=fixed)

    def batch(self, store: Store, indices: np.ndarray, fill_to: Sequence[int | None] | None = None) -> Batch:
        """A batch of whole texts; the objective hides tokens."""
        return make_plain_batch(store, indices, cls=self.cls, share=HIDDEN, fill_to=fill_to or (None,))

    def n_targets(self, store: Store, indices: np.ndarray) -> int:
        """Hidden tokens; of a step that is divided, to rounding."""
        return max(1, round(HIDDEN * int(store.lengths(0, indices).sum())))

    def n_tokens(self, store: Store, indices: np.ndarray) -> int:
        """Tokens that are read, with a [CLS] each."""
        return int(store.lengths(0, indices).sum()) + len(indices)

    def objective(self, model: Model, training: TrainingConfig, *, compiled: bool) -> nn.Module:  # noqa: ARG002
        """The hidden tokens."""
        return HiddenTokens(model, compiled=compiled)


@registries.tasks.register("classify")
class Classify(Task):
    """Labels for texts."""

    name = "classify"
    architecture = "encoder"
    settings = ("model.architecture=encoder", "model.n_labels=2")  # the data says how many labels there are
    verb = "classify"
    columns = ("label", "text")
    options = frozenset({"columns", "pretrain"})

    @classmethod
    def load(
        cls, described: Sequence[Description], *, device: str = "auto", **_engine: Any
    ) -> LoadedClassifier:
        """Load finished models of this task; torch runs them, so options of the engine do not apply."""
        return LoadedClassifier(described, device=device)

    def open_files(self, job: Job) -> dict[str, Any]:
        """Tables of a label and a text, and texts without labels to learn from first."""
        files = job.files
        if not files.train:
            raise ConfigError(
                "name tables of label<TAB>text: regard train --task classify TABLE…", code="missing_file"
            )
        if files.columns and len(files.columns) != 2:
            given = ",".join(map(str, files.columns))
            raise ConfigError(
                f"`columns={given}` must be two: the label's and the text's", code="bad_columns"
            )
        options: dict[str, Any] = {"columns": files.columns, "on_invalid": job.config.data.on_invalid}
        opened = {name: labelled_corpus(*paths, **options) for name, paths in files.sets.items()}
        for name in files.found:  # the test sets of competitions have no labels
            if not any(label for label, _ in opened[name].rows()):
                job.report(f"{opened[name].names[0]}: no row has a label, so it is not used as a {name} set")
                del opened[name]
        refuse_shared_files({SET_NAMES[name]: each for name, each in opened.items()})
        if files.pretrain:
            opened["plain"] = unlabelled_corpus(*files.pretrain, **options)
        return opened

    def usual_start(self, job: Job, opened: dict[str, Any]) -> Path | None:  # noqa: ARG002
        """The bundled translator, whose encoder knows its two languages, for texts in these."""
        folder = bundled.folder()
        if "plain" in opened:  # the encoder learns from these texts first
            return None
        known = sorted({code for way in describe_bundle(folder).task.directions for code in way if code})
        texts = [text for _, text in islice(opened["train"].rows(), SAMPLED)]
        fitting = sum(other_language(text, known) is None for text in texts)
        return folder if texts and fitting >= FITTING * len(texts) else None

    def source(self, job: Job, opened: dict[str, Any]) -> LabelledSource:
        """The tables, and how several labels are separated."""
        separator = job.config.task.label_separator
        return LabelledSource(**opened, separator=separator, **job.source_settings())

    def prepare(self, folder: Path, source: LabelledSource, report: Reporter) -> None:
        """Split sets off, learn subwords, write token stores."""
        prepare_labelled(folder, source, report)

    def prepared(self, folder: Path, config: RunConfig) -> Prepared:
        """The stores of texts with labels; and of texts without, if some were given."""
        contents = read_labelled(folder)
        stores, facts, subwords = contents.stores, contents.facts, contents.subwords
        counts, several = np.array(facts["counts"]), facts.get("several", False)
        weights = [1.0] * len(counts)
        if config.training.class_weights:  # rare labels count as much; or texts with a label as those without
            rare = (facts["texts"] - counts) / counts if several else counts.sum() / len(counts) / counts
            weights = np.maximum(rare, LEAST_WEIGHT).tolist()
        lesson = (SeveralLabelsLesson if several else LabelLesson)(
            stores["train"],
            stores["valid"],
            cls=subwords.cls_id,
            labels=facts["labels"],
            class_weights=weights,
            subwords=subwords.model,
        )
        pretraining = None
        if "plain-train" in stores:
            plain = stores["plain-train"], stores["plain-valid"]
            pretraining = HiddenTokensLesson(*plain, cls=subwords.cls_id, subwords=subwords.model)
        return Prepared(lesson, subwords, stores["test"], pretraining)

    def validator(self, job: Job, prepared: Prepared) -> Callable[[Any], dict[str, Any]]:  # noqa: ARG002
        """Macro-F1 and calibration, and the label of one text."""
        return LabelledTexts(prepared.lesson.valid, prepared.subwords, prepared.lesson)

    def test(self, job: Job, prepared: Prepared) -> TestResult:
        """Label the test set; a picture shows which labels are confused."""
        best = load_bundle(job.folder / "best", job.device).model
        texts = LabelledTexts(prepared.test, prepared.subwords, prepared.lesson)
        score = texts.score(best)
        baseline = _baseline_score(prepared) if isinstance(score, ClassificationScore) else None
        picture = job.folder / "confusion.svg"
        write_atomically(picture, confusion_svg(score))
        lines, record = [str(score)], score.as_dict()
        if baseline is not None:
            record["baseline_accuracy"] = baseline
            lines.append(f"TF-IDF with logistic regression: accuracy {baseline:.2%}")
            if baseline > record["accuracy"]:
                lines.append("it would do better on these texts; more of them, or longer training, may help")
        lines.append(f"confused labels are drawn in {picture}")
        return TestResult(score=score, record=record, text="\n".join(lines), example=texts.text)

    def evaluate(
        self,
        model: Description,
        files: Sequence[Path],
        *,
        columns: Sequence[Column] = (),
        beam_size: int | None = None,  # noqa: ARG002 - nothing is searched for
    ) -> Score:
        """Label the texts of a table, and compare with the labels that they have."""
        return self._score([model], one_file(self, files), columns)

    def evaluate_together(
        self, models: Sequence[Description], files: Sequence[Path], *, columns: Sequence[Column] = ()
    ) -> Score | None:
        """Score the mean of the answers of classifiers with the same labels; None where they differ."""
        labels = {frozenset(read_labels(each.folder, each.config.n_labels)) for each in models}
        if len(labels) > 1 or len({each.task.label_separator is None for each in models}) > 1:
            return None
        return self._score(models, one_file(self, files), columns)

    def _score(self, models: Sequence[Description], file: Path, columns: Sequence[Column]) -> Score:
        first = models[0]
        labels, separator = read_labels(first.folder, first.config.n_labels), first.task.label_separator
        numbers = {label: i for i, label in enumerate(labels)}
        right, texts = [], []
        for own, text in _rows(file, columns, separator):
            if strange := [label for label in own if label not in numbers]:
                place = f"{display_name(file)}: {text[:40]!r}"
                raise CorpusError(
                    f"{place} has the label {strange[0]!r}; the model knows {', '.join(labels[:10])}",
                    code="unknown_label",
                )
            right.append([numbers[label] for label in own])
            texts.append(text)
        classifier = TextClassifier.load(first) if len(models) == 1 else ClassifierEnsemble.load(models)
        found = classifier.classify(texts, ClassifyOptions(too_long="cut"))
        probs_BY = np.array([[each.probabilities[label] for label in labels] for each in found])
        return _scored(probs_BY, right, labels, several=separator is not None)


def _baseline_score(prepared: Prepared) -> float:
    """The accuracy on the test set of what learns the same texts in seconds."""
    lesson = prepared.lesson
    sets = []
    for store in (lesson.train, lesson.valid, prepared.test):
        rows = (store[i] for i in range(min(len(store), MOST_TEXTS)))
        texts, labels = zip(
            *((prepared.subwords.decode(ids), int(label[0])) for ids, label in rows), strict=True
        )
        sets.append((texts, labels))
    train, valid, test = sets
    return fit_baseline(train, valid, len(lesson.labels)).accuracy(test)


def _rows(file: Path, columns: Sequence[Column], separator: str | None) -> Iterator[tuple[list[str], str]]:
    """Labels and texts, read as in training, without the rows that lack one."""
    empty = True
    for row in labelled_corpus(file, columns=columns).rows():
        cell, text = (cell.strip() for cell in row)
        if cell and text and (labels := split_labels(cell, separator)):
            empty = False
            yield labels, text
    if empty:
        raise CorpusError(f"{display_name(file)}: no row has a label and a text", code="no_usable_rows")


def _scored(
    probs_BY: np.ndarray, right: Sequence[Sequence[int]], labels: Sequence[str], *, several: bool
) -> Score:
    if several:
        return score_tags(probs_BY, rows_of(right, len(labels)), labels)
    return score_labels(probs_BY, [only for (only,) in right], labels)


class LabelledTexts:
    """The same held-out texts, labelled and scored at every validation."""

    def __init__(self, store: Store, subwords: Vocabulary, lesson: Lesson) -> None:
        self.subwords, self.labels = subwords, tuple(lesson.labels)
        self.several = isinstance(lesson, SeveralLabelsLesson)
        examples = [store[i] for i in range(len(store))]
        self.inputs = [ids.tolist() for ids, _ in examples]
        self.right = [labels.tolist() for _, labels in examples]
        self.shown = int(np.argmin([abs(len(ids) - SHOWN_TOKENS) for ids in self.inputs]))
        self.text = subwords.decode(self.inputs[self.shown])

    def score(self, model: Any) -> Score:
        """How well a model labels them."""
        return _scored(self._probabilities(model), self.right, self.labels, several=self.several)

    def __call__(self, model: Any) -> dict[str, Any]:
        """Macro-F1 and calibration; and the label of one text."""
        was_training = model.training
        probs_BY = self._probabilities(model)
        model.train(was_training)
        score = _scored(probs_BY, self.right, self.labels, several=self.several)
        sample = {
            "source": self.text,
            "output": ", ".join(self._given(probs_BY[self.shown])),
            "reference": ", ".join(self.labels[i] for i in self.right[self.shown]),
        }
        return {
            "valid_macro_f1": score.macro_f1,
            "valid_calibration_error": score.calibration_error,
            "sample": sample,
        }

    def _given(self, probs_Y: np.ndarray) -> list[str]:
        """The labels that a text is given, with their probabilities."""
        best = [int(probs_Y.argmax())]
        given = [i for i, probable in enumerate(probs_Y >= ClassifyOptions().threshold) if probable] or best
        return [f"{self.labels[i]} ({probs_Y[i]:.0%})" for i in (given if self.several else best)]

    def _probabilities(self, model: Any) -> np.ndarray:
        assert isinstance(model, Classifier), "the task needs an encoder alone"
        return TextClassifier(model, self.subwords, self.labels, self.several).probabilities(self.inputs)


def confusion_svg(score: Score) -> str:
    """A picture of the texts of each label, by the labels that they were given."""
    counts, labels = np.array(score.confusion, np.float64), score.labels
    shares = counts / np.maximum(1.0, score.n_each)[:, None]
    note = "row: the right label · column: the label given · as a share of the row"
    return heatmap_svg(shares, labels, labels, score.headline, note)
