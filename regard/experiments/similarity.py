"""Five ways to compare a query with a key: the paper's, and those that it was preferred to (3.2.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import e
from typing import get_args

import torch

from regard.config import ModelConfig, SimilarityName
from regard.experiments.experiment import Experiment, Size
from regard.experiments.findings import Both, Chart, Findings, Judgement, Line, PerSeed, Table
from regard.experiments.tasks import Pair, reversing
from regard.experiments.training import make_batch, plan, score, train
from regard.model.taps import recording
from regard.model.transformer import Transformer

CLAIM = Both(
    "Additive and dot-product attention learn alike while d_k is small; for larger d_k the additive one beats "
    "dot products that are not scaled, and the scaled ones catch up, for less work.",
    "d_k 较小时，加性注意力与点积注意力效果相近；d_k 较大时，加性注意力优于未缩放的点积，而缩放后的点积能以更少的计算追平。",
)

KINDS: tuple[SimilarityName, ...] = get_args(SimilarityName)
LENGTHS = (5, 12)
CROSS = "decoder.layers.0.multi_head_attention.weights"

Found = dict[tuple[SimilarityName, int], PerSeed]


@dataclass(frozen=True, slots=True)
class _Setup:
    steps: int
    d_k: tuple[int, ...]
    tested: int = 200


SETUP: dict[Size, _Setup] = {
    "short": _Setup(steps=3, d_k=(8,), tested=20),
    "normal": _Setup(steps=300, d_k=(8, 128)),
    "long": _Setup(steps=1500, d_k=(8, 32, 128, 512), tested=1000),
}


def sharpest_cosine(keys: int) -> float:
    """The most that one of so many keys can weigh where scores lie between -1 and 1."""
    return e / (e + (keys - 1) / e)


def run(size: Size, seeds: Sequence[int]) -> Findings:
    """Teach models to reverse, alike but for their similarity; see what they learned and how they look."""
    setup = SETUP[size]
    losses: Found = {}
    sharpness: Found = {}
    parameters: dict[tuple[SimilarityName, int], int] = {}
    held_out = reversing(LENGTHS).held_out(setup.tested)
    for key in ((kind, d_k) for d_k in setup.d_k for kind in KINDS):
        models = [_taught(*key, setup.steps, seed) for seed in seeds]
        losses[key] = PerSeed.of(score(model, held_out).loss for model in models)
        sharpness[key] = PerSeed.of(largest_weights(model, held_out).mean().item() for model in models)
        parameters[key] = models[0].n_parameters
    columns = ("similarity", "d_k", "parameters", "loss, nats a token", "largest weight on the memory")
    rows = tuple((*key, parameters[key], losses[key], sharpness[key]) for key in losses)
    charts = (
        _chart("loss after training, nats a token", setup, losses),
        _chart("largest weight of cross-attention", setup, sharpness),
    )
    tables = (Table(f"reversing, {setup.steps} steps", columns, rows),)
    return Findings(tables, charts, _verdict(setup, losses, sharpness))


def make_model(kind: SimilarityName, d_k: int) -> Transformer:
    """A small model that compares in this way."""
    config = ModelConfig(
        vocab_size=reversing(LENGTHS).vocab_size,
        d_model=32,
        n_heads=2,
        d_k=d_k,
        d_ff=64,
        encoder_layers=1,
        decoder_layers=1,
        dropout=0.0,
        similarity=kind,
    )
    return Transformer(config)


def _taught(kind: SimilarityName, d_k: int, steps: int, seed: int) -> Transformer:
    torch.manual_seed(seed)
    model = make_model(kind, d_k)
    train(model, reversing(LENGTHS), plan(steps, 4e-3), seed)
    return model


@torch.no_grad()
def largest_weights(model: Transformer, pairs: Sequence[Pair]) -> torch.Tensor:
    """Of each head and each output token, how much the key that it looks at most weighs."""
    batch = make_batch(pairs)
    with recording(model, keep=CROSS.__eq__) as seen:
        model(batch.inputs, batch.outputs)
    largest_BHL = seen[CROSS].amax(dim=-1)
    return largest_BHL.transpose(1, 2)[batch.outputs.boundaries.exists_BL]


def _chart(name: str, setup: _Setup, found: Found) -> Chart:
    lines = (Line(kind, setup.d_k, [found[kind, d_k] for d_k in setup.d_k]) for kind in KINDS)
    return Chart(name, "d_k", tuple(lines), log_x=True)


def _verdict(setup: _Setup, losses: Found, sharpness: Found) -> tuple[Judgement, ...]:
    small, large = setup.d_k[0], setup.d_k[-1]
    ordered = sorted(KINDS, key=lambda kind: losses[kind, large].mean)
    alike = max(
        losses[kind, small].mean / losses["scaled-dot", small].mean for kind in ("dot", "additive")
    )
    plain, scaled, additive = (losses[kind, large] for kind in ("dot", "scaled-dot", "additive"))
    cosine, usual = sharpness["cosine", large], sharpness["scaled-dot", large]
    best = ", ".join(f"{kind} {losses[kind, large].mean:.3f}" for kind in ordered)
    return ()


EXPERIMENT = Experiment("similarity", CLAIM, run)
