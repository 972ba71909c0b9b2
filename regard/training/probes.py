"""Probes: the attention of every head in a few held-out sentences, stored at each validation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from regard.data.store import Store
from regard.look.trace.probes import Probe, probe_file, probe_files, write_probes
from regard.look.trace.recorder import look
from regard.text.vocabularies.vocabulary import Vocabulary

LENGTH = 14
"""Length of a probed sentence on each side, about: enough to see something, and small to store."""
LONGEST = 64
"""Longest sentence that is probed."""
KEPT = 128
"""Validations that are kept, about; of more, every other one is deleted."""


class Probing:
    """Stores probes in the folder of a run."""

    def __init__(
        self,
        run: Path,
        valid: Store,
        subwords: Vocabulary,
        *,
        sentences: int,
        every: int,
        labels: Sequence[str] = (),
    ) -> None:
        """`every` is the number of steps between validations; `labels` are those of a classifier."""
        self.run, self.subwords, self.every, self.labels = run, subwords, every, tuple(labels)
        self.pairs = (_pairs if len(valid.facts.sides) > 1 and not labels else _texts)(valid, sentences)

    def __call__(self, model: Any, step: int) -> None:
        """Store the probes of a step."""
        if not self.pairs:
            return
        was_training = model.training
        model.eval()
        found = [self._probe(model, *pair) for pair in self.pairs]
        model.train(was_training)
        path = probe_file(self.run, step)
        path.parent.mkdir(exist_ok=True)
        write_probes(path, found)
        self._thin_out(step)

    def _probe(self, model: Any, source: Sequence[int], other: Sequence[int]) -> Probe:
        """`other` is the output, or the right label, or empty."""
        if not self.labels:
            return Probe.of_trace(look(model, self.subwords, source, other or None))
        trace = look(model, self.subwords, source)
        named = replace(trace, pieces={i: self.labels[i] for i in trace.pieces})
        return Probe.of_trace(named, other[0])

    def resume_at(self, step: int) -> None:
        """Delete the probes of later steps, which a resumed run stores again."""
        for later, path in probe_files(self.run).items():
            if later > step:
                path.unlink()

    def _thin_out(self, newest: int) -> None:
        """Delete probes so that about `KEPT` and the newest remain, also in a run that was interrupted."""
        stride = 1
        while newest // (self.every * stride) > KEPT:
            stride *= 2
        for step, path in probe_files(self.run).items():
            if step != newest and step % (self.every * stride):
                path.unlink()


def _pairs(valid: Store, sentences: int) -> list[tuple[list[int], list[int]]]:
    """Pairs of about `LENGTH` tokens on both sides."""
    places = np.arange(len(valid))
    lengths = np.stack([valid.lengths(side, places).astype(np.int64) for side in (0, 1)])
    nearest = np.argsort(np.abs(lengths - LENGTH).sum(axis=0), kind="stable")[:sentences]
    chosen = [valid[int(i)] for i in nearest if lengths[:, i].max() <= LONGEST]
    return [(inputs.tolist(), outputs.tolist()) for inputs, outputs in chosen]


def _texts(valid: Store, sentences: int) -> list[tuple[list[int], list[int]]]:
    """Texts of about `LENGTH` tokens with their labels; of windows, which are long, the beginnings."""
    lengths = valid.lengths(0, np.arange(len(valid))).astype(np.int64)
    nearest = np.argsort(np.abs(lengths - LENGTH), kind="stable")[:sentences]
    examples = [[side.tolist() for side in valid[int(i)]] for i in nearest]
    # A window begins with the start token, or with the last token of the window before: both are skipped.
    skipped = len(valid.facts.sides) == 1
    return [(ids[skipped : skipped + LENGTH], label[0] if label else []) for ids, *label in examples]
