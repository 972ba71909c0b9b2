"""A small run for the tests of training: sequences of ids to write backwards, in a token store.

    python -m tests.train.copying RUN [SETTING=VALUE …]

trains in the folder RUN and prints the hash of the weights it ends with.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch

from regard.bundle import weights_hash
from regard.config import RunConfig, read_config
from regard.data.store_writing import write_store
from regard.train.loop import PairsData, Run

BOS, EOS, VOCABULARY = 1, 2, 13
SETTINGS = (
    "model.vocab_size=13",
    "model.d_model=24",
    "model.n_heads=3",
    "model.d_ff=32",
    "model.encoder_layers=1",
    "model.decoder_layers=1",
    "training.batch_tokens=300",
    "training.schedule=cosine",
    "training.learning_rate=0.01",
    "training.warmup_steps=10",
    "training.max_steps=30",
    "training.validate_every=10",
    "training.checkpoint_every=4",
    "training.precision=float32",
    "training.average_checkpoints=1",
)


def backwards(folder: Path, n: int, seed: int):
    random = np.random.default_rng(seed)
    examples = []
    for _ in range(n):
        ids = random.integers(3, VOCABULARY, random.integers(2, 8)).astype(np.uint16)
        examples.append((ids, ids[::-1]))
    return write_store(
        folder, examples, sides=("inputs", "outputs"), key=f"backwards-{seed}", vocab_size=VOCABULARY
    )


def data(folder: Path) -> PairsData:
    train, valid = backwards(folder / "train", 400, 1), backwards(folder / "valid", 50, 2)
    return PairsData(train, valid, bos=BOS, eos=EOS)


def config(*settings: str) -> RunConfig:
    return read_config(preset="tiny", settings=[*SETTINGS, *settings])


def main() -> None:
    torch.set_num_threads(1)
    run = Path(sys.argv[1])
    trained = Run(run, config(*sys.argv[2:]), data(run.parent / f"{run.name}-data"))
    print(trained.train())
    print(weights_hash(trained.model))


if __name__ == "__main__":
    main()
