"""Speed of a whole training step on CPU: this project and its peers, side by side, in one run.

    python benchmarks/train_step.py                    every contender, at fp32 and bf16
    python benchmarks/train_step.py --install-eole     the same, after making eole's environment
    python benchmarks/train_step.py --settings all     every setting of every contender
    python benchmarks/train_step.py --keep-memory      with an allocator that keeps what was freed

A step is forward, label-smoothed loss, backward, clip and fused AdamW, for the same model and the same
sentences. The contenders take turns, a few steps each, so that a noisy machine disturbs all alike.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.peers import corpus as corpora  # noqa: E402
from benchmarks.peers.eole_environment import eole_python, install_eole  # noqa: E402
from benchmarks.peers.roster import OURS, ROSTER  # noqa: E402
from benchmarks.result import Result, write_results  # noqa: E402

CACHE = ROOT / ".cache"
CALM = 0.1
"""A turn is calm when other processes take less of a core than this."""
KEEP_MEMORY = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 34)}
"""Tells glibc to hand no memory back. By default it returns every large tensor to the kernel, and the next
step takes the same pages again, one fault each: that is 7 to 30% of a peer's time."""
PATIENCE = 3
"""Rounds that are run, at most, for each one that counts. The calmest count."""


@dataclass(frozen=True)
class Turn:
    """What a contender did in one turn."""

    seconds: float
    target_tokens: int
    source_tokens: int
    loss: float
    own_processor_seconds: float
    all_processor_seconds: float

    @property
    def disturbance(self) -> float:
        """Processor seconds a second that went to anything else on this machine."""
        return (self.all_processor_seconds - self.own_processor_seconds) / self.seconds

    @property
    def speed(self) -> float:
        """Real tokens of both sides a second."""
        return (self.target_tokens + self.source_tokens) / self.seconds


class AbsentError(Exception):
    """A contender that cannot take part, and why."""


@dataclass
class Worker:
    """A contender's process, seen from here."""

    name: str
    setting: str
    process: subprocess.Popen[str]
    turns: list[Turn] = field(default_factory=list)

    @classmethod
    def start(cls, name: str, setting: str, options: argparse.Namespace) -> Worker:
        """Wait until the contender is ready."""
        python = eole_python(CACHE) if name == "eole" else Path(sys.executable)
        if not python.exists():
            raise AbsentError("its environment is not there, --install-eole makes it")
        process = subprocess.Popen(
            [
                *(python, "-m", "benchmarks.peers.worker", name, setting, options.corpus),
                *("--dropout", str(options.dropout), "--threads", str(options.threads)),
            ],
            cwd=ROOT,
            env=os.environ
            | {"OMP_NUM_THREADS": str(options.threads)}
            | (KEEP_MEMORY if options.keep_memory else {}),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=None if options.verbose else subprocess.DEVNULL,
            text=True,
        )
        worker = cls(name, setting, process)
        ready = worker.answer()
        if "missing" in ready:
            raise AbsentError(ready["missing"])
        return worker

    def answer(self) -> Any:
        """The next line of JSON from the process."""
        line = self.process.stdout.readline()
        if not line:
            raise AbsentError(f"its process ended with status {self.process.wait()}, --verbose shows why")
        return json.loads(line)

    def run(self, n_steps: int) -> Turn:
        """Let the contender train while all others wait."""
        before = processor_seconds()
        print(n_steps, file=self.process.stdin, flush=True)
        result = self.answer()
        return Turn(*result, all_processor_seconds=processor_seconds() - before)

    def stop(self) -> None:
        """End the process."""
        self.process.stdin.close()
        self.process.wait()


def processor_seconds() -> float:
    """What all processes, and other guests of the same host, have used since the start; Linux only."""
    statistics_file = Path("/proc/stat")
    if not statistics_file.exists():
        return 0.0
    user, nice, system, _idle, _iowait, *more = map(int, statistics_file.read_text().split()[1:9])
    return (user + nice + system + sum(more)) / os.sysconf("SC_CLK_TCK")


def race(precision: str, options: argparse.Namespace) -> list[Worker]:
    """All contenders, taking turns, until there are enough rounds in which nothing disturbed them."""
    workers: list[Worker] = []
    for name in options.contenders:
        settings = ROSTER[name].settings(precision)
        for setting in settings if options.settings == "all" else settings[:1]:
            try:
                worker = Worker.start(name, setting, options)
                worker.run(options.warm_up)
                workers.append(worker)
            except AbsentError as reason:
                print(f"{name} ({setting}) is left out at {precision}: {reason}", flush=True)
    rounds: list[tuple[Turn, ...]] = []
    calm = 0
    while workers and calm < options.rounds and len(rounds) < PATIENCE * options.rounds:
        rounds.append(tuple(worker.run(options.steps) for worker in workers))
        calm += disturbance(rounds[-1]) <= CALM
    if calm < len(rounds):
        print(f"Something else was running in {len(rounds) - calm} of {len(rounds)} rounds at {precision}.")
    kept = sorted(rounds, key=disturbance)[: options.rounds]
    for worker, *turns in zip(workers, *(turns for turns in rounds if turns in kept), strict=True):
        worker.turns = turns
        worker.stop()
    return workers


def disturbance(turns: tuple[Turn, ...]) -> float:
    """That of the worst turn of a round."""
    return max(turn.disturbance for turn in turns)


def fastest_peer(workers: list[Worker]) -> Worker:
    """The fastest that is not ours; ours where it is alone."""
    peers = [worker for worker in workers if worker.name != OURS] or workers
    return max(peers, key=lambda worker: statistics.median(turn.speed for turn in worker.turns))


def results(precision: str, workers: list[Worker]) -> Iterator[Result]:
    """Ours against the fastest peer, where both took part."""
    peer = fastest_peer(workers)
    for ours in workers:
        if ours.name == OURS and peer is not ours:
            speeds = [[turn.speed for turn in worker.turns] for worker in (ours, peer)]
            called = f"{peer.name} {peer.setting}, the fastest"
            yield Result.of_rates(f"a training step, {precision}", "tokens/s", speeds[0], called, speeds[1])


def report(precision: str, workers: list[Worker]) -> None:
    """Print the table: medians over the rounds, with the lowest and the highest in brackets."""
    fastest = fastest_peer(workers)
    head = f"{precision:<26}{'tokens/s':>24}{'target tokens/s':>17}{'x fastest peer':>20}"
    print(f"\n{head}   first and last loss")
    for worker in workers:
        speeds = [turn.speed for turn in worker.turns]
        target = statistics.median(turn.target_tokens / turn.seconds for turn in worker.turns)
        # Round by round, because what disturbs a round disturbs neighbours alike.
        ratios = [turn.speed / peer.speed for turn, peer in zip(worker.turns, fastest.turns, strict=True)]
        print(
            f"{worker.name + ' ' + worker.setting:<26}"
            f"{with_spread(speeds, ',.0f'):>24}{target:>17,.0f}{with_spread(ratios, '.2f'):>20}"
            f"   {worker.turns[0].loss:.2f} {worker.turns[-1].loss:.2f}",
            flush=True,
        )


def with_spread(values: list[float], form: str) -> str:
    """`median (lowest-highest)`."""
    return f"{statistics.median(values):{form}} ({min(values):{form}}-{max(values):{form}})"


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add(
        "--data",
        type=Path,
        default=Path("multi30k"),
        help="folder with train.en.xz and train.de.xz; without it, sentences are made up",
    )
    add("--contenders", nargs="+", choices=ROSTER, default=list(ROSTER))
    add("--settings", choices=["fastest", "all"], default="fastest")
    add("--precision", nargs="+", choices=["fp32", "bf16"], default=["fp32", "bf16"])
    add("--dropout", type=float, default=0.1)
    add("--threads", type=int, default=2)
    add("--rounds", type=int, default=7)
    add("--steps", type=int, default=3, help="steps of a contender in one round")
    add("--warm-up", type=int, default=3, help="steps that are not counted, once for each contender")
    add("--keep-memory", action="store_true", help="no contender's process gives memory back (glibc only)")
    add("--install-eole", action="store_true", help="make the environment of eole (needs a package index)")
    add("--verbose", action="store_true", help="show what the contenders print")
    add("--results", type=Path, help="where comparisons are kept for benchmarks/table.py")
    return parser.parse_args()


def main() -> None:
    options = read_options()
    if options.install_eole:
        install_eole(CACHE)
    if (options.data / "train.en.xz").exists():
        corpus = corpora.from_text(options.data, CACHE)
    else:
        corpus = corpora.synthetic()
        print(f"There is no {options.data}/train.en.xz: the sentences are made up, of the same lengths.")
    options.corpus = CACHE / "train_step.npz"
    corpus.save(options.corpus)
    print(
        f"{corpus.origin}; {options.threads} threads, dropout {options.dropout}, "
        f"{options.rounds} rounds of {options.steps} steps"
        f"{', memory is kept' if options.keep_memory else ''}.\n"
        "tokens/s counts real source and real target tokens, and no padding."
    )
    found: list[Result] = []
    for precision in options.precision:
        if workers := race(precision, options):
            report(precision, workers)
            found += results(precision, workers)
    write_results(options.results, found)


if __name__ == "__main__":
    main()
