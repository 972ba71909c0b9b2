"""Continue a text with onnxruntime and sentencepiece alone, greedily: `python example.py TEXT`."""

import json
import sys
from pathlib import Path
from unicodedata import normalize

import numpy as np
from onnxruntime import InferenceSession
from sentencepiece import SentencePieceProcessor


def generate(folder: Path, text: str, max_tokens: int = 50) -> str:
    """The text and its continuation."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    subwords = SentencePieceProcessor(model_file=str(folder / config["subwords"]))
    decoder = InferenceSession(folder / "decoder.onnx")
    # The cache is empty at first: keys and values have length 0.
    shapes = {port.name: port.shape for port in decoder.get_inputs() if port.name.startswith("past.")}
    past = {name: np.zeros((1, shape[1], 0, shape[3]), np.float32) for name, shape in shapes.items()}

    new = [config["bos_id"], *subwords.encode(normalize("NFC", text))]
    written, limit = list(new), min(len(new) + max_tokens, config["max_length"])
    while len(written) < limit:
        so_far = {"input_ids": np.array([new]), "attention_mask": np.ones((1, len(written)), np.int64)}
        logits, *present = decoder.run(None, {**so_far, **past})
        past = dict(zip(past, present, strict=True))
        new = [int(logits[0, -1].argmax())]  # the prompt is read at once, then one token per step
        if new == [config["eos_id"]]:
            break
        written += new
    return str(subwords.decode(written))


if __name__ == "__main__":
    print(generate(Path(__file__).parent, sys.argv[1]))
