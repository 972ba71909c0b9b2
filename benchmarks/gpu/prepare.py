"""Token ids with real sentence lengths for the GPU benchmark, small enough to carry to another machine.

    python benchmarks/gpu/prepare.py FOLDER OUT.npz [--source en --target de] [--pairs 60000]

FOLDER holds `train.SRC.xz` and `train.TGT.xz`; subwords are learned on both, 32,768 of them.
"""

from __future__ import annotations

import argparse
import io
import lzma
import random
from itertools import islice
from pathlib import Path

import numpy as np
import sentencepiece


def read(path: Path) -> list[str]:
    """Lines of a compressed text file."""
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        return [line.strip() for line in lines]


def main() -> None:
    """Learn subwords, encode a random sample of pairs, write lengths and ids."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--source", default="en")
    parser.add_argument("--target", default="de")
    parser.add_argument("--pairs", type=int, default=60_000)
    parser.add_argument("--vocab-size", type=int, default=32_768)
    args = parser.parse_args()
    sides = [read(args.folder / f"train.{language}.xz") for language in (args.source, args.target)]
    chosen = random.Random(1).sample(range(len(sides[0])), len(sides[0]))
    learn_from = (side[i] for i in islice(chosen, 150_000) for side in sides)
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=learn_from, model_writer=model, vocab_size=args.vocab_size, minloglevel=2
    )
    subwords = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    stored = {}
    for name, side in zip(("source", "target"), sides, strict=True):
        sentences = subwords.encode([side[i] for i in islice(chosen, args.pairs)])
        stored[f"{name}_lengths"] = np.array([len(ids) for ids in sentences], dtype=np.uint16)
        stored[f"{name}_ids"] = np.concatenate([np.array(ids, dtype=np.uint16) for ids in sentences])
    args.out.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(args.out, **stored)


if __name__ == "__main__":
    main()
