"""Running an ONNX folder with onnxruntime: rows of unlike length together, and token after token."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from onnxruntime import InferenceSession

from regard.config import ModelConfig
from regard.exchange.verification import Probe

Tensors = dict[str, np.ndarray]


def onnx_log_probs(
    folder: Path, config: ModelConfig, given: Probe, *, bos: int, eos: int
) -> list[np.ndarray]:
    """What the graphs of a folder say of a probe, as `verification.log_probs` tells it of a model."""
    if config.architecture == "encoder":
        (logits,) = InferenceSession(folder / "classifier.onnx").run(None, _read(given.inputs))
        return list(_log_softmax(logits[:, None]))
    memory: Tensors = {}
    if config.architecture == "encoder-decoder":
        encoder, inputs = InferenceSession(folder / "encoder.onnx"), [(*ids, eos) for ids in given.inputs]
        read = _read(inputs)
        names = [port.name for port in encoder.get_outputs()[1:]]
        memory = dict(zip(names, encoder.run(names, read), strict=True))
        memory["memory_mask"] = read["attention_mask"]
    outputs = [(bos, *ids) for ids in given.outputs]
    logits = _decoded(InferenceSession(folder / "decoder.onnx"), _read(outputs), memory)
    return [_log_softmax(rows[: len(ids)]) for rows, ids in zip(logits, outputs, strict=True)]


def _read(sequences: Sequence[Sequence[int]]) -> Tensors:
    """Sequences in rows of one length, and a mask that says where they are."""
    longest = max(map(len, sequences))
    ids, mask = np.zeros((2, len(sequences), longest), np.int64)
    for row, sequence in enumerate(sequences):
        ids[row, : len(sequence)] = sequence
        mask[row, : len(sequence)] = 1
    return {"input_ids": ids, "attention_mask": mask}


def _decoded(decoder: InferenceSession, read: Tensors, memory: Tensors) -> np.ndarray:
    """Logits after every token: the first half read at once, the others one by one."""
    ids, mask = read["input_ids"], read["attention_mask"]
    n_rows, n_tokens = ids.shape
    ports = [port for port in decoder.get_inputs() if port.name.startswith("past.")]
    past = {port.name: np.zeros((n_rows, port.shape[1], 0, port.shape[3]), np.float32) for port in ports}
    found, start = [], 0
    for stop in range(n_tokens // 2, n_tokens + 1):
        new = {"input_ids": ids[:, start:stop], "attention_mask": mask[:, :stop]}
        logits, *present = decoder.run(None, {**new, **past, **memory})
        past, start = dict(zip(past, present, strict=True)), stop
        found.append(logits)
    return np.concatenate(found, axis=1)


def _log_softmax(logits: np.ndarray) -> np.ndarray:
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True)))
