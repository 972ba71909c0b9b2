"""What every contender shares: the sizes, the protocol, and the plain loop of the padded ones."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import ClassVar, Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.peers.corpus import BOS, EOS, PAD, Corpus, Pair

D_MODEL, N_HEADS, D_FF, N_LAYERS = 256, 4, 1024, 3
"""One model for all: post-norm, sinusoids, ReLU, one shared and scaled embedding table."""
TOKENS = 4096
"""Real tokens a side and step, at most."""
SMOOTHING, CLIP = 0.1, 1.0
LEARNING_RATE = 5e-4
ADAM = {"lr": LEARNING_RATE, "betas": (0.9, 0.98), "eps": 1e-9, "weight_decay": 0.0}
SEED = 1

RunResult = tuple[float, int, int, float]
"""Seconds, real target tokens, real source tokens, loss of the last step."""


class Contender(Protocol):
    """One way to train the model."""

    name: ClassVar[str]

    def __init__(self, corpus: Corpus, dropout: float, setting: str) -> None: ...

    def run(self, n_steps: int) -> RunResult:
        """Train for `n_steps` more steps."""
        ...


@dataclass(frozen=True)
class PaddedBatch:
    """A batch for the contenders that pad, on the right, made before the clock starts."""

    source_BS: Tensor
    source_is_real_BS: Tensor
    decoder_inputs_BT: Tensor
    labels_BT: Tensor
    """-100 where there is nothing to predict."""
    source_tokens: int
    target_tokens: int

    @property
    def has_source_padding(self) -> bool:
        return self.source_tokens < self.source_BS.numel()


def padded_batches(corpus: Corpus) -> Iterator[PaddedBatch]:
    """The batches of the corpus in a fixed order, for ever."""
    batches = [_pad(batch) for batch in corpus.batches(TOKENS, SEED)]
    while True:
        yield from batches


def _pad(batch: list[Pair]) -> PaddedBatch:
    def rows(sequences: list[list[int]], fill: int) -> Tensor:
        width = max(map(len, sequences))
        return torch.tensor([row + [fill] * (width - len(row)) for row in sequences])

    source_BS = rows([[*source, EOS] for source, _ in batch], PAD)
    labels_BT = rows([[*target, EOS] for _, target in batch], -100)
    return PaddedBatch(
        source_BS=source_BS,
        source_is_real_BS=source_BS != PAD,
        decoder_inputs_BT=rows([[BOS, *target] for _, target in batch], PAD),
        labels_BT=labels_BT,
        source_tokens=int((source_BS != PAD).sum()),
        target_tokens=int((labels_BT != -100).sum()),
    )


class PaddedContender:
    """The plain loop on padded batches; a subclass makes the model and its logits."""

    name: ClassVar[str]

    def __init__(self, corpus: Corpus, dropout: float, setting: str) -> None:
        torch.manual_seed(SEED)
        self.setting = setting
        self.autocast = setting.startswith("autocast")
        self.model = self.build(dropout).train()
        self.parameters = [p for p in self.model.parameters() if p.requires_grad]
        self.masters = self.parameters
        if setting.startswith("master"):
            self.masters = [p.detach().clone().requires_grad_() for p in self.parameters]
        if setting.startswith(("master", "weights")):
            self.model.to(torch.bfloat16)
        self.optimizer = torch.optim.AdamW(self.masters, fused=True, **ADAM)
        self.batches = padded_batches(corpus)

    def build(self, dropout: float) -> nn.Module:
        """The model of the stated sizes."""
        raise NotImplementedError

    def logits(self, batch: PaddedBatch) -> Tensor:
        """`(batch, length, vocabulary)`, before the softmax."""
        raise NotImplementedError

    def run(self, n_steps: int) -> RunResult:
        """Train for `n_steps` more steps."""
        batches = [next(self.batches) for _ in range(n_steps)]
        start = time.perf_counter()
        for batch in batches:
            loss = self.step(batch)
        last_loss = loss.item()
        seconds = time.perf_counter() - start
        target_tokens = sum(batch.target_tokens for batch in batches)
        source_tokens = sum(batch.source_tokens for batch in batches)
        return seconds, target_tokens, source_tokens, last_loss

    def step(self, batch: PaddedBatch) -> Tensor:
        """Forward, loss, backward, clip, update."""
        with torch.autocast("cpu", torch.bfloat16) if self.autocast else nullcontext():
            logits_BTV = self.logits(batch)
            loss = F.cross_entropy(
                logits_BTV.flatten(0, 1), batch.labels_BT.flatten(), label_smoothing=SMOOTHING
            )
        loss.backward()
        if self.masters is not self.parameters:
            for master, parameter in zip(self.masters, self.parameters, strict=True):
                master.grad, parameter.grad = parameter.grad.float(), None
        nn.utils.clip_grad_norm_(self.masters, CLIP)
        self.optimizer.step()
        self.optimizer.zero_grad()
        if self.masters is not self.parameters:
            with torch.no_grad():
                torch._foreach_copy_(self.parameters, self.masters)
        return loss.detach()
