"""Speed of decoding on CPU: our engines, CTranslate2 called directly and Hugging Face, in one run.

    python benchmarks/decode.py --model FOLDER --data DIR    a trained model of ours, and the base shape
    python benchmarks/decode.py                              made-up weights and sentences
    python benchmarks/decode.py --starts                     start and memory as well

Every contender decodes the same sentences with the same weights; outputs are compared. The contenders take
turns, so that a noisy machine disturbs all alike. A trained model ends its outputs itself. The made-up ones
never end: their sentences are cut to one length, and all outputs are as long, for every contender.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.peers.decode_models import Task, made_up, trained  # noqa: E402
from benchmarks.peers.decoders import DECODERS, REFERENCE  # noqa: E402
from benchmarks.result import Result, write_results  # noqa: E402
from benchmarks.train_step import (  # noqa: E402
    CALM,
    PATIENCE,
    AbsentError,
    disturbance,
    processor_seconds,
    with_spread,
)

CACHE = ROOT / ".cache"
SAME = 0.99
"""Share of outputs that must be the reference's at float32 for speeds to be comparable."""


@dataclass(frozen=True)
class Turn:
    """What a contender did in one turn."""

    seconds: float
    own_processor_seconds: float
    all_processor_seconds: float

    @property
    def disturbance(self) -> float:
        """Processor seconds a second that went to anything else on this machine."""
        return (self.all_processor_seconds - self.own_processor_seconds) / self.seconds


@dataclass
class Worker:
    """A contender's process, seen from here."""

    name: str
    process: subprocess.Popen[str]
    outputs: list[list[int]] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)

    @classmethod
    def start(cls, name: str, task: Task, options: argparse.Namespace) -> Worker:
        """Wait until the contender is ready."""
        process = subprocess.Popen(
            [
                *(
                    sys.executable,
                    "-m",
                    "benchmarks.peers.decode_worker",
                    name,
                    task.folder,
                    task.sources_file,
                ),
                *("--threads", str(options.threads), "--extra-length", str(task.extra_length)),
            ],
            cwd=ROOT,
            env=os.environ | {"OMP_NUM_THREADS": str(options.threads)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=None if options.verbose else subprocess.DEVNULL,
            text=True,
        )
        worker = cls(name, process)
        if "missing" in (ready := worker.answer()):
            raise AbsentError(ready["missing"])
        return worker

    def answer(self):
        """The next line of JSON from the process."""
        line = self.process.stdout.readline()
        if not line:
            raise AbsentError(f"its process ended with status {self.process.wait()}, --verbose shows why")
        return json.loads(line)

    def run(self, beam: int, batch: int, sentences: list[int]) -> Turn:
        """Let the contender decode while all others wait."""
        before = processor_seconds()
        asked = {"beam": beam, "batch": batch, "sentences": sentences}
        print(json.dumps(asked), file=self.process.stdin, flush=True)
        self.outputs, seconds, own = self.answer()
        return Turn(seconds, own, processor_seconds() - before)

    def stop(self) -> int:
        """End the process; its peak of memory in bytes."""
        # Not as `wait4` tells it, which counts what this process held when it made that one.
        told = Path(f"/proc/{self.process.pid}/status").read_text()
        peak = next(line.split()[1] for line in told.splitlines() if line.startswith("VmHWM"))
        self.process.stdin.close()
        self.process.wait()
        return int(peak) * 1024


def race(task: Task, options: argparse.Namespace) -> list[dict]:
    """All contenders on one model, in every search that was asked for; a row for each."""
    workers: list[Worker] = []
    for name in options.contenders:
        try:
            workers.append(Worker.start(name, task, options))
        except AbsentError as reason:
            print(f"{name} is left out: {reason}", flush=True)
    rows = []
    for beam in options.beams:
        for batch in options.batches:
            count = options.sentences if batch > 1 else max(1, options.sentences // 8)
            sentences = task.spread(count)
            for worker in workers:
                worker.run(beam, batch, sentences)  # warm-up
            take_turns(workers, beam, batch, sentences, options.rounds)
            rows += report(task, beam, batch, count, workers)
    for worker in workers:
        worker.stop()
    return rows


def take_turns(workers: list[Worker], beam: int, batch: int, sentences: list[int], wanted: int) -> None:
    """Until there are enough rounds in which nothing disturbed anyone; the calmest count."""
    rounds: list[tuple[Turn, ...]] = []
    calm = 0
    while workers and calm < wanted and len(rounds) < PATIENCE * wanted:
        rounds.append(tuple(worker.run(beam, batch, sentences) for worker in workers))
        calm += disturbance(rounds[-1]) <= CALM
    if calm < len(rounds):
        print(f"Something else was running in {len(rounds) - calm} of {len(rounds)} rounds.")
    kept = sorted(rounds, key=disturbance)[:wanted]
    for worker, *turns in zip(workers, *(turns for turns in rounds if turns in kept), strict=True):
        worker.turns = turns


def report(task: Task, beam: int, batch: int, count: int, workers: list[Worker]) -> list[dict]:
    """Print a table: medians over the rounds, with the lowest and the highest in brackets."""
    search = "greedy" if beam == 1 else f"beam {beam}"
    head = f"{task.name}, {search}, batch {batch}"
    print(
        f"\n{head:<38}{'sentences/s':>22}{'cpu ms each':>13}{'x its peer':>20}{'x ' + REFERENCE:>22}   same"
    )
    by_name = {worker.name: worker for worker in workers}
    reference = by_name.get(REFERENCE)
    rows = []
    for worker in workers:
        peer = by_name.get(DECODERS[worker.name].peer)
        same = share_of_same(worker.outputs, reference.outputs) if reference else None
        row = {
            "model": task.name,
            "beam": beam,
            "batch": batch,
            "contender": worker.name,
            "sentences_per_second": [count / turn.seconds for turn in worker.turns],
            "cpu_ms_each": [1000 * turn.own_processor_seconds / count for turn in worker.turns],
            "x_peer": ratios(worker, peer),
            "x_reference": ratios(worker, reference),
            "same_outputs": same,
            "output_tokens": sum(map(len, worker.outputs)),
            "disturbance": [turn.disturbance for turn in worker.turns],
        }
        rows.append(row)
        against = [with_spread(row[key], ".2f") if row[key] else "-" for key in ("x_peer", "x_reference")]
        print(
            f"{worker.name:<38}{with_spread(row['sentences_per_second'], '.1f'):>22}"
            f"{statistics.median(row['cpu_ms_each']):>13.1f}{against[0]:>20}{against[1]:>22}"
            f"   {'-' if same is None else f'{same:.1%}'}",
            flush=True,
        )
        if same is not None and same < SAME and worker.name.endswith("fp32"):
            print(f"  {worker.name} has OTHER OUTPUTS than {REFERENCE}: these speeds cannot be compared")
    return rows


def ratios(worker: Worker, other: Worker | None) -> list[float]:
    """How many times as fast, round by round, because what disturbs a round disturbs neighbours alike."""
    turns = zip(worker.turns, other.turns, strict=True) if other else ()
    return [theirs.seconds / ours.seconds for ours, theirs in turns]


def share_of_same(outputs: list[list[int]], reference: list[list[int]]) -> float:
    return sum(ours == theirs for ours, theirs in zip(outputs, reference, strict=True)) / len(reference)


def results(rows: list[dict]) -> Iterator[Result]:
    """Our engines against their peers, and against the reference where that is another."""
    by_place = {(row["model"], row.get("beam"), row.get("batch"), row["contender"]): row for row in rows}
    for (model, beam, batch, name), row in by_place.items():
        if not name.startswith("regard"):
            continue
        for peer in dict.fromkeys([DECODERS[name].peer, REFERENCE]):
            other = by_place.get((model, beam, batch, peer))
            if other is None:
                continue
            if "start_seconds" in row:
                costs = row["start_seconds"], peer, other["start_seconds"]
                yield Result.of_costs(f"start to first output, {name.removeprefix('regard ')}", "s", *costs)
            else:
                search = "greedy" if beam == 1 else f"beam {beam}"
                what = f"decode, {search}, batch {batch}, {name.removeprefix('regard ')}"
                rates = row["sentences_per_second"], peer, other["sentences_per_second"]
                yield Result.of_rates(what, "sentences/s", *rates)


def starts(task: Task, options: argparse.Namespace) -> list[dict]:
    """From nothing to the first translation, and the peak of memory, each in processes of their own."""
    print(f"\n{task.name + ', started anew':<38}{'s to the first':>22}{'peak MB':>22}")
    found: dict[str, list[tuple[float, int]]] = {name: [] for name in options.contenders}
    for _ in range(options.rounds):
        for name, times in found.items():
            start = time.perf_counter()
            try:
                worker = Worker.start(name, task, options)
            except AbsentError:
                continue
            worker.run(1, 1, task.spread(1))
            times.append((time.perf_counter() - start, worker.stop()))
    rows = []
    for name, times in found.items():
        if times:
            seconds, peaks = [one for one, _ in times], [peak / 1e6 for _, peak in times]
            rows.append({"model": task.name, "contender": name, "start_seconds": seconds, "peak_mb": peaks})
            print(f"{name:<38}{with_spread(seconds, '.2f'):>22}{with_spread(peaks, '.0f'):>22}", flush=True)
    return rows


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--model", type=Path, help="a model folder that Marian can express: post-norm, and the paper's else")
    add("--data", type=Path, help="folder with test2016.en.xz, for --model")
    add("--shapes", nargs="+", choices=["small", "base"], default=["small", "base"])
    add("--contenders", nargs="+", choices=DECODERS, default=list(DECODERS))
    add("--beams", nargs="+", type=int, default=[1, 5])
    add("--batches", nargs="+", type=int, default=[1, 64])
    add("--threads", type=int, default=2)
    add("--rounds", type=int, default=5)
    add("--sentences", type=int, default=256, help="of a turn; an eighth of them where batches are of 1")
    add("--starts", action="store_true", help="measure how long starting takes, and memory, too")
    add("--json", type=Path, default=CACHE / "decode.json", help="where all numbers are kept")
    add("--verbose", action="store_true", help="show what the contenders print")
    add("--results", type=Path, help="where comparisons are kept for benchmarks/table.py")
    options = parser.parse_args()
    if (options.model is None) != (options.data is None):
        parser.error("--model and --data go together")
    return options


def main() -> None:
    options = read_options()
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    print(f"{options.threads} threads, {options.rounds} rounds of {options.sentences} sentences; load {load}")
    CACHE.mkdir(exist_ok=True)
    rows = []
    for shape in options.shapes:
        if shape == "small" and options.model:
            task = trained(options.model, options.data / "test2016.en.xz", CACHE)
        else:
            task = made_up(shape, CACHE)
        print(f"\n{task.name}: {task.origin}", flush=True)
        rows += race(task, options)
        if options.starts:
            rows += starts(task, options)
    write_results(options.results, results(rows))
    options.json.write_text(json.dumps({"load": os.getloadavg(), "rows": rows}, indent=1))
    print(
        f"\nload {', '.join(f'{value:.1f}' for value in os.getloadavg())}; all numbers are in {options.json}"
    )


if __name__ == "__main__":
    main()
