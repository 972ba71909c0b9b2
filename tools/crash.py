"""Interrupt everything that writes, at every file operation, and check what is there afterwards.

    python tools/crash.py                         everything, and 50 processes killed: about 25 minutes
    python tools/crash.py "add a key" --kills 0   one command only
    python tools/crash.py --every 1               every operation also of runs that are much like the first

A command runs once while a file layer (tests/crash/file_layer.py) records what crashes would leave: SIGKILL,
and power failures that lose what was not synced. Each state is put back and checked, and the command is
repeated. Then each operation fails in a run of its own, with an error and from a full disk.

At last processes of `regard train` are killed at moments spread over preparation, training, averaging and
saving. The repeated command must end with the same weights and scores as a run that was never killed.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
os.environ.setdefault("OMP_NUM_THREADS", "1")

from tests.crash.interruptions import Outcome, Scene, crashed, failed, leftovers, record  # noqa: E402
from tests.crash.scenes import COMMANDS, RUNS, progress  # noqa: E402

EVERY = {"train on a pipe": 5, "train a classifier": 5}
"""Runs of which every fifth operation is tried by default: the others are much like those of the first."""


# --- every operation ---------------------------------------------------------------------------------------


def sweep(name: str, scene: Scene, folder: Path, every: int) -> int:
    """Interrupt a command at every operation, or at every few; prints a line, and returns the failures."""
    began, done = time.monotonic(), record(scene, folder)
    states, numbers = list(done.states)[::every], range(0, len(done.operations), every)
    after_crashes, crash_failures = _tally(lambda state: crashed(scene, folder, done, [state]), states)
    after_errors, error_failures = _tally(lambda number: failed(scene, folder, done, [number]), numbers)
    print(
        f"{name:<30}{len(done.operations):>10,}{len(states):>9,}{crash_failures:>8}{2 * len(numbers):>9,}"
        f"{error_failures:>8}{time.monotonic() - began:>8.0f} s",
        flush=True,
    )
    for kind, counts in (("crashes", after_crashes), ("errors", after_errors)):
        print(f"    {kind}: {', '.join(f'{count:,} {found}' for found, count in counts.most_common())}")
    return crash_failures + error_failures


def _tally(interrupt: Callable[..., Iterator[Outcome]], points: Iterable[object]) -> tuple[Counter[str], int]:
    """What was there after each interruption, and the number of checks that failed."""
    counts, failures = Counter[str](), 0
    for point in points:
        try:
            counts.update(outcome.found for outcome in interrupt(point))
        except Exception:
            failures += 1
            traceback.print_exc()
    return counts, failures


# --- killed processes --------------------------------------------------------------------------------------

STEPS = 40
LAST = f"checkpoints/step-{STEPS:08d}"
PHASES = {
    "preparation": ("config.toml", "journal.jsonl", 0.3),
    "training": ("journal.jsonl", LAST, 0.4),
    "averaging, saving, scoring": (LAST, "scores.json", 0.3),
}
"""What appears in the folder of the run when a phase begins and ends; its share of the kills."""
SETTINGS = (
    "model.vocab_size=500", "model.d_model=24", "model.n_heads=3", "model.d_ff=37", "model.encoder_layers=1",
    "model.decoder_layers=1", "data.valid_lines=31", "data.test_lines=37", "training.batch_tokens=500",
    f"training.max_steps={STEPS}", "training.validate_every=20", "training.checkpoint_every=5",
    "training.average_checkpoints=4", "training.selection=last", "training.warmup_steps=5",
    "decoding.beam_size=2", "decoding.extra_length=5",
)  # fmt: skip


def command(folder: Path) -> list[str]:
    """The command that trains in a folder, beside the texts."""
    words = ["train", folder / "text.xx", folder / "text.yy", "--out", folder / "run"]
    words += ["--source", "xx", "--target", "yy", "--preset", "tiny", "--device", "cpu", "--threads", "1"]
    settings = [word for setting in SETTINGS for word in ("--set", setting)]
    return [sys.executable, "-m", "regard", *map(str, words), *settings]


def write_texts(folder: Path) -> None:
    """Lines of random words, and the same in capitals."""
    draw = random.Random(11)
    words = ["".join(draw.choices("abcdefghiklm", k=5)) for _ in range(211)]
    lines = [" ".join(draw.choices(words, k=draw.randrange(2, 9))) for _ in range(2003)]
    (folder / "text.xx").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "text.yy").write_text("\n".join(lines).upper() + "\n", encoding="utf-8")


def kill_processes(count: int, scratch: Path) -> int:
    """Kill processes of `regard train`, repeat the command, and compare the results; returns the failures."""
    scratch.mkdir()
    write_texts(scratch)
    durations = _timed_run(scratch)
    expected = progress(scratch)
    print(f"\nuninterrupted: {expected}\n{'killed while in':<30}{'kills':>10}{'same result':>15}", flush=True)
    failures = 0
    for phase, (_, _, share) in PHASES.items():
        stages, same = Counter[str](), 0
        quota = round(share * count)
        for i in range(quota):
            _remove_run(scratch)
            stages[_killed(scratch, phase, (i + 0.5) / quota * durations[phase])] += 1
            subprocess.run(command(scratch), check=True, capture_output=True, cwd=ROOT)
            result = progress(scratch)
            same += result == expected and not leftovers(scratch)
            if result != expected:
                print(f"    {result}", flush=True)
        print(f"{phase:<30}{quota:>10}{same:>15}", flush=True)
        print(f"    found: {', '.join(f'{n} {stage}' for stage, n in stages.most_common())}", flush=True)
        failures += quota - same
    return failures


def _start(folder: Path) -> subprocess.Popen[bytes]:
    quiet = subprocess.DEVNULL
    return subprocess.Popen(command(folder), stdin=quiet, stdout=quiet, stderr=quiet, cwd=ROOT)


def _remove_run(folder: Path) -> None:
    subprocess.run(["rm", "-rf", folder / "run"], check=True)


def _timed_run(folder: Path) -> dict[str, float]:
    """Run to the end; returns the seconds of every phase."""
    seconds = {}
    with _start(folder) as process:
        for phase, (begin, end, _) in PHASES.items():
            began = _wait_for(folder / "run" / begin, process)
            seconds[phase] = _wait_for(folder / "run" / end, process) - began
    assert process.returncode == 0, process.returncode
    return seconds


def _wait_for(path: Path, process: subprocess.Popen[bytes]) -> float:
    """Wait until a file or folder is there; returns the time."""
    while not path.exists():
        assert process.poll() is None, f"the process ended without {path}"
        time.sleep(0.001)
    return time.monotonic()


def _killed(folder: Path, phase: str, delay: float) -> str:
    """Kill a run some time after a phase began; returns what was there. Tries again if the run was faster."""
    while True:
        with _start(folder) as process:
            _wait_for(folder / "run" / PHASES[phase][0], process)
            time.sleep(delay)
            process.kill()
        if process.returncode != 0:
            return progress(folder)
        _remove_run(folder)
        delay /= 2


def main(words: Sequence[str] | None = None) -> int:
    """Interrupt what the words say; returns 1 if a check failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    scenes = COMMANDS | RUNS
    parser.add_argument("names", nargs="*", help=f"commands, by default all: {', '.join(scenes)}")
    parser.add_argument("--every", type=int, help="try every so many operations")
    parser.add_argument("--kills", type=int, default=50, help="processes to kill")
    options = parser.parse_args(words)
    if unknown := {*options.names} - {*scenes}:
        parser.error(f"unknown: {', '.join(unknown)}")
    failures = 0
    with tempfile.TemporaryDirectory(prefix="regard-crash-") as scratch:
        print(f"{'command':<30}{'operations':>10}{'crashes':>9}{'failed':>8}{'errors':>9}{'failed':>8}")
        for name in options.names or scenes:
            every = options.every or EVERY.get(name, 1)
            failures += sweep(name, scenes[name], Path(scratch) / "folder", every)
        if options.kills:
            failures += kill_processes(options.kills, Path(scratch) / "kills")
    print(f"\n{failures} failures")
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
