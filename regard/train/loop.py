"""A run: a folder, a configuration, two token stores, and a model that gets better.

    RUN/data/           what it learns from, when that was made from files (`preparation.py`)
    RUN/.lock           held by the process that is at work (`lock.py`)
    RUN/config.toml     the whole configuration, which may not change when the run is resumed
    RUN/journal.jsonl   what happened
    RUN/checkpoints/    the newest checkpoints
    RUN/best/           the model folder with the lowest validation loss
    RUN/last/           the model folder at the end
    RUN/scores.json     what `regard train` measured on the test set, with signatures

Kill a run at any moment and start it again: it goes on from its newest checkpoint and ends with the same
weights, to the bit, as if it had never stopped.
"""

from __future__ import annotations

import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from regard.bundle import save_bundle
from regard.config import RunConfig, TrainingConfig, read_config, to_toml
from regard.data.batches import PAIRS_EXTRA, Budget, PairsBatch, make_pairs_batch, one_pass
from regard.data.store import Store
from regard.data.stream import BatchStream
from regard.durable import write_whole
from regard.errors import ConfigError
from regard.model.transformer import Transformer
from regard.train.checkpoint import checkpoints, load_checkpoint, prune, save_checkpoint
from regard.train.journal import Journal
from regard.train.lock import LOCK
from regard.train.optimizer import make_optimizer
from regard.train.schedule import learning_rate
from regard.train.step import Score, evaluate, train_step

DATA = "data"
"""Where a run keeps what was prepared for it."""
ASKED_TO_STOP = "asked to stop"
"""Why a run left that may go on."""
KEPT = 3
"""Checkpoints that stay."""


@dataclass(frozen=True, eq=False)
class PairsData:
    """What an encoder-decoder model learns from, and is measured on."""

    train: Store
    valid: Store
    bos: int
    eos: int
    subwords: bytes | None = None
    """Goes into the model folder."""


@dataclass
class Progress:
    """What a run remembers beside weights and data; written with every checkpoint."""

    step: int = 0
    best_loss: float = float("inf")
    best_step: int = 0
    validated: int = 0
    """The step of the last validation."""
    stale: int = 0
    """Validations since the best."""
    seconds: float = 0.0
    """Time spent training, interruptions not counted."""


class Run:
    """Trains a translator in a folder, from the start or from its newest checkpoint."""

    def __init__(
        self,
        folder: Path,
        config: RunConfig,
        data: PairsData,
        on_step: Callable[[Progress, Score], None] = lambda *_: None,
    ) -> None:
        self.folder, self.config, self.data, self.on_step = folder, config, data, on_step
        tokens = config.training.batch_tokens // config.training.accumulate
        self.budget = Budget(tokens=(tokens, tokens), extra=PAIRS_EXTRA)
        for store in (data.train, data.valid):
            self.budget.check(store)
        claim(folder, config)
        torch.manual_seed(config.training.seed)
        # The size of the vocabulary is the data's: it may have fewer subwords than were asked for.
        self.model = Transformer(replace(config.model, vocab_size=data.train.facts.vocab_size))
        self.model.compute_dtype = compute_dtype(config.training)
        self.optimizer = make_optimizer(self.model, config.training)
        self.progress = Progress()
        self.journal = Journal(folder / "journal.jsonl")
        self.stream = self._resume()

    def train(self) -> str:
        """Train until a limit is reached or somebody asks to stop; says which."""
        self.model.train()
        with self.stream, asked_to_stop() as asked:
            reason = self.reason_to_stop()
            while reason is None and not asked():
                started = time.perf_counter()
                self._step()
                if self.progress.step % self.config.training.validate_every == 0:
                    self._validate()
                self.progress.seconds += time.perf_counter() - started
                reason = self.reason_to_stop()
                if reason is None and self.progress.step % self.config.training.checkpoint_every == 0:
                    self._checkpoint()
            return self._leave(reason)

    def reason_to_stop(self) -> str | None:
        """The limit that is reached, in words; None while there is none."""
        training, progress = self.config.training, self.progress
        limits = {
            f"{progress.step:,} steps are done": progress.step >= training.max_steps,
            f"{training.max_epochs} epochs are done": self.stream.epochs >= (training.max_epochs or np.inf),
            f"{training.max_minutes} minutes are over": progress.seconds
            >= 60 * (np.inf if training.max_minutes is None else training.max_minutes),
            f"no better loss in {progress.stale} validations": 0 < training.patience <= progress.stale,
        }
        return next((words for words, reached in limits.items() if reached), None)

    @property
    def share_done(self) -> float:
        """How much of the run is behind, by the limit that comes first."""
        training, progress = self.config.training, self.progress
        minutes = training.max_minutes
        return max(
            progress.step / training.max_steps,
            self.stream.epochs / (training.max_epochs or np.inf),
            0.0 if minutes is None else progress.seconds / max(1e-9, 60 * minutes),
        )

    def _step(self) -> None:
        training = self.config.training
        batches = [next(self.stream) for _ in range(training.accumulate)]
        rate = learning_rate(training, self.config.model.d_model, self.progress.step + 1)
        score = train_step(self.model, self.optimizer, batches, rate, training)
        self.progress.step += 1
        self.journal.write(
            step=self.progress.step,
            loss=score.loss,
            accuracy=score.accuracy,
            tokens=score.n_tokens,
            learning_rate=rate,
            seconds=round(self.progress.seconds, 3),
        )
        self.on_step(self.progress, score)

    def _validate(self) -> None:
        batches = (self._make(self.data.valid, indices) for indices in one_pass(self.data.valid, self.budget))
        score, progress = evaluate(self.model, batches), self.progress
        progress.validated = progress.step
        better = score.loss < progress.best_loss
        if better:
            progress.best_loss, progress.best_step = score.loss, progress.step
        progress.stale = 0 if better else progress.stale + 1
        self.journal.write(step=progress.step, valid_loss=score.loss, valid_accuracy=score.accuracy)
        if better:
            self._save("best", {"valid_loss": score.loss, "valid_accuracy": score.accuracy})

    def _leave(self, reason: str | None) -> str:
        """At the end a last validation and the last model; when asked to stop, a checkpoint to go on from."""
        if reason is not None and self.progress.validated < self.progress.step:
            self._validate()
        done = [int(place.name.removeprefix("step-")) for place in checkpoints(self.folder / "checkpoints")]
        if self.progress.step not in done:
            self._checkpoint()
        if reason is None:
            return ASKED_TO_STOP
        self._save("last", {})
        return reason

    def _save(self, name: str, metrics: dict[str, Any]) -> None:
        save_bundle(
            self.folder / name,
            self.model,
            subwords=self.data.subwords,
            metrics={"step": self.progress.step, **metrics},
            decoding=self.config.decoding,
            overwrite=True,
        )

    def _checkpoint(self) -> None:
        state = {
            "progress": asdict(self.progress),
            "stream": self.stream.state(),
            "journal": self.journal.length(),
        }
        folder = self.folder / "checkpoints"
        save_checkpoint(folder, self.model, self.optimizer, self.progress.step, state)
        prune(folder, KEPT)

    def _resume(self) -> BatchStream[PairsBatch]:
        self._sweep()
        found = checkpoints(self.folder / "checkpoints")
        state = load_checkpoint(found[-1], self.model, self.optimizer) if found else None
        if state is not None:
            self.progress = Progress(**state["progress"])
        self.journal.cut(0 if state is None else state["journal"])
        return BatchStream(
            self.data.train,
            self._make,
            budget=self.budget,
            seed=self.config.training.seed,
            state=None if state is None else state["stream"],
        )

    def _sweep(self) -> None:
        """Clear away what a killed process left half-written; a model that it had set aside comes back."""
        for name in ("best", "last"):
            for aside in self.folder.glob(f".{name}.*.old"):
                if not (self.folder / name).exists():
                    aside.rename(self.folder / name)
        for left in (*self.folder.glob(".*.old"), *self.folder.glob(".*.new"), *self.folder.glob("*/.*.new")):
            shutil.rmtree(left, ignore_errors=True)

    def _make(self, store: Store, indices: np.ndarray) -> PairsBatch:
        return make_pairs_batch(store, indices, bos=self.data.bos, eos=self.data.eos)


def claim(folder: Path, config: RunConfig) -> None:
    """Make a folder this run's, before anything is written to it.

    Raises:
        ConfigError: see `refuse_other`.
    """
    refuse_other(folder, config)
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / "config.toml", to_toml(config))


def refuse_other(folder: Path, config: RunConfig) -> None:
    """Raise unless a folder is free for this run, or already its own; nothing is written.

    Raises:
        ConfigError: it holds something else, or a run of another configuration that has begun.
    """
    file = folder / "config.toml"
    if folder.exists() and not folder.is_dir():
        raise ConfigError("a file of that name is in the way; choose another folder", str(folder))
    if not file.exists() and folder.is_dir() and any(path.name != LOCK for path in folder.iterdir()):
        raise ConfigError("the folder holds something else; choose another", str(folder))
    if has_begun(folder):
        before, now = (_flat(each) for each in (read_config(file=file), config))
        changed = [
            f"{name} was {before[name]} and is {now[name]}" for name in now if before[name] != now[name]
        ]
        if changed:
            hint = "a run goes on as it began: give it the same settings, or another folder"
            raise ConfigError([*changed, hint], str(folder))


def has_begun(folder: Path) -> bool:
    """Whether there is a checkpoint to go on from; until then, settings and data may change."""
    return bool(checkpoints(folder / "checkpoints"))


def _flat(config: RunConfig) -> dict[str, object]:
    sections = asdict(config)
    return {f"{s}.{name}": value for s, settings in sections.items() for name, value in settings.items()}


def compute_dtype(config: TrainingConfig) -> torch.dtype:
    """What activations are computed in."""
    if config.precision == "auto":
        fast = getattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)()
        return torch.bfloat16 if fast else torch.float32
    return torch.bfloat16 if config.precision == "bfloat16" else torch.float32


@contextmanager
def asked_to_stop() -> Iterator[Callable[[], bool]]:
    """Turn SIGINT and SIGTERM into a question that can be asked between steps."""
    asked: list[int] = []
    signals = (signal.SIGINT, signal.SIGTERM)

    def note(number: int, _: object) -> None:
        if asked:  # whoever asks twice means at once
            raise KeyboardInterrupt
        asked.append(number)

    before = [signal.signal(each, note) for each in signals]
    try:
        yield lambda: bool(asked)
    finally:
        for each, handler in zip(signals, before, strict=True):
            signal.signal(each, handler)
