"""The bars of the other tasks, all measured in one go on a GPU: small models, a few at a time.

    python -m benchmarks.gpu.tasks DATA OUT [--runs DIR] [--seconds 300] [--workers 3] [--seeds 3]
    python -m benchmarks.gpu.tasks DATA --subwords
    python -m benchmarks.gpu.tasks DATA --runs DIR --prepare

DATA has `classification`, `generation` and `summarisation` as their publishers lay them out, and text.zh.xz
and text.en.xz, plain lines, for encoders that read more than the labelled sets. OUT/results.json and
OUT/results.txt are written anew after every job, and at the end OUT/chosen.txt: which kind of classifier the
validation set of each labelled set prefers. The runs are in a temporary folder unless told. Where time costs
nothing, `--subwords` learns the vocabularies beforehand, into DATA/subwords, and `--prepare` puts the largest
texts into tokens.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from regard import bundled

TRANSLATOR = "zh-en"
"""A model that knows both languages, whose encoder others begin with."""
LABELLED = {
    "online_shopping": ("zh", 16384, 750),
    "chnsenticorp_htl": ("zh", 8192, 400),
    "thucnews_titles": ("zh", 4096, 600),
    "waimai_10k": ("zh", 4096, 500),
    "ag_news_7600": ("en", 8192, 320),
    "sst2": ("en", 4096, 350),
}
"""Their language, tokens in a step, and steps: five to eight times through each."""
OPINIONS = "online_shopping"
"""The largest set that tells good from bad, from whose model the smaller ones can begin."""
ALIKE = {
    "adapted": ("chnsenticorp_htl", "waimai_10k"),
    "translator": ("chnsenticorp_htl", "waimai_10k", "sst2"),
}
"""The sets with the same two labels that can: those whose language it reads."""
LEAST = 25
"""Seconds that a job needs; with less left, none is begun."""
ENCODER = ["model.d_model=512", "model.n_heads=8", "model.d_ff=2048", "model.max_length=256"]
ENCODER += ["model.encoder_layers=6", "model.positions=rotary", "model.dropout=0.1"]
ENCODER += ["training.batch_tokens=32768", "training.learning_rate=1e-3", "training.warmup_steps=200"]
ENCODER += ["training.ema_decay=0.998", "training.compile=true"]
ADAPTING = [*ENCODER, "training.learning_rate=8e-4", "training.warmup_steps=100"]
TUNED = ["training.learning_rate=3e-4", "model.dropout=0.1", "training.ema_decay=0.99"]
TUNED += ["training.hidden_tokens=0.15", "training.agreement=1"]
SCRATCH = ["training.learning_rate=7e-4", "model.dropout=0.3", "training.ema_decay=0.99"]
SCRATCH += ["model.max_length=256", "model.positions=rotary"]
PLAYS = ["model.dropout=0.25", "training.ema_decay=0.995"]
COPYING = [
    "model.positions=rotary",
    "model.max_length=512",
    "model.dropout=0.1",
    "training.batch_tokens=16384",
]
COPYING += ["training.schedule=cosine", "training.learning_rate=1e-3", "training.warmup_steps=500"]
COPYING += ["training.clip_norm=1", "training.ema_decay=0.998", "decoding.length_penalty=1"]
COPYING += ["training.compile=true"]
EXTRACTING = [*COPYING, "training.compile=false", "training.learning_rate=3e-4", "training.warmup_steps=50"]
EXTRACTING += ["training.ema_decay=0.99"]


@dataclass(frozen=True)
class Job:
    """One model, trained and scored by a function of `task_jobs`."""

    name: str
    does: str
    seconds: float
    """How long it may train."""
    arguments: dict[str, Any] = field(default_factory=dict)
    after: str | None = None
    """The job that it starts from, or the model that comes with the package."""

    def start(self, runs: Path) -> Path | None:
        """The model that it starts from."""
        if self.after is None:
            return None
        return bundled.folder(self.after) if self.after in bundled.names() else runs / self.after

    def changed(self, settings: Sequence[str]) -> Job:
        """With some more settings."""
        own = self.arguments.get("settings", [])
        return replace(self, arguments={**self.arguments, "settings": [*own, *settings]})


def jobs(seeds: int) -> list[Job]:
    """All that is measured, what matters most first."""
    found = [_guessing("zh-en", 9000, after=TRANSLATOR), _guessing("zh", 8000), _guessing("en", 8000)]
    found += [_adapting("zh-en", 32768, 2500), _adapting("zh", 32768, 3000), _adapting("en", 16384, 900)]
    for seed in range(1, seeds + 1):
        found += [_labels(name, kind, seed) for kind in ("translator", "adapted") for name in LABELLED]
        found += [_alike(name, kind, seed) for kind, names in ALIKE.items() for name in names]
    found += [_labels(name, "scratch", seed) for seed in range(1, seeds + 1) for name in LABELLED]
    found += [
        Job("scitldr-copies", "copy", 135, {"steps": 7000, "settings": COPYING}),
        _summaries("extracts", "scitldr-copies", 60, EXTRACTING, 400),
        _summaries("summaries", "scitldr-extracts", 30, EXTRACTING, 100),
        _plays("plays-1000-subwords", 1000, 256, 700),
        _plays("plays-characters", 350, 512, 2400),
    ]
    poems = {"name": "tang_poems", "steps": 3500, "columns": (1, 3), "settings": ["model.vocab_size=8000"]}
    return [*found, Job("poems", "generate", 150, poems)]


def _guessing(language: str, steps: int, after: str | None = None) -> Job:
    settings = ENCODER if after is None else [*ENCODER, "training.learning_rate=6e-4"]
    arguments = {"language": language, "more": True, "steps": steps, "settings": settings}
    return Job(f"pretrain-{language}", "pretrain", 700, arguments, after)


def _adapting(language: str, batch: int, steps: int) -> Job:
    """From the text of all sets to that of the labelled ones alone."""
    settings = [*ADAPTING, f"training.batch_tokens={batch}"]
    arguments = {"language": language, "more": False, "steps": steps, "settings": settings}
    return Job(f"adapt-{language}", "pretrain", 300, arguments, f"pretrain-{language}")


def _summaries(pairs: str, after: str, seconds: float, settings: list[str], steps: int) -> Job:
    arguments = {"pairs": pairs, "steps": steps, "settings": settings}
    return Job(f"scitldr-{pairs}", "summarise", seconds, arguments, after)


def _plays(name: str, vocab_size: int, length: int, steps: int) -> Job:
    settings = [*PLAYS, f"model.vocab_size={vocab_size}", f"model.max_length={length}"]
    arguments = {"name": "tinyshakespeare", "steps": steps, "columns": (), "settings": settings}
    return Job(name, "generate", 90, arguments)


def _labels(name: str, kind: str, seed: int) -> Job:
    language, batch, steps = LABELLED[name]
    starts = {"scratch": None, "adapted": f"adapt-{language}", "translator": f"adapt-{TRANSLATOR}"}
    settings = SCRATCH if kind == "scratch" else TUNED
    settings = [*settings, f"training.seed={seed}", f"training.batch_tokens={batch}"]
    arguments = {"name": name, "steps": steps, "settings": settings}
    return Job(f"{name}-{kind}-{seed}", "classify", 250, arguments, starts[kind])


def _alike(name: str, kind: str, seed: int) -> Job:
    """From a model that has learned to tell good from bad on the largest set."""
    job = _labels(name, kind, seed)
    return replace(job, name=f"{name}-{kind}-{OPINIONS}-{seed}", after=f"{OPINIONS}-{kind}-{seed}")


def do(job: Job, data: Path, runs: Path, until: float) -> dict[str, Any]:
    """Run a job in this process; what went wrong is told as a result."""
    from benchmarks.gpu import task_jobs

    started, arguments = time.time(), dict(job.arguments)
    if job.does in ("classify", "summarise", "pretrain"):
        arguments["start"] = job.start(runs)
    try:
        scores = getattr(task_jobs, job.does)(data=data, out=runs / job.name, until=until, **arguments)
    except Exception as error:  # one that fails must not take the others with it
        traceback.print_exc()
        scores = {"error": f"{type(error).__name__}: {error}"}
    return {"name": job.name, "seconds": round(time.time() - started, 1), **scores}


class Race:
    """All jobs, each begun as soon as a worker is free, what it starts from is there, and time is left."""

    def __init__(self, data: Path, out: Path, runs: Path, seconds: float, workers: int) -> None:
        self.data, self.out, self.runs, self.seconds, self.workers = data, out, runs, seconds, workers
        self.begun = time.time()
        self.results: list[dict[str, Any]] = []

    def run(self, waiting: list[Job]) -> None:
        """Run them, and tell of each that ends."""
        context = multiprocessing.get_context("spawn")
        running: dict[Future[dict[str, Any]], Job] = {}
        with ProcessPoolExecutor(self.workers, mp_context=context) as pool:
            while waiting or running:
                for job in self._ready(waiting, self.workers - len(running)):
                    waiting.remove(job)
                    until = min(self._end, time.time() + job.seconds)
                    running[pool.submit(do, job, self.data, self.runs, until)] = job
                if not running:
                    break
                ended, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in ended:
                    del running[future]
                    self.tell(future.result())

    def _ready(self, waiting: Sequence[Job], free: int) -> list[Job]:
        done = {None, *bundled.names(), *(each["name"] for each in self.results if "error" not in each)}
        if time.time() + LEAST > self._end:
            return []
        return [job for job in waiting if job.after in done][:free]

    @property
    def _end(self) -> float:
        """When nobody may train any more: what is left is for testing."""
        return self.begun + 0.96 * self.seconds

    def tell(self, result: dict[str, Any]) -> None:
        """Keep a result, and print it."""
        self.results.append(result)
        lines = [_line(each) for each in sorted(self.results, key=lambda each: str(each["name"]))]
        print(f"{time.time() - self.begun:.0f} s: {_line(result)}", flush=True)
        (self.out / "results.json").write_text(json.dumps(self.results, indent=1) + "\n")
        (self.out / "results.txt").write_text("\n".join(lines) + "\n")


def choose(race: Race) -> Iterator[str]:
    """Which kind of model the validation set of each labelled set prefers, by the mean of its seeds."""
    from benchmarks.gpu.task_jobs import together

    for name in LABELLED:
        kinds: dict[str, list[dict[str, Any]]] = {}
        for each in [each for each in race.results if "accuracy" in each]:
            if each["name"].startswith(f"{name}-"):
                kinds.setdefault(each["name"].rpartition("-")[0], []).append(each)
        for kind, seeds in kinds.items():
            folders = [race.runs / each["name"] for each in seeds]
            race.tell({"name": f"{kind}-together", **together(race.data, name, folders)})
        if kinds:
            best = max(kinds, key=lambda kind: _mean(kinds[kind], "valid accuracy"))
            valid, test = (_mean(kinds[best], what) for what in ("valid accuracy", "accuracy"))
            yield f"{best} ({len(kinds[best])} seeds): valid {valid:.2%}, test {test:.2%}"


def _mean(results: Sequence[dict[str, Any]], what: str) -> float:
    return fmean(each[what] for each in results)


def _line(result: dict[str, Any]) -> str:
    told = {
        name: f"{x:.4f}" if isinstance(x, float) else x
        for name, x in result.items()
        if name not in ("name", "outputs")
    }
    return f"{result['name']:44} " + ", ".join(f"{name} {value}" for name, value in told.items())


def prepare(data: Path, runs: Path) -> None:
    """What the jobs that others start from read, in tokens."""
    from benchmarks.gpu import task_jobs

    for job in (job for job in jobs(1) if job.after in (None, TRANSLATOR)):
        ready = getattr(task_jobs, f"prepare_{job.does}", None)
        if ready is not None:
            own = {name: value for name, value in job.arguments.items() if name != "steps"}
            if job.after is not None:
                own["begun"] = task_jobs.Start.of(bundled.folder(job.after))
            ready(data=data, out=runs / job.name, **own)


def learn_vocabularies(data: Path) -> None:
    """The subwords of all that is trained first, from its texts."""
    from benchmarks.gpu.task_jobs import SETS, to_copy
    from regard.data.reading.labelled import unlabelled_corpus
    from regard.text.vocabularies.subwords import learn_subwords

    (data / "subwords").mkdir(exist_ok=True)
    for language in ("zh", "en"):
        paths = [data / "classification" / name / "train.tsv.xz" for name in SETS[language]]
        model = learn_subwords(
            row[0] for row in unlabelled_corpus(*paths, data / f"text.{language}.xz").rows()
        )
        (data / "subwords" / f"{language}-more.model").write_bytes(model)
    (data / "subwords" / "copies.model").write_bytes(learn_subwords(to_copy(data), 4000))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path, nargs="?")
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--runs", type=Path)
    parser.add_argument("--set", action="append", default=[], help="a setting of every job, to try it small")
    parser.add_argument("--subwords", action="store_true")
    parser.add_argument("--prepare", action="store_true")
    asked = parser.parse_args()
    if asked.subwords:
        learn_vocabularies(asked.data)
        return
    if asked.prepare:
        prepare(asked.data, asked.runs)
        return
    os.environ["OMP_NUM_THREADS"] = "1"  # the workers share the cores
    asked.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        race = Race(asked.data, asked.out, asked.runs or Path(temporary), asked.seconds, asked.workers)
        race.run([job.changed(asked.set) for job in jobs(asked.seeds)])
        (asked.out / "chosen.txt").write_text("".join(f"{line}\n" for line in choose(race)))


if __name__ == "__main__":
    main()
