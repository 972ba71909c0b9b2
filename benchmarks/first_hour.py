"""The first hour of a practitioner: `regard train` on small real corpora with no option set, and its results.

    python benchmarks/first_hour.py DATA                    all of it, about half an hour on two cores
    python benchmarks/first_hour.py DATA --only further labels

DATA has `multi30k/` (train, test2016 in en and de), `wmt-zh-en/tico19-test` in zh and en,
`classification/sst2/` (train, valid, test) and `generation/tang_poems/`, each file packed by xz. Commands run
as a user types them, in a temporary folder; times are wall times, from the command to the scored model.
"""

from __future__ import annotations

import argparse
import json
import lzma
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

PAIRS, FURTHER, LABELLED = 8000, 600, 3000
KILOBYTES = 45


def main() -> None:
    """Run the parts that are named, and print a row for each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--only", nargs="+", choices=sorted(PARTS), default=list(PARTS))
    options = parser.parse_args()
    print("| work | command | minutes | result | bar |\n|---|---|---|---|---|", flush=True)
    for name in options.only:
        with tempfile.TemporaryDirectory() as folder:
            print(PARTS[name](options.data.resolve(), Path(folder)), flush=True)


def translator(data: Path, folder: Path) -> str:
    """8,000 pairs of Multi30k, from random weights."""
    pairs = zip(*(read(data / f"multi30k/train.{code}.xz") for code in ("en", "de")), strict=True)
    write_pairs(folder, "a", random.Random(1).sample(list(pairs), PAIRS), ("en", "de"))
    for code in ("en", "de"):
        write(folder / f"test2016.{code}", read(data / f"multi30k/test2016.{code}.xz"))
    minutes = regard(folder, "train", "a.en", "a.de", "--out", "run")
    bleu = evaluated(folder, "run", "test2016.en", "test2016.de")
    return row(f"{PAIRS:,} pairs of Multi30k", "train a.en a.de", minutes, f"{bleu:.1f} BLEU", "27 in 15 min")


def further(data: Path, folder: Path) -> str:
    """600 pairs of TICO-19, from the bundled translator."""
    codes = ("zh", "en")
    pairs = list(zip(*(read(data / f"wmt-zh-en/tico19-test.{code}.xz") for code in codes), strict=True))
    random.Random(3).shuffle(pairs)
    write_pairs(folder, "tico", pairs[:FURTHER], codes)
    write_pairs(folder, "rest", pairs[FURTHER:], codes)
    before = evaluated(folder, "zh-en", "rest.zh", "rest.en")
    minutes = regard(folder, "train", "tico.zh", "tico.en", "--from", "zh-en", "--out", "run")
    after = evaluated(folder, "run", "rest.zh", "rest.en")
    result = f"{before:.1f} → {after:.1f} BLEU ({after - before:+.1f})"
    return row(
        f"{FURTHER} pairs of TICO-19", "train tico.zh tico.en --from zh-en", minutes, result, "+1.0 in 5 min"
    )


def labels(data: Path, folder: Path) -> str:
    """3,000 labelled lines of SST-2."""
    for name in ("train", "valid", "test"):
        lines = read(data / f"classification/sst2/{name}.tsv.xz")
        if name == "train":
            random.Random(1).shuffle(lines)
            lines = lines[:LABELLED]
        write(folder / f"{name}.tsv", lines)
    held_out = ("--valid", "valid.tsv", "--test", "test.tsv")
    minutes = regard(folder, "train", "--task", "classify", "train.tsv", *held_out, "--out", "run")
    scores = json.loads((folder / "run/scores.json").read_text(encoding="utf-8"))
    result = f"{scores['accuracy']:.1%}, TF-IDF {scores['baseline_accuracy']:.1%}"
    return row(
        f"{LABELLED:,} lines of SST-2", "train --task classify train.tsv", minutes, result, "TF-IDF in 3 min"
    )


def generator(data: Path, folder: Path) -> str:
    """45 kB of poems in one minute, and what is written then."""
    found = sorted((data / "generation/tang_poems").glob("train*.xz"))[0]
    text = (
        "\n".join(line.split("\t")[-1] for line in read(found))
        .encode()[: KILOBYTES * 1000]
        .decode(errors="ignore")
    )
    write(folder / "notes.txt", text.split("\n"))
    minutes = regard(folder, "train", "--task", "generate", "notes.txt", "--max-minutes", "1", "--out", "run")
    prompt = text.split("\n")[0][:4]
    command = [sys.executable, "-m", "regard", "generate", "run", prompt, "--max-tokens", "30", "--seed", "1"]
    output = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout
    return row(f"{KILOBYTES} kB of text", "train --task generate notes.txt --max-minutes 1", minutes,
               repr(" ".join(output.split())[:60]), "words in 1 min")  # fmt: skip


PARTS = {"translator": translator, "further": further, "labels": labels, "generator": generator}


def regard(folder: Path, *words: str) -> float:
    """Run a command; returns the minutes that it took. What it says goes to stderr."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-m", "regard", *words], cwd=folder, check=True, stdout=sys.stderr)
    return (time.perf_counter() - started) / 60


def evaluated(folder: Path, model: str, source: str, reference: str) -> float:
    """BLEU of a model, as `regard evaluate` gives it."""
    command = [sys.executable, "-m", "regard", "evaluate", source, reference, "--model", model, "--json"]
    answer = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(answer.stdout)
    (bleu,) = (each for each in found["systems"][0]["measures"] if each["name"] == "BLEU")
    return float(bleu["score"])


def row(*cells: object) -> str:
    """A row of the table."""
    return "| " + " | ".join(f"{cell:.1f}" if isinstance(cell, float) else str(cell) for cell in cells) + " |"


def read(path: Path) -> list[str]:
    """The lines of a compressed text."""
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        return [line.rstrip("\n") for line in lines]


def write(path: Path, lines: list[str]) -> None:
    """Lines as a text file."""
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def write_pairs(folder: Path, name: str, pairs: list[Any], codes: tuple[str, str]) -> None:
    """Pairs as two files."""
    for code, lines in zip(codes, zip(*pairs, strict=True), strict=True):
        write(folder / f"{name}.{code}", list(lines))


if __name__ == "__main__":
    main()
