"""A table of labels and texts to a classifier: which season is a date in?

    python examples/classifier.py [RUN] [--set A.B=C …]

The encoder alone, with [CLS]. The table is made from the dates beside this file; a label, a tab and a text a
line is all that `regard train --task classify` wants. Some twenty seconds.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import regard

HERE = Path(__file__).parent
SEASONS = {
    "spring": "三月 四月 五月",
    "summer": "六月 七月 八月",
    "autumn": "九月 十月 十一月",
    "winter": "十二月 一月 二月",
}
SMALL = {
    "model.vocab_size": 420,
    "model.d_model": 64,
    "model.d_ff": 256,
    "model.encoder_layers": 2,
    "model.max_length": 32,
    "training.batch_tokens": 640,
    "training.max_steps": 250,
    "training.learning_rate": 2e-3,
    "training.warmup_steps": 30,
}


def season(date: str) -> str:
    """By its month: what stands before 月."""
    month = date.partition("月")[0] + "月"
    return next(name for name, months in SEASONS.items() if month in months.split())


def write_table(path: Path) -> None:
    """A line for each date."""
    path.parent.mkdir(parents=True, exist_ok=True)
    dates = (HERE / "dates.zh").read_text(encoding="utf-8").splitlines()
    path.write_text("".join(f"{season(date)}\t{date}\n" for date in dates), encoding="utf-8")


def main() -> None:
    """Train by the command line, then label from Python."""
    arguments = sys.argv[1:]
    run = Path(arguments.pop(0) if arguments and not arguments[0].startswith("-") else "runs/seasons")
    table = run.parent / "seasons.tsv"
    write_table(table)
    settings = [word for name, value in SMALL.items() for word in ("--set", f"{name}={value}")]
    command = ["train", "--task", "classify", str(table), "--out", str(run), *settings, *arguments]
    print("$ regard", *command, flush=True)
    subprocess.run([sys.executable, "-m", "regard", *command], check=True)
    model = regard.load(run)
    for date in ("三月五日", "十一月二十日星期日", "七月七日"):
        label = model.classify(date).label
        print(f"{date}  →  {label}  ({'right' if label == season(date) else f'wrong: {season(date)}'})")


if __name__ == "__main__":
    main()
