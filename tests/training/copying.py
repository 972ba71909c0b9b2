"""A small run for the tests of training: sequences of ids to write backwards, in a token store.

    python -m tests.training.copying [--own-threads] RUN [sharded] [stop=STEP] [SETTING=VALUE …] [, RUN …]

trains in the folder RUN and prints why it ended and the hash of the weights it ended with; then in the next
one. Several processes do it together where `torchrun` starts them; each leaves its id in RUN.RANK.pid.
"""

from __future__ import annotations

import os
import signal
import sys
from itertools import groupby
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save

from regard.bundle.weights import hash_of
from regard.config import RunConfig, read_config
from regard.data.store.writing import write_store
from regard.tasks.pairs import PairsLesson
from regard.training.checkpoints.checkpoint import whole_weights
from regard.training.distributed.world import World, join_world
from regard.training.loop import TrainingLoop

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


def data(folder: Path) -> PairsLesson:
    train, valid = backwards(folder / "train", 400, 1), backwards(folder / "valid", 50, 2)
    return PairsLesson(train, valid, bos=BOS, eos=EOS)


def config(*settings: str) -> RunConfig:
    return read_config(preset="tiny", settings=[*SETTINGS, *settings])


def stop_at(step: int):
    """Ask to stop, as a terminal or a job system does, when a step is done."""

    def hear(event):
        if event.get("step") == step and "loss" in event:
            os.kill(os.getpid(), signal.SIGTERM)

    return [hear]


def train(folder: Path, words: list[str], world: World) -> None:
    """One run, as the words say."""
    settings = [word for word in words if word.startswith(("model.", "training."))]
    stops = [int(word.removeprefix("stop=")) for word in words if word.startswith("stop=")]
    sharded = "sharded" in words
    folder.with_name(f"{folder.name}.{world.rank}.pid").write_text(str(os.getpid()))
    run = TrainingLoop(
        folder,
        config(*settings),
        data(folder.with_name(f"{folder.name}-data-{world.rank}")),
        world=world,
        sharded=sharded,
        listeners=[listener for step in stops for listener in stop_at(step)],
    )
    reason, weights = run.train(), whole_weights(run.model)
    # At one go: processes write to one pipe, and lines must not mix.
    os.write(sys.stdout.fileno(), f"{reason}: {hash_of(save(weights))}\n".encode())


def main() -> None:
    if "--own-threads" in sys.argv:  # those of OMP_NUM_THREADS
        sys.argv.remove("--own-threads")
    else:
        torch.set_num_threads(1)
    with join_world("cpu") as world:
        for is_comma, words in groupby(sys.argv[1:], lambda word: word == ","):
            if not is_comma:
                folder, *rest = words
                train(Path(folder), rest, world)


if __name__ == "__main__":
    main()
