"""What a run costs beside its steps: `regard train` against a bare loop over batches made beforehand.

    python benchmarks/train_run.py RUN/data [--preset small] [--steps 8] [--rounds 4]

RUN/data is what `regard train` prepared. Both take the same steps with the same model; the run also makes its
batches in a thread, keeps its journal and shows its lines. They take steps, a few steps each.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from regard.config import preset  # noqa: E402
from regard.host import keep_freed_memory  # noqa: E402
from regard.tasks.translate import Translate  # noqa: E402
from regard.training.loop import TrainingLoop  # noqa: E402
from regard.training.schedule import learning_rate  # noqa: E402


def bare(run: TrainingLoop, n_steps: int) -> float:
    """Target tokens a second of nothing but steps."""
    steps = [next(run.stream) for _ in range(n_steps)]
    started = time.perf_counter()
    for number, step in enumerate(steps, start=1):
        rate = learning_rate(run.config.training, run.config.model.d_model, number)
        run.learner.step(step, rate, number, interrupted=False, seconds=0.0).read()
    return sum(step.n_targets for step in steps) / (time.perf_counter() - started)


def whole(run: TrainingLoop, n_steps: int) -> float:
    """Target tokens a second of a run with all that goes with its steps: batches made, journal, listeners."""
    tokens: list[int] = []
    run.listeners = [lambda event: tokens.append(event.get("tokens", 0))]
    started = time.perf_counter()
    for _ in range(n_steps):
        run._step(interrupted=False)
        run._settle()
    return sum(tokens) / (time.perf_counter() - started)


def main() -> None:
    """Alternate, and print each round and the median of the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--preset", default="small")
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=4)
    args = parser.parse_args()
    keep_freed_memory()
    config = preset(args.preset)
    lesson = Translate().prepared(args.data, config).lesson
    with tempfile.TemporaryDirectory() as scratch:
        runs = [TrainingLoop(Path(scratch) / name, config, lesson) for name in ("bare", "whole")]
        for run in runs:
            bare(run, 2)
        ratios = []
        for i in range(args.rounds):
            alone, together = bare(runs[0], args.steps), whole(runs[1], args.steps)
            ratios.append(together / alone)
            told = f"steps alone {alone:,.0f}, run {together:,.0f} target tokens/s, {ratios[-1]:.3f}"
            print(f"round {i + 1}: {told}")
        print(f"median ratio {statistics.median(ratios):.3f}")
        for run in runs:
            run.stream.close()


if __name__ == "__main__":
    main()
