"""A test set through a model folder of another task than translation: labels, texts, or rows with fields."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import numpy as np
import torch

from regard.bundle import Description, describe_bundle
from regard.bundle.bundle import read_labels
from regard.config.task import TEMPLATES
from regard.data.batches.examples import windows
from regard.data.reading.documents import encode_document, open_documents
from regard.data.reading.labelled import labelled_corpus, split_labels
from regard.data.reading.templates import read_examples, single_line
from regard.engine.classifier import ClassifierEnsemble, TextClassifier
from regard.engine.loading import load_onto, model_folder, subword_model
from regard.engine.options import ClassifyOptions
from regard.errors import ConfigError, CorpusError
from regard.loss import label_smoothed_cross_entropy
from regard.model.language_model import LanguageModel
from regard.model.transformer import Transformer
from regard.packing import pack
from regard.scores.answers import AnswerScore, score_answers
from regard.scores.classification import ClassificationScore, score_labels
from regard.scores.perplexity import Perplexity
from regard.scores.summaries import SummaryScore, score_summaries
from regard.scores.tagging import TagScore, rows_of, score_tags
from regard.scores.testing import translate
from regard.text.files import display_name
from regard.text.files.tables import Column
from regard.text.normalisation import composed
from regard.text.vocabularies import read_vocabulary
from regard.text.vocabularies.vocabulary import Vocabulary

TaskScore: TypeAlias = ClassificationScore | TagScore | Perplexity | SummaryScore | AnswerScore
BATCH_TOKENS = 8192
"""Tokens whose likelihood is worked out together."""


def score_on(
    folder: Path, file: Path, *, columns: Sequence[Column] = (), beam_size: int | None = None
) -> TaskScore:
    """Score a model on a file like those that it was trained on.

    Args:
        folder: a model folder, or a run's.
        file: a table of labels and texts for a classifier, text for a generator, else JSONL with fields.
        columns: of tables, the label's and the text's, or those that make up a document.
        beam_size: hypotheses kept at each step; by default as the folder says.

    Raises:
        CorpusError: the file cannot be used, or has a label that the model does not know.
        ConfigError: the model translates, and is scored on pairs.
    """
    described = describe_bundle(model_folder(folder))
    if described.config.architecture == "encoder":
        return _labels([described], file, columns)
    if described.config.architecture == "decoder":
        return _text(described, file, columns)
    if described.task.name not in TEMPLATES:
        raise ConfigError(f"{folder}: translates, and is scored on two files, SRC and REF")
    return _fields(described, file, beam_size)


def _fields(described: Description, file: Path, beam_size: int | None) -> SummaryScore | AnswerScore:
    rows = list(read_examples(file, described.task.templates))
    if not rows:
        raise CorpusError(f"{display_name(file)}: has no rows, so there is nothing to score")
    model, subwords = load_onto(described.folder, "auto").model, _vocabulary(described)
    assert isinstance(model, Transformer), "the description says so"
    decoding = described.decoding
    if beam_size is not None:
        decoding = replace(decoding, beam_size=beam_size)
    room = described.config.max_length - 1
    inputs = [tuple(ids[:room].tolist()) for ids in subwords.encode([single_line(read) for read, _ in rows])]
    outputs = translate(model, subwords, inputs, decoding)
    score_of = score_answers if described.task.name == "answer" else score_summaries
    return score_of(outputs, [right for _, right in rows])


def score_together(
    folders: Sequence[Path], file: Path, *, columns: Sequence[Column] = ()
) -> ClassificationScore | TagScore:
    """Score the mean of several classifiers' answers; the arguments are those of `score_on`.

    Raises:
        CorpusError: as `score_on` does.
        BundleError: a model has other labels than the first.
    """
    return _labels([describe_bundle(model_folder(folder)) for folder in folders], file, columns)


def _labels(
    described: Sequence[Description], file: Path, columns: Sequence[Column]
) -> ClassificationScore | TagScore:
    first = described[0]
    labels, separator = read_labels(first.folder, first.config.n_labels), first.task.label_separator
    numbers = {label: i for i, label in enumerate(labels)}
    right, texts = [], []
    for own, text in _rows(file, columns, separator):
        if strange := [label for label in own if label not in numbers]:
            known = f"the model knows {', '.join(labels[:10])}"
            raise CorpusError(f"{display_name(file)}: {text[:40]!r} is labelled {strange[0]!r}, and {known}")
        right.append([numbers[label] for label in own])
        texts.append(text)
    classifier = TextClassifier.load(first) if len(described) == 1 else ClassifierEnsemble.load(described)
    found = classifier.classify(texts, ClassifyOptions(too_long="cut"))
    probs_BC = np.array([[each.probabilities[label] for label in labels] for each in found])
    if separator is None:
        return score_labels(probs_BC, [only for (only,) in right], labels)
    return score_tags(probs_BC, rows_of(right, len(labels)), labels)


def _rows(file: Path, columns: Sequence[Column], separator: str | None) -> Iterator[tuple[list[str], str]]:
    """Labels and texts, read as in training, without the rows that lack one."""
    found = False
    for row in labelled_corpus(file, columns=columns).rows():
        cell, text = (cell.strip() for cell in row)
        if cell and text and (labels := split_labels(cell, separator)):
            found = True
            yield labels, text
    if not found:
        raise CorpusError(f"{display_name(file)}: has no label with a text, so there is nothing to score")


def _text(described: Description, file: Path, columns: Sequence[Column]) -> Perplexity:
    texts = list(open_documents(file, columns=columns).read())
    if not texts:
        raise CorpusError(f"{display_name(file)}: every document is empty, so there is nothing to score")
    model, subwords = load_onto(described.folder, "auto").model, _vocabulary(described)
    assert isinstance(model, LanguageModel), "the description says so"
    encoded = (encode_document(subwords, text) for text in texts)
    cut = windows(encoded, described.config.max_length, bos=subwords.bos_id, eos=subwords.eos_id)
    nll, n_tokens = likelihood(model, cut)
    n_bytes = sum(len(composed(text).encode()) for text in texts)
    return Perplexity(nll=nll, n_tokens=n_tokens, n_bytes=n_bytes)


def likelihood(model: LanguageModel, cut: Iterable[np.ndarray]) -> tuple[float, int]:
    """The negative log-likelihood of windows of text, and of how many tokens."""
    output = model.eval().output_probabilities
    total, n_tokens = 0.0, 0
    for batch in _batches(cut):
        with torch.inference_mode():
            packed = pack([window[:-1].tolist() for window in batch], output.weight.device)
            targets_N = torch.from_numpy(np.concatenate([window[1:] for window in batch]).astype(np.int64))
            states_ND = model.decode(packed)
            loss = label_smoothed_cross_entropy(
                states_ND, output.weight, targets_N.to(output.weight.device), bias_V=output.bias
            )
        total, n_tokens = total + float(loss.nll), n_tokens + len(targets_N)
    return total, n_tokens


def _batches(cut: Iterable[np.ndarray]) -> Iterator[list[np.ndarray]]:
    batch: list[np.ndarray] = []
    for window in cut:
        if batch and sum(map(len, batch)) + len(window) > BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(window)
    if batch:
        yield batch


def _vocabulary(described: Description) -> Vocabulary:
    return read_vocabulary(subword_model(described))


def measures(score: TaskScore) -> dict[str, float]:
    """What follows from the fields of a score."""
    return score.measures() if isinstance(score, Perplexity) else {}
