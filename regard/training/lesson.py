"""What a run learns from: two stores, and how their examples become batches and a loss. One class a task."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import torch
from torch import nn

from regard.config import ModelConfig, TrainingConfig
from regard.data.batches import Budget
from regard.data.batches.examples import (
    LABELLED_EXTRA,
    PAIRS_EXTRA,
    PLAIN_EXTRA,
    TEXT_EXTRA,
    Batch,
    make_labelled_batch,
    make_pairs_batch,
    make_plain_batch,
    make_tagged_batch,
    make_text_batch,
)
from regard.data.store import Store
from regard.look.figures.curves import Unit
from regard.training.guessing import HIDDEN, GuessingObjective
from regard.training.labelling import LabelObjective, TagObjective
from regard.training.objective import Objective

if TYPE_CHECKING:
    from regard.bundle.weights import Model
    from regard.training.step import Score


@dataclass(frozen=True, eq=False)
class Lesson(ABC):
    """All that the loop knows of a task."""

    compiles: ClassVar[bool] = False
    """Whether batches can be filled to one size, as a compiled step wants."""
    unit: ClassVar[Unit] = "token"
    """What the loss is a mean over. That of tokens is told as a perplexity too, others with the accuracy."""

    train: Store
    valid: Store
    """What the best model is chosen by."""
    subwords: bytes | None = field(default=None, kw_only=True)
    """Goes into the model folder."""
    labels: Sequence[str] = field(default=(), kw_only=True)
    """What a classifier tells apart; goes into the model folder."""

    def shaped(self, model: ModelConfig) -> ModelConfig:
        """The model with the sizes that follow from the data: subwords may be fewer than were asked for."""
        return replace(model, vocab_size=self.train.facts.vocab_size)

    @abstractmethod
    def budget(self, tokens: int, *, fixed: bool = False) -> Budget:
        """How large batches of so many tokens are, side by side."""

    @abstractmethod
    def batch(self, store: Store, indices: np.ndarray, fill_to: Sequence[int | None] | None = None) -> Batch:
        """Some examples as a model takes them."""

    @abstractmethod
    def n_targets(self, store: Store, indices: np.ndarray) -> int:
        """What the loss of these examples is a mean over."""

    def n_tokens(self, store: Store, indices: np.ndarray) -> int:
        """Tokens of these examples, by which speed is told; of pairs, those that are written."""
        return self.n_targets(store, indices)

    @abstractmethod
    def objective(self, model: Model, training: TrainingConfig, *, compiled: bool) -> nn.Module:
        """What is minimised for a batch, and what is told of it, as `Objective` gives them."""

    def facts(self, score: Score) -> Mapping[str, float]:  # noqa: ARG002 - some know more
        """What else is told of a validation."""
        return {}


@dataclass(frozen=True, eq=False, kw_only=True)
class PairsData(Lesson):
    """Inputs and outputs, for the encoder and decoder: the next token of the output is learned."""

    compiles: ClassVar[bool] = True
    bos: int
    eos: int

    def budget(self, tokens: int, *, fixed: bool = False) -> Budget:
        """As much on each side; or, of fixed size, so much that both fill up together."""
        if fixed:
            return Budget.balanced(self.train, tokens, PAIRS_EXTRA, fixed=True)
        return Budget(tokens=(tokens, tokens), extra=PAIRS_EXTRA)

    def batch(self, store: Store, indices: np.ndarray, fill_to: Sequence[int | None] | None = None) -> Batch:
        """Pairs."""
        return make_pairs_batch(store, indices, bos=self.bos, eos=self.eos, fill_to=fill_to or (None, None))

    def n_targets(self, store: Store, indices: np.ndarray) -> int:
        """Output tokens, and an end each."""
        return int(store.lengths(1, indices).sum()) + len(indices)

    def objective(self, model: Model, training: TrainingConfig, *, compiled: bool) -> nn.Module:
        """The next token."""
        return Objective(model, training.label_smoothing, compiled=compiled)


@dataclass(frozen=True, eq=False, kw_only=True)
class TextData(Lesson):
    """Windows of text, for the decoder alone: the next token is learned."""

    compiles: ClassVar[bool] = True
    valid_bytes: int
    """Bytes of the text that is held out, in UTF-8."""

    def budget(self, tokens: int, *, fixed: bool = False) -> Budget:
        """Tokens that are read."""
        return Budget(tokens=(tokens,), extra=TEXT_EXTRA, fixed=fixed)

    def batch(self, store: Store, indices: np.ndarray, fill_to: Sequence[int | None] | None = None) -> Batch:
        """Windows."""
        return make_text_batch(store, indices, fill_to=fill_to or (None,))

    def n_targets(self, store: Store, indices: np.ndarray) -> int:
        """All but the first token of each window."""
        return int(store.lengths(0, indices).sum()) - len(indices)

    def objective(self, model: Model, training: TrainingConfig, *, compiled: bool) -> nn.Module:
        """The next token."""
        return Objective(model, training.label_smoothing, compiled=compiled)

    def facts(self, score: Score) -> Mapping[str, float]:
        """How many bits a byte of the text takes: by this, vocabularies of all sizes can be compared."""
        return {"valid_bits_per_byte": score.nll / float(np.log(2)) / self.valid_bytes}


@dataclass(frozen=True, eq=False, kw_only=True)
class LabelledData(Lesson):
    """Texts with a label each, for the encoder alone."""

    unit: ClassVar[Unit] = "text"
    cls: int
    class_weights: Sequence[float]
    """What an example of each label counts."""

    def shaped(self, model: ModelConfig) -> ModelConfig:
        """With as many labels as there are."""
        return replace(super().shaped(model), n_labels=len(self.labels))

    def budget(self, tokens: int, *, fixed: bool = False) -> Budget:
        """Tokens of texts; labels are free."""
        assert not fixed, "how many texts a batch has is not fixed"
        return Budget(tokens=(tokens, None), extra=LABELLED_EXTRA)

    def batch(self, store: Store, indices: np.ndarray, fill_to: Sequence[int | None] | None = None) -> Batch:
        """Texts and labels."""
        assert fill_to is None, "how many texts a batch has is not fixed"
        return make_labelled_batch(store, indices, cls=self.cls)

    def n_targets(self, store: Store, indices: np.ndarray) -> int:  # noqa: ARG002
        """One for each text."""
        return len(indices)

    def n_tokens(self, store: Store, indices: np.ndarray) -> int:
        """Tokens that are read, with a [CLS] each."""
        return int(store.lengths(0, indices).sum()) + len(indices)

    def objective(self, model: Model, training: TrainingConfig, *, compiled: bool) -> nn.Module:
        """The label."""
        assert not compiled, "how many texts a batch has is not fixed"
        return LabelObjective(model, training, torch.tensor(self.class_weights))


@dataclass(frozen=True, eq=False, kw_only=True)
class TaggedData(LabelledData):
    """Texts that may have several labels each, for the encoder alone: every label is decided on."""

    unit: ClassVar[Unit] = "decision"

    def batch(self, store: Store, indices: np.ndarray, fill_to: Sequence[int | None] | None = None) -> Batch:
        """Texts and all their labels."""
        assert fill_to is None, "how many texts a batch has is not fixed"
        return make_tagged_batch(store, indices, cls=self.cls, n_labels=len(self.labels))

    def n_targets(self, store: Store, indices: np.ndarray) -> int:  # noqa: ARG002
        """One for each text and label."""
        return len(indices) * len(self.labels)

    def objective(self, model: Model, training: TrainingConfig, *, compiled: bool) -> nn.Module:
        """Each label."""
        assert not compiled, "how many texts a batch has is not fixed"
        return TagObjective(model, training, torch.tensor(self.class_weights))


@dataclass(frozen=True, eq=False, kw_only=True)
class PlainData(Lesson):
    """Plain texts, for the encoder alone, which guesses hidden tokens before it is taught labels."""

    compiles: ClassVar[bool] = True
    cls: int

    def shaped(self, model: ModelConfig) -> ModelConfig:
        """Every subword is a label here."""
        model = super().shaped(model)
        return replace(model, n_labels=model.vocab_size)

    def budget(self, tokens: int, *, fixed: bool = False) -> Budget:
        """Tokens of texts."""
        return Budget(tokens=(tokens,), extra=PLAIN_EXTRA, fixed=fixed)

    def batch(self, store: Store, indices: np.ndarray, fill_to: Sequence[int | None] | None = None) -> Batch:
        """Texts, as they are: the objective hides tokens."""
        return make_plain_batch(store, indices, cls=self.cls, share=HIDDEN, fill_to=fill_to or (None,))

    def n_targets(self, store: Store, indices: np.ndarray) -> int:
        """Tokens that are hidden; of a step that is shared out, to rounding."""
        return max(1, round(HIDDEN * int(store.lengths(0, indices).sum())))

    def n_tokens(self, store: Store, indices: np.ndarray) -> int:
        """Tokens that are read, with a [CLS] each."""
        return int(store.lengths(0, indices).sum()) + len(indices)

    def objective(self, model: Model, training: TrainingConfig, *, compiled: bool) -> nn.Module:  # noqa: ARG002
        """The hidden tokens."""
        return GuessingObjective(model, compiled=compiled)
