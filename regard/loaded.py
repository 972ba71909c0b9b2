"""`regard.load`: opens a model folder as the loaded model of its task."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from regard.bundle.bundle import describe_bundle
from regard.bundled import DEFAULT
from regard.engine.loading import EngineName, model_folder
from regard.errors import ConfigError
from regard.exchange.ctranslate2.weights_file import Quantisation
from regard.tasks.loaded import LoadedModel
from regard.tasks.task import task_of


def load(
    folder: Path | str | Sequence[Path | str] = DEFAULT,
    *,
    engine: EngineName = "auto",
    device: str = "auto",
    threads: int | None = None,
    quantisation: Quantisation | None = None,
) -> LoadedModel:
    """Open a model; its class depends on its task: `LoadedTranslator`, `LoadedGenerator`, `LoadedClassifier`.

    Args:
        folder: a model folder, a run (its best model is used), or the name of a bundled model; several
            are an ensemble of translators or classifiers, which needs torch. Default: the bundled translator.
        engine: for translators: `ctranslate2`, `torch`, or `auto`, which uses CTranslate2 for every request
            that it supports and torch otherwise. Results name the engine that ran.
        device: `cpu`, `cuda`, `mps` (the GPU of a Mac), or `auto`: torch uses an NVIDIA GPU if there is one.
            CTranslate2 runs on CPUs here, so with `cuda` or `mps`, `auto` uses torch.
        threads: CPU cores to use; default all.
        quantisation: the dtype of weights. CTranslate2: default int8, or float32 if the CPU lacks it. torch:
            float32 or bfloat16, which is its default on GPUs.

    Raises:
        BundleError: a model folder is missing, damaged or without subwords.
        ConfigError: the engine does not exist, or cannot run the model; or models of an ensemble differ.
    """
    folders = [folder] if isinstance(folder, Path | str) else list(folder)
    if not folders:
        raise ConfigError("there is no model to load: name at least one folder", code="no_model")
    described = [describe_bundle(model_folder(each)) for each in folders]
    task = task_of(described[0])
    for each in described[1:]:
        if (other := task_of(each)).verb != task.verb:
            raise ConfigError(
                f"{each.folder}: its task is {other.verb}, but that of {described[0].folder} is {task.verb}; "
                "models of an ensemble need the same task",
                code="ensemble_mismatch",
            )
    return task.load(described, engine=engine, device=device, threads=threads, quantisation=quantisation)
