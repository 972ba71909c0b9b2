"""A pair of made-up languages whose links are known, and a model that has learned to translate them."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path

from regard.bundle import save_bundle
from regard.config import RunConfig
from regard.data.store.writing import write_store
from regard.tasks.pairs import PairsLesson
from regard.text.vocabularies.subwords import Subwords, learn_subwords
from regard.training.loop import TrainingLoop
from tests.training.copying import config

INPUTS = [a + b for a in ("ka", "to", "mi") for b in ("sen", "dal", "vik", "pom")]
OUTPUTS = [f"{word[::-1]}e" for word in INPUTS[5:] + INPUTS[:5]]


def drawn(n: int, seed: int) -> list[tuple[str, str, frozenset[tuple[int, int]]]]:
    """Inputs, outputs and links: each word becomes another, and neighbours change places."""
    draw, rows = random.Random(seed), []
    for _ in range(n):
        words = draw.sample(range(len(INPUTS)), draw.randint(2, 6))
        order = [i ^ 1 if i ^ 1 < len(words) else i for i in range(len(words))]
        rows.append(
            (
                " ".join(INPUTS[i] for i in words),
                " ".join(OUTPUTS[words[i]] for i in order),
                frozenset((i, j) for j, i in enumerate(order)),
            )
        )
    return rows


@cache
def subwords() -> Subwords:
    lines = [text for inputs, outputs, _ in drawn(300, 1) for text in (inputs, outputs)]
    return Subwords(learn_subwords(lines, 340, threads=1))


def trained(folder: Path) -> Path:
    """The model folder."""
    run = TrainingLoop(folder / "run", small(), data(folder))
    run.train()
    return save_bundle(folder / "model", run.model, subwords=subwords().model)


def data(folder: Path) -> PairsLesson:
    """Pairs to learn from, and to validate with."""
    train, valid = _store(folder / "train", 3000, 1), _store(folder / "valid", 50, 2)
    return PairsLesson(train, valid, bos=subwords().bos_id, eos=subwords().eos_id)


def small(*more: str) -> RunConfig:
    """A run that is long enough to learn it, unless told otherwise."""
    settings = (
        f"model.vocab_size={subwords().vocab_size}", "model.d_model=32", "model.n_heads=2", "model.d_ff=64",
        "model.encoder_layers=1", "model.decoder_layers=2", "training.max_steps=500",
        "training.batch_tokens=500", "training.validate_every=1000", "training.checkpoint_every=1000",
    )  # fmt: skip
    return config(*settings, *more)


def _store(folder: Path, n: int, seed: int):
    rows = drawn(n, seed)
    columns = (subwords().encode([row[side] for row in rows]) for side in (0, 1))
    return write_store(
        folder,
        zip(*columns, strict=True),
        sides=("inputs", "outputs"),
        key=f"cipher-{seed}",
        vocab_size=subwords().vocab_size,
    )
