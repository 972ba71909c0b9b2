"""Whether a model in another format computes what it did before: a few sequences, read by both.

Ids are drawn by a seed, so that no text is needed; what is compared are log-probabilities.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from regard.config import ModelConfig
from regard.errors import BundleError

if TYPE_CHECKING:
    from regard.bundle.weights import Model

TOLERANCE = 1e-3
"""Of a log-probability, where nothing was rounded."""
LONGEST = 12


@dataclass(frozen=True, slots=True)
class Probe:
    """What both are given: inputs, and outputs where there is a decoder, without beginnings and ends."""

    inputs: tuple[tuple[int, ...], ...]
    outputs: tuple[tuple[int, ...], ...]

    @property
    def n_tokens(self) -> int:
        """Tokens of the outputs, or of the inputs where there are none, each with one that ends it."""
        return sum(len(ids) + 1 for ids in self.outputs or self.inputs)


@dataclass(frozen=True, slots=True)
class Verified:
    """What came of running both."""

    by: str
    """What ran the new one."""
    n_tokens: int
    difference: float
    """The largest between two log-probabilities of the same token."""

    def __str__(self) -> str:
        told = f"verified by {self.by}: {self.n_tokens} tokens compared"
        return f"{told}, log-probabilities differ by {self.difference:.1e} at most"


def probe(config: ModelConfig, *, count: int = 8) -> Probe:
    """Sequences of several lengths that a model of this shape can read."""
    random = np.random.default_rng(count)
    longest = max(1, min(LONGEST, config.max_length - 3))

    def drawn() -> tuple[tuple[int, ...], ...]:
        lengths = random.integers(1, longest + 1, count)
        return tuple(tuple(random.integers(0, config.vocab_size, n).tolist()) for n in lengths)

    inputs = () if config.architecture == "decoder" else drawn()
    return Probe(inputs, () if config.architecture == "encoder" else drawn())


def log_probs(model: Model, given: Probe, *, bos: int, eos: int) -> list[np.ndarray]:
    """What a model says of a probe, (tokens, vocabulary) each.

    Outputs stand behind `bos` and inputs before `eos`. The encoder alone reads inputs as they are, and tells
    labels, (1, labels).
    """
    import torch

    from regard.model.classifier import Classifier
    from regard.model.language_model import LanguageModel
    from regard.packing import pack

    with torch.inference_mode():
        if isinstance(model, Classifier):
            found, sizes = model(pack(given.inputs)), [1] * len(given.inputs)
        else:
            outputs, sizes = (
                pack([(bos, *ids) for ids in given.outputs]),
                [len(ids) + 1 for ids in given.outputs],
            )
            if isinstance(model, LanguageModel):
                found = model(outputs)
            else:
                found = model(pack([(*ids, eos) for ids in given.inputs]), outputs)
    return [rows.numpy() for rows in found.float().log_softmax(-1).split(sizes)]


def compared(
    by: str, given: Probe, ours: list[np.ndarray], theirs: list[np.ndarray], *, exact: bool
) -> Verified:
    """How far the two differ.

    Raises:
        BundleError: too far for a model in which nothing was rounded (`exact`).
    """
    pairs = zip(ours, theirs, strict=True)
    difference = max(float(np.abs(a.astype(np.float64) - b).max()) for a, b in pairs)
    if exact and not difference <= TOLERANCE:
        told = (
            f"{by} runs it, and log-probabilities differ by {difference:.1e}, where {TOLERANCE} is the most"
        )
        raise BundleError(f"what was written computes something else: {told}")
    return Verified(by, given.n_tokens, difference)
