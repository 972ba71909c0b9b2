"""The demo: train a small translator, score it, translate, look at its attention.

    python examples/demo.py [RUN] [--set A.B=C …]

Everything a user would type, in the order in which a user would type it; about two minutes on two cores.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table
from rich.text import Text
from torch import Tensor

import regard
from regard.look.heatmap import heatmap_svg
from regard.text.subwords import Subwords
from regard.train.testing import translate

SHADES = " ░▒▓█"
SENTENCES = [
    "三百二十一",
    "我有两只猫。",
    "会议在下午三点半开始。",
    "今天是五月二十二日。",
    "百分之六十五的学生来自东京。",
]


def attention(model: regard.Transformer, subwords: Subwords, source: str, target: str) -> Tensor:
    """Of the last decoder layer on the encoder, mean of the heads: (outputs, inputs)."""
    inputs = [*subwords.encode_one(source).tolist(), subwords.eos_id]
    outputs = [subwords.bos_id, *subwords.encode_one(target).tolist()]
    last = len(model.decoder.layers) - 1
    with torch.no_grad(), regard.recording(model) as seen:
        model(regard.pack([inputs]), regard.pack([outputs]))
    return seen[f"decoder.layers.{last}.multi_head_attention.weights"][0].mean(dim=0)


def pieces(subwords: Subwords, text: str) -> list[str]:
    """The pieces of a text as one reads them, and its end."""
    return [*(piece.strip("▁") or "·" for piece in subwords.pieces(subwords.encode_one(text))), "end"]


def show(console: Console, read: list[str], written: list[str], weights_TS: Tensor) -> None:
    """A heat map in the terminal: a row for each piece written, a column for each piece read."""
    table = Table(box=None, padding=(0, 0))
    for head in ("", *(f"{piece} " for piece in read)):
        table.add_column(head, justify="center")
    for piece, row in zip(written, weights_TS.tolist(), strict=True):
        table.add_row(f"{piece:>10} ", *(Text(SHADES[min(4, int(5 * weight))] * 2) for weight in row))
    console.print(table)


def main() -> None:
    """Train by the command line, then use the model from Python."""
    arguments = sys.argv[1:]
    run = Path(arguments.pop(0) if arguments and not arguments[0].startswith("-") else "runs/demo")
    command = ["train", "--builtin", "numerals", "--out", str(run), *arguments]
    print("$ regard", *command, flush=True)
    subprocess.run([sys.executable, "-m", "regard", *command], check=True)
    bundle = regard.load_bundle(run / "best")
    assert isinstance(bundle.model, regard.Transformer)
    assert bundle.subwords is not None
    subwords = Subwords(bundle.subwords)
    console = Console()
    print("\nsentences of its kind that it may or may not have seen:")
    outputs = translate(bundle.model, subwords, SENTENCES, bundle.decoding)
    for source, output in zip(SENTENCES, outputs, strict=True):
        print(f"  {source}  →  {output}")
    print("\nwhere its last decoder layer looks (a row: a piece written; a column: a piece read)")
    source, output = SENTENCES[2], outputs[2]
    read, written = pieces(subwords, source), pieces(subwords, output)
    weights_TS = attention(bundle.model, subwords, source, output)
    show(console, read, written, weights_TS)
    picture = run / "attention.svg"
    title = f"{source} → {output}"
    picture.write_text(heatmap_svg(weights_TS.numpy(), written, read, title), encoding="utf-8")
    print(f"\nthe same as a picture, with every weight: {picture}")
    print(f"next: regard translate --model {run} {source}, or on two files of your own: regard train SRC TGT")


if __name__ == "__main__":
    main()
