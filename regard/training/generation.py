"""A generator from documents: prepare, train, test. What `regard train --task generate` does."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from regard.bundle import load_bundle
from regard.config import RunConfig
from regard.data.batches import one_pass
from regard.data.store import Store
from regard.durable import write_atomically
from regard.engine.generator import Generator
from regard.engine.options import GenerateOptions
from regard.model.language_model import LanguageModel
from regard.scores.perplexity import Perplexity
from regard.text.vocabularies.vocabulary import Vocabulary
from regard.training.distributed.world import World
from regard.training.loop import Run
from regard.training.preparation import Tell
from regard.training.probing import Probing
from regard.training.starting import Start
from regard.training.step import evaluate
from regard.training.task_run import TaskRun
from regard.training.texts import TextSource, prepare_texts, prepared_texts

SHOWN = 24
"""Tokens of a held-out text that are read, and as many that are written, at each validation."""
TEST_TOKENS = 8192
"""Tokens that are measured at once."""


class GeneratorRun(TaskRun):
    """A run from documents to a tested model."""

    def __init__(
        self,
        folder: Path,
        config: RunConfig,
        source: Callable[[], TextSource],
        world: World,
        *,
        start: Start | None = None,
        sharded: bool = False,
        tell: Tell = lambda _: None,
    ) -> None:
        super().__init__(folder, config, world)
        self.prepared = self._prepare(
            source, lambda data, found: prepare_texts(data, found, tell), prepared_texts
        )
        lesson = self.prepared.lesson
        sample = ContinuedText(lesson.valid, self.prepared.subwords) if world.is_main else _nothing
        probing = Probing(
            folder,
            lesson.valid,
            self.prepared.subwords,
            sentences=config.training.probe_sentences,
            every=config.training.validate_every,
        )
        self.run = Run(
            folder, config, lesson, world=world, sharded=sharded, sample=sample, probe=probing, start=start
        )
        if world.is_main:
            probing.go_on_from(self.run.progress.step)

    def test(self) -> Perplexity:
        """Measure the best model on the test set, or else on the validation set, and keep that."""
        best = load_bundle(self.folder / "best", self.world.device).model
        lesson, store = self.prepared.lesson, self.prepared.test
        longest = max(TEST_TOKENS, store.facts.sides[0].longest)
        batches = (lesson.batch(store, part) for part in one_pass(store, lesson.budget(longest)))
        score = evaluate(
            lesson.objective(best, self.config.training, compiled=False), batches, self.world.device
        )
        found = Perplexity(
            nll=score.nll,
            n_tokens=score.n_targets,
            n_bytes=self.prepared.test_bytes,
            held_out="validation" if store is lesson.valid else "test",
        )
        write_atomically(self.folder / "scores.json", json.dumps(asdict(found) | found.measures(), indent=1))
        return found

    def example(self) -> tuple[str, str]:
        """The beginning of a held-out text, and how the best model goes on."""
        best = load_bundle(self.folder / "best", self.world.device).model
        found = ContinuedText(self.prepared.test, self.prepared.subwords)(best)["sample"]
        return found["source"], found["output"]


class ContinuedText:
    """The beginning of the same held-out text, continued at each validation."""

    def __init__(self, valid: Store, subwords: Vocabulary) -> None:
        self.subwords = subwords
        longest = int(np.argmax(valid.lengths(0, np.arange(len(valid)))))
        ids = valid[longest][0].tolist()
        cut = min(SHOWN, len(ids) // 2)
        self.prompt, self.reference = (subwords.decode(part) for part in (ids[:cut], ids[cut : cut + SHOWN]))

    def __call__(self, model: Any) -> dict[str, Any]:
        """What the model writes, the likeliest token each time."""
        assert isinstance(model, LanguageModel)
        was_training = model.training
        options = GenerateOptions(max_tokens=SHOWN, temperature=0.0, past_length="slide")
        text = Generator(model, self.subwords).generate(self.prompt, options).text
        model.train(was_training)
        return {"sample": {"source": self.prompt, "output": text, "reference": self.reference}}


def _nothing(_: Any) -> dict[str, Any]:
    return {}
