"""`regard`, in the loop of the other contenders."""

from __future__ import annotations

import time
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from benchmarks.peers.contender import (
    ADAM,
    CLIP,
    D_FF,
    D_MODEL,
    N_HEADS,
    N_LAYERS,
    SEED,
    SMOOTHING,
    TOKENS,
    RunResult,
)
from benchmarks.peers.corpus import BOS, EOS, VOCABULARY, Corpus, Pair
from regard.config import ModelConfig
from regard.host import keep_freed_memory
from regard.loss import label_smoothed_cross_entropy
from regard.model.transformer import Transformer
from regard.packing import Packed, pack

Batch = tuple[Packed, Packed, Tensor]


class Ours:
    """`regard.Transformer` on packed batches; float32 weights, activations of the stated precision."""

    name = "regard"

    def __init__(self, corpus: Corpus, dropout: float, setting: str) -> None:
        keep_freed_memory()
        torch.manual_seed(SEED)
        config = ModelConfig(
            vocab_size=VOCABULARY,
            d_model=D_MODEL,
            n_heads=N_HEADS,
            d_ff=D_FF,
            encoder_layers=N_LAYERS,
            decoder_layers=N_LAYERS,
            dropout=dropout,
            attention_bias=True,
        )
        self.model = Transformer(config).train()
        self.model.compute_dtype = torch.bfloat16 if setting == "bf16" else torch.float32
        self.optimizer = torch.optim.AdamW(self.model.parameters(), fused=True, **ADAM)
        self.batches = packed_batches(corpus)

    def run(self, n_steps: int) -> RunResult:
        """Train for `n_steps` more steps."""
        batches = [next(self.batches) for _ in range(n_steps)]
        start = time.perf_counter()
        for batch in batches:
            loss = self.step(*batch)
        last_loss = loss.item()
        seconds = time.perf_counter() - start
        target_tokens = sum(len(targets_N) for _, _, targets_N in batches)
        source_tokens = sum(inputs.boundaries.n_tokens for inputs, _, _ in batches)
        return seconds, target_tokens, source_tokens, last_loss

    def step(self, inputs: Packed, outputs: Packed, targets_N: Tensor) -> Tensor:
        """Forward, loss, backward, clip, update."""
        states_ND = self.model.decode(outputs, self.model.encode(inputs))
        weight_VD = self.model.output_probabilities.weight
        loss = label_smoothed_cross_entropy(states_ND, weight_VD, targets_N, SMOOTHING)
        mean = loss.smoothed / len(targets_N)
        mean.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), CLIP)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return mean.detach()


def packed_batches(corpus: Corpus) -> Iterator[Batch]:
    """The batches of the corpus in a fixed order, for ever, made before the clock starts."""
    batches = [_pack(batch) for batch in corpus.batches(TOKENS, SEED)]
    while True:
        yield from batches


def _pack(batch: list[Pair]) -> Batch:
    inputs = pack([[*source, EOS] for source, _ in batch])
    outputs = pack([[BOS, *target] for _, target in batch])
    return inputs, outputs, torch.tensor([i for _, target in batch for i in (*target, EOS)])
