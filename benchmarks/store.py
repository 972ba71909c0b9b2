"""Speed and memory of the token store: building it, planning batches, reading them.

    python benchmarks/store.py [--lines 1200000] [--threads 1] [--folder DIR]

Two text files of random words are read, encoded and written. Encoding is a look-up that stands in for
SentencePiece, and the time that it takes is left out: what remains is our own. Then the same is done with ten
times as many lines, each time in a new process, to see what memory does: it must not grow.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from itertools import islice
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from regard.data.batches import Budget, plan_batches  # noqa: E402
from regard.data.batches.examples import PAIRS_EXTRA, make_pairs_batch  # noqa: E402
from regard.data.batches.stream import BatchStream  # noqa: E402
from regard.data.store import Store  # noqa: E402
from regard.data.store.writing import (  # noqa: E402
    content_key,
    encode_in_threads,
    row_encoder,
    write_store,
)

VOCABULARY = 32_000
BOS, EOS = 1, 2
BUDGET = 25_600


def write_text(path: Path, n_lines: int, seed: int) -> None:
    """Lines of 1 to 50 words, 20 on average."""
    random = np.random.default_rng(seed)
    words = np.array([f"word{i} " for i in range(997)])
    with path.open("w", encoding="utf-8") as file:
        for first in range(0, n_lines, 10_000):
            counts = random.integers(1, 40, min(10_000, n_lines - first))
            chosen = words[random.integers(0, len(words), counts.sum())]
            file.writelines("".join(part) + "\n" for part in np.split(chosen, np.cumsum(counts)[:-1]))


class Encoder:
    """As many ids as a line has spaces, cut from one array; knows how long it took."""

    def __init__(self) -> None:
        self.ids = np.random.default_rng(0).integers(3, VOCABULARY, 1 << 16).astype(np.int32)
        self.seconds = 0.0
        self.lock = threading.Lock()

    def __call__(self, lines: list[str]) -> list[np.ndarray]:
        start = time.thread_time()
        counts = [line.count(" ") for line in lines]
        encoded = [self.ids[n : 2 * n] for n in counts]
        with self.lock:
            self.seconds += time.thread_time() - start
        return encoded


def peak_memory() -> float:
    """Most memory that this process ever held, in MiB. `getrusage` would count its parent's as well."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def measure(folder: Path, threads: int) -> dict[str, float]:
    """Build a store from the files in `folder`, and go through it once, as one rank of one."""
    encoder, paths = Encoder(), [folder / "inputs.txt", folder / "outputs.txt"]
    at_start, start = peak_memory(), time.perf_counter()
    key = content_key(paths, {"vocabulary": VOCABULARY})
    hashed = time.perf_counter()
    cpu = time.process_time()
    with paths[0].open(encoding="utf-8") as inputs, paths[1].open(encoding="utf-8") as outputs:
        rows = zip(inputs, outputs, strict=True)
        examples = encode_in_threads(rows, row_encoder(encoder, encoder), threads=threads)
        store = write_store(
            folder / "store", examples, sides=("inputs", "outputs"), key=key, vocab_size=VOCABULARY
        )
    built, cpu = time.perf_counter(), time.process_time() - cpu
    budget = Budget.balanced(store, BUDGET, PAIRS_EXTRA, fixed=True)

    def make(part: Store, indices: np.ndarray) -> int:
        batch = make_pairs_batch(part, indices, bos=BOS, eos=EOS, fill_to=budget.tokens)
        return sum(batch.n_tokens)

    with BatchStream(store, make, budget=budget, seed=1) as stream:
        part, _ = stream.order.window(0, 0)
        planning = time.perf_counter()
        plan = plan_batches(part, np.arange(len(part)), budget)
        planned = time.perf_counter()
        n_batches = int(stream.order.batches_per_epoch)
        reading = time.perf_counter()
        n_tokens = sum(islice(stream, n_batches))
        read = time.perf_counter()
    return {
        "lines": 2 * len(store),
        "hash_MB_per_s": sum(path.stat().st_size for path in paths) / (hashed - start) / 1e6,
        "seconds": built - hashed,
        "own_cpu_seconds": cpu - encoder.seconds,
        "examples_planned_per_s": len(plan.order) / (planned - planning),
        "fill": min(plan.fill),
        "tokens_read_per_s": n_tokens / (read - reading),
        "memory_before_MiB": at_start,
        "memory_MiB": peak_memory(),
    }


def in_new_process(folder: Path, n_lines: int, threads: int) -> dict[str, float]:
    """Write the texts, and have them measured by a process that did not."""
    folder.mkdir()
    for seed, name in enumerate(("inputs.txt", "outputs.txt")):
        write_text(folder / name, n_lines // 2, seed)
    command = [sys.executable, __file__, "--measure", str(folder), "--threads", str(threads)]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)


def report(found: dict[str, float]) -> None:
    lines = found["lines"]
    print(f"\n{lines:,.0f} lines")
    print(f"  hashing         {found['hash_MB_per_s']:,.0f} MB/s")
    print(f"  building        {lines / found['seconds']:,.0f} lines/s, with encoding")
    print(f"                  {lines / found['own_cpu_seconds']:,.0f} lines/s a core, without encoding")
    print(f"  planning        {found['examples_planned_per_s']:,.0f} examples/s")
    print(f"  filled          {100 * found['fill']:.1f}% of {BUDGET:,} tokens, the emptier side")
    print(f"  reading         {found['tokens_read_per_s']:,.0f} tokens/s")
    grown = found["memory_MiB"] - found["memory_before_MiB"]
    print(f"  most memory     {found['memory_MiB']:,.0f} MiB, {grown:,.0f} MiB over that of an idle process")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--lines", type=int, default=1_200_000, help="lines of both files together")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument(
        "--folder", type=Path, help="where to work; there must be room for ten times the text"
    )
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.measure, options.threads)))
        return
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        once = in_new_process(Path(folder) / "1x", options.lines, options.threads)
        report(once)
        ten_times = in_new_process(Path(folder) / "10x", 10 * options.lines, options.threads)
        report(ten_times)
    print(f"\nten times the lines take {ten_times['memory_MiB'] / once['memory_MiB']:.2f} times the memory")


if __name__ == "__main__":
    main()
