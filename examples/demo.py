"""The demo: use the translator that comes along; train another, score it, and look at its attention.

    python examples/demo.py [RUN] [--set A.B=C …]

Everything a user would type, in the order in which a user would type it. On two cores it takes less than two
minutes, most of them to train.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from rich.console import Console

import regard
from regard.look.views.view import choose, printed
from regard.scores.texts import example_lines

SENTENCES = {
    "会议在下午三点半开始。": "The meeting starts at half past three in the afternoon.",
    "今天是五月二十二日。": "Today is the twenty-second of May.",
    "百分之六十五的学生来自东京。": "Sixty-five per cent of the students are from Tokyo.",
}
"""Sentences of the built-in corpus, each with its one correct translation. The last two are held out."""
EVERYDAY = ["我昨天在图书馆丢了我的钥匙。", "Where is the nearest subway station?"]


def typed(*words: str) -> float:
    """What a user would type; returns the seconds that it took."""
    print("$ regard", *words, flush=True)
    began = time.monotonic()
    subprocess.run([sys.executable, "-m", "regard", *words], check=True)
    print()
    return time.monotonic() - began


def main() -> None:
    """Train by the command line, then use the model from Python."""
    arguments = sys.argv[1:]
    run = Path(arguments.pop(0) if arguments and not arguments[0].startswith("-") else "runs/demo")
    began = time.monotonic()
    typed("translate", *EVERYDAY)
    print("training a translator of numbers and dates, about a minute and a half on two cores:")
    seconds = typed("train", "--builtin", "numerals", "--out", str(run), *arguments)
    print(f"data, training and scores took {seconds:.0f} s")
    model = regard.load(run)
    outputs = [result.text for result in model.translate([*SENTENCES])]
    print("\nthe same from Python:")
    print(*example_lines([*SENTENCES], outputs, [*SENTENCES.values()]), sep="\n")
    sentence = next(iter(SENTENCES))
    trace = model.look(sentence, beam_size=4)
    layer, head = model.aligning_heads.heads[0]
    print("\nwhere the head looks that aligns words best:")
    Console().print(printed(trace, choose(trace, "matrix", layer=layer, head=head)))
    trace.save(run / "attention.svg", "matrix", layer=layer, head=head)
    trace.save(run / "look.html", aligning=model.aligning_heads)
    print(f"\nthe same as a picture: {run / 'attention.svg'}")
    print(f"all heads, all numbers and the search as one page: {run / 'look.html'}")
    print(f"next: regard look --model {run} {sentence}, or on two files of your own: regard train SRC TGT")
    print(f"the demo took {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
