"""Check that a converted model computes what the original does: both read the same sequences.

The sequences are random token ids from a fixed seed, so no text is needed. Log-probabilities are compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from regard.config import ModelConfig
from regard.errors import BundleError

if TYPE_CHECKING:
    from regard.bundle.weights import Model
    from regard.exchange.outputs import Agreement

TOLERANCE = 1e-3
"""Largest difference between log-probabilities of unrounded models."""
LONGEST = 12


@dataclass(frozen=True, slots=True)
class ProbeSequences:
    """Sequences for both models, inputs or outputs or both, without the ids that begin and end them."""

    inputs: tuple[tuple[int, ...], ...]
    outputs: tuple[tuple[int, ...], ...]

    @property
    def n_tokens(self) -> int:
        """Tokens of the outputs, or of the inputs where there are no outputs, the end counted."""
        return sum(len(ids) + 1 for ids in self.outputs or self.inputs)


@dataclass(frozen=True, slots=True)
class Verified:
    """The result of a comparison."""

    by: str
    """The library that ran the converted model."""
    n_tokens: int
    difference: float
    """The largest difference between two log-probabilities of the same token."""
    agreement: Agreement | None = None
    """How many outputs are equal, where outputs were compared."""

    def __str__(self) -> str:
        equal = self.agreement is None or not self.agreement.reasons
        compared = f"{'verified' if equal else 'compared'} by {self.by}: {self.n_tokens} tokens compared"
        line = f"{compared}, log-probabilities differ by at most {self.difference:.1e}"
        return line if self.agreement is None else f"{line}\n{self.agreement}"


def draw_probe(config: ModelConfig, *, count: int = 8) -> ProbeSequences:
    """Random sequences of several lengths for a model of this shape."""
    random = np.random.default_rng(count)
    longest = max(1, min(LONGEST, config.max_length - 3))

    def draw() -> tuple[tuple[int, ...], ...]:
        lengths = random.integers(1, longest + 1, count)
        return tuple(tuple(random.integers(0, config.vocab_size, n).tolist()) for n in lengths)

    inputs = () if config.architecture == "decoder" else draw()
    return ProbeSequences(inputs, () if config.architecture == "encoder" else draw())


def log_probs(model: Model, probe: ProbeSequences, *, bos: int, eos: int) -> list[np.ndarray]:
    """A model's log-probabilities for every sequence of a probe, (tokens, vocabulary).

    Outputs begin with `bos`, inputs end with `eos`. A classifier reads plain inputs, and gives
    (1, labels).
    """
    import torch

    from regard.model.classifier import Classifier
    from regard.model.language_model import LanguageModel
    from regard.packing import pack

    with torch.inference_mode():
        if isinstance(model, Classifier):
            logits, sizes = model(pack(probe.inputs)), [1] * len(probe.inputs)
        else:
            outputs = pack([(bos, *ids) for ids in probe.outputs])
            sizes = [len(ids) + 1 for ids in probe.outputs]
            if isinstance(model, LanguageModel):
                logits = model(outputs)
            else:
                logits = model(pack([(*ids, eos) for ids in probe.inputs]), outputs)
    return [rows.numpy() for rows in logits.float().log_softmax(-1).split(sizes)]


def compare(
    by: str, probe: ProbeSequences, ours: list[np.ndarray], theirs: list[np.ndarray], *, exact: bool
) -> Verified:
    """How far the log-probabilities of two models differ.

    Raises:
        BundleError: they differ too much for a model whose weights were not rounded (`exact`).
    """
    pairs = zip(ours, theirs, strict=True)
    difference = max(float(np.abs(a.astype(np.float64) - b).max()) for a, b in pairs)
    if exact and not difference <= TOLERANCE:
        problem = f"log-probabilities differ by {difference:.1e}, at most {TOLERANCE} is expected"
        raise BundleError(
            f"the exported model, run by {by}, computes something else: {problem}", code="wrong_export"
        )
    return Verified(by, probe.n_tokens, difference)
