"""The attention of a few sentences during a training run, as the trainer stores it. Imports no torch.

    RUN/probes/step-00001000.safetensors    all probes of one validation

A probe is a small trace: the weights of every head, one byte each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from regard.errors import RequestError
from regard.look.trace.blocks import KINDS, Kind, layers_of
from regard.look.trace.data import TraceData
from regard.look.trace.file import packed, read_file, unpacked, write_file
from regard.look.trace.tokens import Tokens

FOLDER = "probes"


@dataclass(frozen=True, eq=False, slots=True)
class Probe:
    """One text or pair of texts, read by the model after some step."""

    inputs: Tokens | None
    """What the encoder reads; None without an encoder."""
    outputs: Tokens | None
    """The reference, shifted right; None of a classifier."""
    log_probs: np.ndarray
    """Of the token after each token of the outputs, or of the correct label."""
    likeliest: tuple[str, ...]
    """The most likely token at each place, or label."""
    weights: Mapping[Kind, np.ndarray]
    """(layers, heads, queries, keys) by kind; 255 is a weight of 1."""

    @staticmethod
    def of_trace(trace: TraceData, right: int | None = None) -> Probe:
        """The probe of a trace; of a classifier, with the number of the correct label."""
        n_rows = 1 if trace.outputs is None else len(trace.outputs)
        return Probe(
            inputs=trace.inputs,
            outputs=trace.outputs,
            log_probs=(trace.log_probs if right is None else _of_label(trace, right)).astype(np.float32),
            likeliest=tuple(trace.candidates(row)[0].text for row in range(n_rows)),
            weights={kind: _in_bytes(trace, kind) for kind in trace.kinds},
        )

    def attention(self, kind: Kind, layer: int, head: int) -> np.ndarray:
        """The attention weights of one head, (queries, keys), with an error of at most 0.2 %."""
        if kind not in self.weights:
            has = ", ".join(self.weights)
            raise RequestError(f"no {kind} attention; this probe has {has}", code="unknown_place")
        n_layers, n_heads = self.weights[kind].shape[:2]
        if not (0 <= layer < n_layers and 0 <= head < n_heads):
            has = f"layers 0 to {n_layers - 1} and heads 0 to {n_heads - 1}"
            raise RequestError(f"no layer {layer}, head {head}; there are {has}", code="unknown_place")
        return self.weights[kind][layer, head].astype(np.float32) / 255


class Validation(NamedTuple):
    """All probes of one validation."""

    step: int
    probes: tuple[Probe, ...]


def probes(run: Path | str) -> list[Validation]:
    """The probes of a run by step, first step first.

    Raises:
        RequestError: a file cannot be read.
    """
    return [Validation(step, read_probes(path)) for step, path in probe_files(Path(run)).items()]


def probe_files(run: Path) -> dict[int, Path]:
    """The files of a run by step, first step first."""
    files = (run / FOLDER).glob("step-*.safetensors")
    return {int(path.stem.removeprefix("step-")): path for path in sorted(files)}


def probe_file(run: Path, step: int) -> Path:
    """The file of a step."""
    return run / FOLDER / f"step-{step:08d}.safetensors"


def write_probes(path: Path, found: Sequence[Probe]) -> None:
    """Write one file."""
    header = [
        {
            "inputs": probe.inputs and probe.inputs.to_json(),
            "outputs": probe.outputs and probe.outputs.to_json(),
            "likeliest": list(probe.likeliest),
        }
        for probe in found
    ]
    arrays = {f"{i}.log_probs": probe.log_probs for i, probe in enumerate(found)}
    arrays |= {f"{i}.{kind}": probe.weights[kind] for i, probe in enumerate(found) for kind in probe.weights}
    write_file(path, packed({"probes": header}, arrays, contents="probes"))


def read_probes(path: Path) -> tuple[Probe, ...]:
    """Undo `write_probes`.

    Raises:
        RequestError: the file cannot be read, or does not hold probes.
    """
    header, arrays = unpacked(read_file(path), str(path), contents="probes")
    try:
        return tuple(
            Probe(
                inputs=_tokens(each["inputs"]),
                outputs=_tokens(each["outputs"]),
                log_probs=arrays[f"{i}.log_probs"],
                likeliest=tuple(each["likeliest"]),
                weights={kind: arrays[f"{i}.{kind}"] for kind in KINDS if f"{i}.{kind}" in arrays},
            )
            for i, each in enumerate(header["probes"])
        )
    except (KeyError, TypeError) as error:
        what = f"{path} is damaged, or was written by a later version: {error}"
        raise RequestError(what, code="damaged_file") from error


def _of_label(trace: TraceData, right: int) -> np.ndarray:
    """The log-probability of a label; of one that is not stored, the lowest that is."""
    ids, logits = (trace.arrays[f"said.{name}"][-1, 0] for name in ("ids", "logits"))
    log_probs: np.ndarray = logits - trace.arrays["said.normaliser"][-1, 0]
    there = log_probs[ids == right]
    return there if len(there) else log_probs.min(keepdims=True)


def _tokens(kept: Any) -> Tokens | None:
    return None if kept is None else Tokens.from_json(kept)


def _in_bytes(trace: TraceData, kind: Kind) -> np.ndarray:
    layers = range(layers_of(trace.config, kind))
    heads = range(trace.config.n_heads)
    weights = np.stack([[trace.attention(kind, layer, head) for head in heads] for layer in layers])
    return np.rint(weights * 255).astype(np.uint8)
