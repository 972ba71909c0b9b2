"""What `benchmarks/gpu/tasks.py` runs: one model each, trained and scored as `regard train` does it.

A job is called in a process of its own, with the folder of the data, one of its own, and the moment at which
it must be done, in seconds since the epoch. Short runs are eager: compiling would take most of their time.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from benchmarks.gpu.extracts import copies, extracts, sentences_of, write
from regard.bundle import describe_bundle
from regard.config import RunConfig, read_config
from regard.data.reading.labelled import labelled_corpus, unlabelled_corpus
from regard.scores.classification import ClassificationScore
from regard.tasks.classify import Classify
from regard.tasks.fields import Summarise
from regard.tasks.generate import Generate
from regard.tasks.label_preparation import LabelledSource
from regard.tasks.task import DataFiles, Job, Lesson, Reporter, Task
from regard.training.checkpoints.run_folder import claim
from regard.training.distributed.world import World, choose_device
from regard.training.loop import TrainingLoop
from regard.training.run import Run, WholeRun
from regard.training.starting import Start

REPORT = Reporter([lambda event: print(event.get("message", event))])
SETS = {
    "zh": ("waimai_10k", "chnsenticorp_htl", "online_shopping", "thucnews_titles"),
    "en": ("sst2", "ag_news_7600"),
}
SETS["zh-en"] = SETS["zh"] + SETS["en"]
COPIES = 60_000
"""Made-up documents to copy from."""
VALIDATIONS = 8
PLAIN = ["training.compile=false", "training.average_checkpoints=1", "training.probe_sentences=0"]
FIELDS = ["task.name=summarise", "task.input={text}", "task.output={summary}", "data.max_ratio=none"]
FIELDS += ["data.max_characters=1000000", "data.cut_inputs=true"]
Scores = dict[str, Any]


def pretrain(
    data: Path,
    out: Path,
    until: float,
    language: str,
    more: bool,
    steps: int,
    settings: Sequence[str],
    start: Path | None = None,
) -> Scores:
    """Guess hidden tokens of all the training sets of a language, or two; with `more`, of text.zh.xz too."""
    begun = None if start is None else Start.of(start)
    config = _shaped(_config("classifier", *PLAIN, "training.patience=0", *settings), begun)
    plain = prepare_pretrain(data, out, language, more, settings, begun)
    return _run(out, _limited(config, steps, until), plain, begun)


def prepare_pretrain(
    data: Path,
    out: Path,
    language: str,
    more: bool,
    settings: Sequence[str],
    begun: Start | None = None,
) -> Lesson:
    """The texts of `pretrain` in tokens, which takes no GPU."""
    config = _config("classifier", *settings)
    folders = [data / "classification" / name for name in SETS[language]]
    texts = [folder / "train.tsv.xz" for folder in folders]
    texts += [data / f"text.{each}.xz" for each in language.split("-")] if more else []
    source = LabelledSource(
        train=labelled_corpus(*(folder / "train.tsv.xz" for folder in folders)),
        valid=labelled_corpus(*(folder / "valid.tsv.xz" for folder in folders)),
        test=labelled_corpus(*(folder / "test.tsv.xz" for folder in folders)),
        plain=unlabelled_corpus(*texts),
        subwords=_learned(data, f"{language}{'-more' * more}") if begun is None else begun.subwords,
        max_tokens=config.model.max_length,
    )
    task, folder = Classify(), _beside(out, "data")
    task.prepare(folder, source, REPORT)
    lesson = task.prepared(folder, config).pretraining
    assert lesson is not None
    return lesson


def classify(
    data: Path, out: Path, until: float, name: str, steps: int, start: Path | None, settings: Sequence[str]
) -> Scores:
    """Learn the labels of one set, from scratch or from an encoder that has guessed tokens."""
    begun = None if start is None else Start.of(start)
    config = _shaped(_config("classifier", *PLAIN, "training.patience=0", *settings), begun)
    folder = data / "classification" / name
    files = {part: (folder / f"{part}.tsv.xz",) for part in ("train", "valid", "test")}
    run = _whole(Classify(), out, _limited(config, steps, until), DataFiles(**files), begun)
    valid = min(run.events, key=lambda event: event.get("valid_loss", 1e9))
    return {
        **_ended(run),
        "valid accuracy": valid["valid_accuracy"],
        "accuracy": run.scores.accuracy,
        "macro_f1": run.scores.macro_f1,
    }


def together(data: Path, name: str, runs: Sequence[Path]) -> Scores:
    """The mean of the answers of several models of one set."""
    folder = data / "classification" / name
    models = [describe_bundle(run / "best") for run in runs]
    valid, test = (
        Classify().evaluate_together(models, [folder / f"{part}.tsv.xz"]) for part in ("valid", "test")
    )
    assert isinstance(valid, ClassificationScore)
    assert isinstance(test, ClassificationScore)
    return {"valid accuracy": valid.accuracy, "accuracy": test.accuracy, "macro_f1": test.macro_f1}


def generate(
    data: Path,
    out: Path,
    until: float,
    name: str,
    steps: int,
    columns: Sequence[int],
    settings: Sequence[str],
) -> Scores:
    """Learn to continue the texts of one set."""
    config = _config("generator", *PLAIN, *settings)
    ending = "tsv.xz" if columns else "txt.xz"
    files = {part: (data / "generation" / name / f"{part}.{ending}",) for part in ("train", "valid")}
    config = _limited(config, steps, until)
    run = _whole(Generate(), out, config, DataFiles(**files, columns=tuple(columns)), None)
    return {**_ended(run), **run.scores.measures()}


def copy(data: Path, out: Path, until: float, steps: int, settings: Sequence[str]) -> Scores:
    """Learn to copy any sentence of a document."""
    config = _config("small", *PLAIN, *FIELDS, *settings)
    return _run(out, _limited(config, steps, until), prepare_copy(data, out, settings))


def prepare_copy(data: Path, out: Path, settings: Sequence[str]) -> Lesson:
    """The documents of `copy` in tokens, which takes no GPU."""
    config = _config("small", *PLAIN, *FIELDS, *settings)
    sets, texts, folder = _scitldr(data), _beside(out, "pairs"), _beside(out, "data")
    sets["train"] = [write(texts / "train.jsonl", copies(to_copy(data), COPIES, seed=1))]
    sets["valid"] = [write(texts / "valid.jsonl", extracts(sets["valid"][0], 0, seed=1))]
    task = Summarise()
    files = DataFiles(**{name: tuple(paths) for name, paths in sets.items()})
    job = Job(folder=folder, config=config, files=files, vocab_size=4000, report=REPORT)
    source = replace(task.source(job, task.open_files(job)), subwords=_learned(data, "copies"))
    task.prepare(folder, source, REPORT)
    return task.prepared(folder, config).lesson


def summarise(
    data: Path, out: Path, until: float, pairs: str, steps: int, start: Path, settings: Sequence[str]
) -> Scores:
    """Learn to write the summaries of SciTLDR; or first (`extracts`), to copy the sentence that says most."""
    sets, texts, begun = _scitldr(data), _beside(out, "pairs"), Start.of(start)
    if pairs == "extracts":
        sets["train"] = [write(texts / "train.jsonl", extracts(sets["train"][0], 5, seed=1))]
        sets["valid"] = [write(texts / "valid.jsonl", extracts(sets["valid"][0], 0, seed=1))]
    config = _limited(_shaped(_config("small", *PLAIN, *FIELDS, *settings), begun), steps, until)
    files = DataFiles(**{name: tuple(paths) for name, paths in sets.items()})
    run = _whole(Summarise(), out, config, files, begun, vocab_size=4000)
    score = Summarise().evaluate(describe_bundle(out / "best"), _scitldr(data)["valid"])
    valid = {f"valid {name}": value for name, value in asdict(score).items()}
    assert run.result is not None
    return {**_ended(run), **valid, **asdict(run.scores), "outputs": run.result.text.split("\n")[2:]}


def _whole(
    task: Task,
    out: Path,
    config: RunConfig,
    files: DataFiles,
    begun: Start | None,
    vocab_size: int | None = None,
) -> Run:
    """Prepare, train and test, as `regard train` does it."""
    world, start = _world(), None if begun is None else begun.bundle
    if task.name == "generate":
        vocab_size = config.model.vocab_size
    job = Job(
        folder=out,
        config=config,
        files=files,
        vocab_size=vocab_size,
        start=start,
        device=world.device,
        report=REPORT,
    )
    claim(out, config)
    return WholeRun(job, task, world, begun).carry_out(task.open_files(job))


def _ended(run: Run) -> Scores:
    steps = [event for event in run.events if "loss" in event]
    best = min(
        (event for event in run.events if "valid_loss" in event), key=lambda event: event["valid_loss"]
    )
    return {
        "parameters": describe_bundle(run.folder / "best").n_parameters,
        "steps": steps[-1]["step"],
        "best_step": best["step"],
        "train_seconds": round(steps[-1]["seconds"], 1),
        "valid_loss": best["valid_loss"],
    }


def _scitldr(data: Path) -> dict[str, list[Path]]:
    folder = data / "summarisation" / "scitldr"
    return {name: [folder / f"{name}.jsonl.xz"] for name in ("train", "valid", "test")}


def to_copy(data: Path) -> list[str]:
    """English sentences of the training sets."""
    names = ("scitldr", "ag_headlines")
    return sentences_of(
        *(data / "summarisation" / name / "train.jsonl.xz" for name in names), data / "text.en.xz"
    )


def _learned(data: Path, name: str) -> bytes | None:
    """Subwords that were learned beforehand; None: they are learned now."""
    place = data / "subwords" / f"{name}.model"
    return place.read_bytes() if place.exists() else None


def _beside(out: Path, name: str) -> Path:
    """A folder beside that of a run, which holds the run alone."""
    return out.with_name(f"{out.name}-{name}")


def _world() -> World:
    return World(choose_device("auto"))


def _config(preset: str, *settings: str) -> RunConfig:
    return read_config(preset=preset, settings=list(settings))


def _shaped(config: RunConfig, begun: Start | None) -> RunConfig:
    """With the shape of what is begun from."""
    return config if begun is None else replace(config, model=begun.shape(config.model))


def _changed(config: RunConfig, **changes: Any) -> RunConfig:
    return replace(config, training=replace(config.training, **changes))


def _limited(config: RunConfig, steps: int, until: float) -> RunConfig:
    """With so many steps, and no longer than there is time."""
    every = max(1, -(-steps // VALIDATIONS))
    minutes = max(0.02, (until - time.time()) / 60)
    warmup = min(config.training.warmup_steps, max(1, steps // 10))
    return _changed(
        config,
        max_steps=steps,
        max_minutes=minutes,
        validate_every=every,
        checkpoint_every=steps,
        warmup_steps=warmup,
    )


def _run(out: Path, config: RunConfig, lesson: Lesson, begun: Start | None = None) -> Scores:
    """Train; where the compiler fails, without it: a measurement must not be lost to that."""
    try:
        run = TrainingLoop(out, config, lesson, world=_world(), start=begun)
        run.train()
    except Exception:
        if not config.training.compile:
            raise
        traceback.print_exc()
        return _run(out, _changed(config, compile=False), lesson, begun)
    return _trained(run)


def _trained(run: TrainingLoop) -> Scores:
    progress = run.progress
    return {
        "parameters": run.model.n_parameters,
        "steps": progress.step,
        "best_step": progress.best_step,
        "train_seconds": round(progress.seconds, 1),
        "valid_loss": progress.best_loss,
    }
