"""The demo: use the translator that comes along; train another, score it, and look at its attention.

    python examples/demo.py [RUN] [--set A.B=C …]

Everything a user would type, in the order in which a user would type it; about two minutes on two cores.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from rich.console import Console

import regard
from regard.look.views.view import choose, printed

SENTENCES = [
    "三百二十一",
    "我有两只猫。",
    "会议在下午三点半开始。",
    "今天是五月二十二日。",
    "百分之六十五的学生来自东京。",
]
EVERYDAY = ["我昨天在图书馆丢了我的钥匙。", "Where is the nearest subway station?"]


def typed(*words: str) -> None:
    """What a user would type."""
    print("$ regard", *words, flush=True)
    subprocess.run([sys.executable, "-m", "regard", *words], check=True)
    print()


def main() -> None:
    """Train by the command line, then use the model from Python."""
    arguments = sys.argv[1:]
    run = Path(arguments.pop(0) if arguments and not arguments[0].startswith("-") else "runs/demo")
    typed("translate", *EVERYDAY)
    typed("train", "--builtin", "numerals", "--out", str(run), *arguments)
    model = regard.load(run)
    print("\nsentences of its kind that it may or may not have seen:")
    for source, result in zip(SENTENCES, model.translate(SENTENCES), strict=True):
        print(f"  {source}  →  {result.text}")
    trace = model.look(SENTENCES[2], beam_size=4)
    layer, head = model.aligning_heads.heads[0]
    print("\nwhere the head looks that aligns words best:")
    Console().print(printed(trace, choose(trace, "matrix", layer=layer, head=head)))
    trace.save(run / "attention.svg", "matrix", layer=layer, head=head)
    trace.save(run / "look.html", aligning=model.aligning_heads)
    print(f"\nthe same as a picture: {run / 'attention.svg'}")
    print(f"all heads, all numbers and the search as one page: {run / 'look.html'}")
    print(
        f"next: regard look --model {run} {SENTENCES[2]}, or on two files of your own: regard train SRC TGT"
    )


if __name__ == "__main__":
    main()
