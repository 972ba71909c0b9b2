"""A translator from pairs of texts: prepare, train, test. What `regard train` does."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from regard.bundle import load_bundle
from regard.config import RunConfig
from regard.data.store import Store
from regard.durable import write_atomically
from regard.engine.direction import Direction, Directions
from regard.look.alignment.aligner import MEASURED, measure_heads
from regard.look.alignment.alignment import AligningHeads, save_aligning_heads
from regard.model.transformer import Transformer
from regard.scores.testing import translate
from regard.scores.translation import TranslationScore, score_translations
from regard.text.normalisation import composed
from regard.training.distributed.world import World
from regard.training.loop import Run
from regard.training.preparation import (
    Follow,
    PairsSource,
    Tell,
    prepare_pairs,
    prepared_pairs,
)
from regard.training.probing import Probing
from regard.training.starting import Start
from regard.training.task_run import TaskRun
from regard.training.trial import Trial

LINKED = 3000
"""Pairs of the training set that help to learn the links by which heads are measured."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Tested:
    """What the best model made of the test set, in one direction."""

    direction: str
    """The languages, like zh-en."""
    score: TranslationScore
    sources: Sequence[str]
    outputs: Sequence[str]
    references: Sequence[str]


class TranslatorRun(TaskRun):
    """A run from pairs of texts to a tested model."""

    def __init__(
        self,
        folder: Path,
        config: RunConfig,
        source: Callable[[], PairsSource],
        world: World,
        *,
        start: Start | None = None,
        sharded: bool = False,
        tell: Tell = lambda _: None,
        follow: Follow = lambda rows, _: rows,
    ) -> None:
        super().__init__(folder, config, world)
        self.prepared = self._prepare(
            source, lambda data, pairs: prepare_pairs(data, pairs, tell, follow), prepared_pairs
        )
        sample: Callable[[Transformer], dict[str, Any]] = lambda _: {}  # noqa: E731
        if world.is_main:
            subwords, valid = self.prepared.subwords, self.prepared.data.valid
            sample = Trial(valid, subwords, config.task, config.decoding)
        probing = Probing(
            folder,
            self.prepared.data.valid,
            self.prepared.subwords,
            sentences=config.training.probe_sentences,
            every=config.training.validate_every,
        )
        self.run = Run(
            folder,
            config,
            self.prepared.data,
            world=world,
            sharded=sharded,
            sample=sample,
            probe=probing,
            start=start,
        )
        if world.is_main:
            probing.go_on_from(self.run.progress.step)

    def test(self) -> list[Tested]:
        """Translate the test set with the best model, in each direction, and keep the scores."""
        tested = self.outputs()
        scores = {each.direction: asdict(each.score) for each in tested}
        kept = scores if len(scores) > 1 else asdict(tested[0].score)
        described = {"decoding": asdict(self.config.decoding), **kept}
        write_atomically(self.folder / "scores.json", json.dumps(described, indent=1))
        return tested

    def outputs(self) -> list[Tested]:
        """What the best model makes of the test set, in each direction."""
        best = load_bundle(self.folder / "best", self.world.device).model
        assert isinstance(best, Transformer)
        directions = Directions(self.config.task, self.prepared.subwords).known
        sides = ((0, 1), (1, 0))[: len(directions)]
        return [self._test(best, *each) for each in zip(directions, sides, strict=True)]

    def _test(self, model: Transformer, direction: Direction, sides: tuple[int, int]) -> Tested:
        subwords = self.prepared.subwords
        sources, references = ([composed(row[side]) for row in self.prepared.test] for side in sides)
        # What is longer was left out of the set, or is to be cut.
        room = model.config.max_length - 1
        inputs = [(*direction.tag, *ids.tolist())[:room] for ids in subwords.encode(sources)]
        outputs = translate(model, subwords, inputs, self.config.decoding)
        score = score_translations(outputs, references, direction.target)
        name = f"{direction.source}-{direction.target}"
        return Tested(direction=name, score=score, sources=sources, outputs=outputs, references=references)

    def align(self) -> AligningHeads:
        """Measure which heads of the best model align words, on the validation set, and keep that with it.

        Raises:
            RequestError: the pairs are too few.
        """
        best = self.folder / "best"
        model, data = load_bundle(best, self.world.device).model, self.prepared.data
        assert isinstance(model, Transformer)
        held_out, others = _some(data.valid, MEASURED), _some(data.train, LINKED)
        heads = measure_heads(model, self.prepared.subwords, held_out, others)
        save_aligning_heads(best, heads)
        return heads


def _some(store: Store, n: int) -> list[tuple[np.ndarray, ...]]:
    """At most so many pairs of a store, from all over it."""
    return [store[int(i)] for i in np.unique(np.linspace(0, len(store) - 1, n).astype(np.int64))]
