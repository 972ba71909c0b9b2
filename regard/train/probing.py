"""Probes of a run: at each validation, where every head looks in a few held-out sentences."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from regard.data.store import Store
from regard.look.looking import look
from regard.look.probes import Probe, probe_file, probe_files, write_probes
from regard.model.transformer import Transformer
from regard.text.vocabulary import Vocabulary

LENGTH = 14
"""Tokens that a probed sentence has on either side, about: enough to see something, and little to store."""
LONGEST = 64
"""A sentence that is longer is not probed."""
KEPT = 128
"""Validations that stay, about; when there are more, every other one goes."""


class Probing:
    """Stores probes in the folder of a run."""

    def __init__(self, run: Path, valid: Store, subwords: Vocabulary, *, sentences: int, every: int) -> None:
        """`every` is the number of steps between two validations."""
        self.run, self.subwords, self.every = run, subwords, every
        places = np.arange(len(valid))
        lengths = np.stack([valid.lengths(side, places).astype(np.int64) for side in (0, 1)])
        nearest = np.argsort(np.abs(lengths - LENGTH).sum(axis=0), kind="stable")[:sentences]
        chosen = [int(i) for i in nearest if lengths[:, i].max() <= LONGEST]
        self.pairs = [tuple(side.tolist() for side in valid[i]) for i in chosen]

    def __call__(self, model: Transformer, step: int) -> None:
        """Store what the model does now."""
        if not self.pairs:
            return
        was_training = model.training
        traces = [look(model.eval(), self.subwords, inputs, outputs) for inputs, outputs in self.pairs]
        model.train(was_training)
        path = probe_file(self.run, step)
        path.parent.mkdir(exist_ok=True)
        write_probes(path, [Probe.of_trace(trace) for trace in traces])
        self._thin_out(step)

    def go_on_from(self, step: int) -> None:
        """Take back what a run that is resumed will store again."""
        for later, path in probe_files(self.run).items():
            if later > step:
                path.unlink()

    def _thin_out(self, newest: int) -> None:
        """Keep one validation in so many, whether the run was stopped between them or not; and the newest."""
        stride = 1
        while newest // (self.every * stride) > KEPT:
            stride *= 2
        for step, path in probe_files(self.run).items():
            if step != newest and step % (self.every * stride):
                path.unlink()
