"""Translate with onnxruntime and sentencepiece alone, greedily: `python example.py TEXT [LANGUAGE]`."""

import json
import sys
from pathlib import Path
from unicodedata import normalize

import numpy as np
from onnxruntime import InferenceSession
from sentencepiece import SentencePieceProcessor


def translate(folder: Path, text: str, language: str | None = None) -> str:
    """Translate a sentence; a model of both directions needs the code of the target language."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    subwords = SentencePieceProcessor(model_file=str(folder / config["subwords"]))
    encoder, decoder = (InferenceSession(folder / f"{name}.onnx") for name in ("encoder", "decoder"))

    tag = [config["tags"][language]] if language else []
    ids = [*tag, *subwords.encode(normalize("NFC", text))]
    mask = np.ones((1, len(ids) + 1), np.int64)
    states = encoder.run(None, {"input_ids": np.array([[*ids, config["eos_id"]]]), "attention_mask": mask})
    memory = {port.name: state for port, state in zip(encoder.get_outputs()[1:], states[1:], strict=True)}
    # The cache of the output is empty at first: keys and values have length 0.
    shapes = {port.name: port.shape for port in decoder.get_inputs() if port.name.startswith("past.")}
    past = {name: np.zeros((1, shape[1], 0, shape[3]), np.float32) for name, shape in shapes.items()}

    written = [config["bos_id"]]
    limit = min(len(ids) + config["extra_length"], config["max_length"] - 1)
    while len(written) <= limit and written[-1] != config["eos_id"]:
        so_far = {
            "input_ids": np.array([written[-1:]]),
            "attention_mask": np.ones((1, len(written)), np.int64),
        }
        logits, *present = decoder.run(None, {**so_far, **past, "memory_mask": mask, **memory})
        past = dict(zip(past, present, strict=True))
        written.append(int(logits[0, -1].argmax()))
    return str(subwords.decode(written))


if __name__ == "__main__":
    print(translate(Path(__file__).parent, *sys.argv[1:]))
