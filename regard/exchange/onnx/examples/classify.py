"""Label a text with onnxruntime and sentencepiece alone: `python example.py TEXT`."""

import json
import sys
from pathlib import Path
from unicodedata import normalize

import numpy as np
from onnxruntime import InferenceSession
from sentencepiece import SentencePieceProcessor


def classify(folder: Path, text: str) -> dict[str, float]:
    """The probability of each label, most probable first."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    subwords = SentencePieceProcessor(model_file=str(folder / config["subwords"]))
    classifier = InferenceSession(folder / "classifier.onnx")
    ids = [config["cls_id"], *subwords.encode(normalize("NFC", text))][: config["max_length"]]
    read = {"input_ids": np.array([ids]), "attention_mask": np.ones((1, len(ids)), np.int64)}
    (logits,) = classifier.run(None, read)
    weights = np.exp(logits[0] - logits[0].max())
    shares = 1 / (1 + np.exp(-logits[0])) if config["several_labels"] else weights / weights.sum()
    probabilities = zip(config["labels"], shares.tolist(), strict=True)
    return dict(sorted(probabilities, key=lambda each: -each[1]))


if __name__ == "__main__":
    print(classify(Path(__file__).parent, sys.argv[1]))
