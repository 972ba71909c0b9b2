"""One table: this project against its peers, each benchmark in a short form.

    python benchmarks/table.py                                 on this machine's CPU, some minutes
    python benchmarks/table.py --gpu --pairs DIR --text FILE   on its GPU
    python benchmarks/table.py --only look                     some of the benchmarks

The table goes to stdout, as Markdown; what the benchmarks say of themselves goes to stderr. A contender that
is not installed is left out, and a benchmark that fails is named. Whoever publishes a number runs the
benchmark in its long form, on a quiet machine.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.result import Result, read_results  # noqa: E402
from regard.host import usable_cores  # noqa: E402

CACHE = ROOT / ".cache" / "table"


@dataclass(frozen=True)
class Benchmark:
    """A script, and the words that make it short."""

    name: str
    script: str
    words: tuple[str, ...]

    def run(self) -> list[Result]:
        """Its results; none where it failed."""
        found = CACHE / f"{self.name}.json"
        found.unlink(missing_ok=True)
        command = [
            sys.executable,
            str(ROOT / "benchmarks" / self.script),
            *self.words,
            "--results",
            str(found),
        ]
        print(f"\n$ {' '.join(command)}", file=sys.stderr, flush=True)
        subprocess.run(command, cwd=ROOT, stdout=sys.stderr, check=False)
        return read_results(found) if found.exists() else []


DECODE = (
    *(
        "--contenders",
        "regard ctranslate2 int8",
        "ctranslate2 int8",
        "regard torch fp32",
        "hugging face fp32",
    ),
    *("--rounds", "2", "--sentences", "128"),
)
ON_CPU = (
    Benchmark("train", "train_step.py", ("--rounds", "2")),
    Benchmark("decode", "decode.py", (*DECODE, "--shapes", "small", "--beams", "5", "--starts")),
    Benchmark("serve", "serve.py", ("--requests", "300", "--rounds", "2")),
    Benchmark("look", "look.py", ("--lengths", "30", "128", "--rounds", "2")),
)


def on_gpu(pairs: Path, text: Path) -> tuple[Benchmark, ...]:
    """What is raced on a GPU; its training wants sentences of real lengths, made ready once."""
    ready = CACHE / "pairs.npz"
    if not ready.exists():
        prepare = [sys.executable, str(ROOT / "benchmarks" / "gpu" / "prepare.py"), str(pairs), str(ready)]
        subprocess.run(prepare, cwd=ROOT, stdout=sys.stderr, check=True)
    only = "regard,marian-compiled-autocast,marian-compiled-bf16-weights"
    return (
        Benchmark("train-gpu", "gpu/train_step.py", (str(ready), "--rounds", "2", "--only", only)),
        Benchmark("decode-gpu", "gpu/decode.py", (str(text), "--sentences", "1000", "--rounds", "2")),
    )


def table(results: Sequence[Result]) -> str:
    """Rows of Markdown: what, ours, theirs, and how many times as good."""
    lines = ["| | regard | peer | | ratio |", "|---|---|---|---|---|"]
    for each in results:
        ours, theirs = number(each.ours), number(each.theirs)
        lines.append(f"| {each.what} | {ours} {each.unit} | {theirs} | {each.peer} | {each.ratio:.2f} |")
    return "\n".join(lines)


def number(value: float) -> str:
    """Three digits, or all that stand before the point."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def machine() -> str:
    """Where this was measured, and how busy it was."""
    import torch

    where = torch.cuda.get_device_name() if torch.cuda.is_available() else f"{usable_cores()} CPU cores"
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    return (
        f"{where}, {platform.machine()}, Python {platform.python_version()}, torch {torch.__version__}{load}"
    )


def main() -> None:
    """Run what was asked for, then print everything at once."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("--pairs", type=Path, help="folder with train.en.xz and train.de.xz, for --gpu")
    parser.add_argument("--text", type=Path, help="sentences to decode, packed by xz, for --gpu")
    parser.add_argument("--only", nargs="+", help="names of benchmarks: train, decode, serve, look")
    options = parser.parse_args()
    if options.gpu and not (options.pairs and options.text):
        parser.error("--gpu needs --pairs DIR and --text FILE")
    benchmarks = on_gpu(options.pairs, options.text) if options.gpu else ON_CPU
    chosen = [each for each in benchmarks if not options.only or each.name in options.only]
    where, found = machine(), {each.name: each.run() for each in chosen}
    print(table([result for results in found.values() for result in results]))
    print(f"\n{where}. Short runs: ratios are medians of two rounds.")
    if failed := [name for name, results in found.items() if not results]:
        sys.exit(f"without a result: {', '.join(failed)}")


if __name__ == "__main__":
    main()
