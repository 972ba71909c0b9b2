"""A model folder as one value: saved, loaded, described."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.bundle.card import card
from regard.bundle.labels import labels_text
from regard.bundle.manifest import (
    CARD,
    CONFIG,
    FORMAT,
    LABELS,
    MANIFEST,
    METRICS,
    SUBWORDS,
    WEIGHTS,
    Manifest,
    content_of,
    file_problems,
    intact_files,
    manifest_of,
    read_manifest,
)
from regard.bundle.weights import (
    count_parameters,
    empty_model,
    hash_of,
    load_tensors,
    read_tensors,
    to_bytes,
    weight_problems,
)
from regard.bundle.writing import write_folder
from regard.config import DecodingConfig, ModelConfig, RunConfig, TaskConfig, read_config
from regard.config.checking import Section, types_of
from regard.config.describe import toml_value
from regard.errors import BundleError, ConfigError
from regard.version import __version__

if TYPE_CHECKING:
    import torch

    from regard.bundle.weights import Model


@dataclass(frozen=True, slots=True)
class Bundle:
    """A loaded model folder."""

    folder: Path
    config: ModelConfig
    decoding: DecodingConfig
    task: TaskConfig
    metrics: dict[str, Any]
    model: Model = field(repr=False)
    """In evaluation mode, every weight in the dtype that it was saved in."""
    subwords: bytes | None = field(repr=False)
    """The subword model as it was saved; None where there was none."""


@dataclass(frozen=True, slots=True)
class Description:
    """What can be told of a model folder without loading it."""

    folder: Path
    format: int
    regard: str
    """The version that wrote it."""
    config: ModelConfig
    decoding: DecodingConfig
    task: TaskConfig
    n_parameters: int
    dtype: str
    weights_hash: str
    files: dict[str, int]
    """The size of every file, in bytes."""
    metrics: dict[str, Any]


def save_bundle(
    folder: Path | str,
    model: Model,
    *,
    subwords: bytes | None = None,
    labels: Sequence[str] = (),
    metrics: Mapping[str, Any] | None = None,
    decoding: DecodingConfig | None = None,
    task: TaskConfig | None = None,
    notes: str = "",
    overwrite: bool = False,
) -> Path:
    """Write a model folder, whole or not at all; returns its absolute path.

    Args:
        folder: where to; folders above it are made, a link is followed.
        model: the weights and the configuration.
        subwords: the subword model.
        labels: what a classifier tells apart, in the order of its outputs.
        metrics: what was measured, as JSON can hold it: no NaN, no infinity.
        decoding: how to search unless told otherwise; by default the paper's way.
        task: what the model is for, as far as it is known.
        notes: Markdown for the card: the languages, the task, the data.
        overwrite: replace a model folder that is there already. Nothing else is ever replaced.

    Raises:
        BundleError: something else is in the way, the system refuses, or the model could not be loaded again.
            What was there before still is.
    """
    folder = Path(folder).resolve()
    weights = dict(model.named_parameters())
    if problems := weight_problems(empty_model(model.config), weights):
        # A model in a wrapper (compiled, distributed) has other names; one whose sharing broke has more.
        raise BundleError([f"cannot be saved: {problem}" for problem in problems], str(folder))
    dtype = ", ".join(sorted({str(each.dtype).removeprefix("torch.") for each in weights.values()}))
    measured = _metrics_text(metrics or {}, folder)
    files = {
        WEIGHTS: to_bytes(model),
        CONFIG: _config_text(model.config, decoding or DecodingConfig(), task or TaskConfig()).encode(),
        CARD: card(folder.name, model.config, (model.n_parameters, dtype), metrics or {}, notes).encode(),
    }
    if subwords is not None:
        files[SUBWORDS] = subwords
    if labels:
        files[LABELS] = labels_text(labels)
    if metrics is not None:
        files[METRICS] = measured.encode()
    files[MANIFEST] = manifest_of(files, hash_of(files[WEIGHTS]))
    write_folder(folder, files, overwrite=overwrite)
    return folder


def add_file(folder: Path | str, name: str, content: bytes) -> None:
    """Put one more file into a model folder, or in the place of that one; the folder is replaced as a whole.

    Raises:
        BundleError: the folder is damaged, holds what is no part of it, or the system refuses.
    """
    folder = Path(folder).resolve()
    manifest = read_manifest(folder)
    problems: list[str] = []
    files = dict(intact_files(folder, manifest, problems))
    if problems:
        raise BundleError(problems, _where(folder, manifest))
    files[name] = content
    files[MANIFEST] = manifest_of(files, manifest.weights_hash)
    write_folder(folder, files, overwrite=True)


def load_bundle(folder: Path | str, device: torch.device | str = "cpu") -> Bundle:
    """Read a model folder and check all of it.

    Raises:
        BundleError: with every problem at once: files missing or changed, settings that do not exist, weights
            that are missing, left over or of another shape; a newer format; a folder of another kind.
    """
    folder = Path(folder)
    manifest = read_manifest(folder)
    problems: list[str] = []
    contents = dict(intact_files(folder, manifest, problems))
    config = _read_config(folder, problems) if CONFIG in contents else None
    metrics = _read_metrics(contents.get(METRICS), problems)
    tensors = read_tensors(contents.pop(WEIGHTS), problems) if WEIGHTS in contents else None
    if config is not None and tensors is not None:
        model = empty_model(config.model)
        problems += weight_problems(model, tensors)
        if not problems:
            return Bundle(
                folder=folder,
                config=config.model,
                decoding=config.decoding,
                task=config.task,
                metrics=metrics,
                model=load_tensors(model, tensors, device),
                subwords=contents.get(SUBWORDS),
            )
    raise BundleError(problems, _where(folder, manifest))


def describe_bundle(folder: Path | str) -> Description:
    """What a model folder holds, from its manifest, its configuration and the header of its weights.

    Quick, and without torch: sizes are checked, hashes are left to `load_bundle`.

    Raises:
        BundleError: with every problem at once.
    """
    folder = Path(folder)
    manifest = read_manifest(folder)
    problems = list(file_problems(folder, manifest).values())
    if not problems:
        config = _read_config(folder, problems)
        measured = content_of(folder, METRICS, problems) if METRICS in manifest.files else None
        metrics = _read_metrics(measured, problems)
        n_parameters, dtype = count_parameters(folder / WEIGHTS, problems)
        if config is not None and not problems:
            return Description(
                folder=folder,
                format=manifest.format,
                regard=manifest.regard,
                config=config.model,
                decoding=config.decoding,
                task=config.task,
                n_parameters=n_parameters,
                dtype=dtype,
                weights_hash=manifest.weights_hash,
                files={name: file.size for name, file in manifest.files.items()},
                metrics=metrics,
            )
    raise BundleError(problems, _where(folder, manifest))


def _where(folder: Path, manifest: Manifest) -> str:
    """The folder; and the version that wrote it, where another one may explain what does not fit."""
    if manifest.regard == __version__:
        return str(folder)
    return f"{folder}, written by regard {manifest.regard} (this is regard {__version__})"


def _config_text(*sections: Section) -> str:
    lines = [f"# A model folder of regard, format {FORMAT}."]
    for section in sections:
        values = ((name, kind, getattr(section, name)) for name, kind in types_of(type(section)).items())
        lines += [
            "",
            f"[{section.SECTION}]",
            *(f"{name} = {toml_value(kind, v)}" for name, kind, v in values),
        ]
    return "\n".join(lines) + "\n"


def _read_config(folder: Path, problems: list[str]) -> RunConfig | None:
    try:
        return read_config(file=folder / CONFIG)
    except ConfigError as error:
        problems += [f"{CONFIG}: {problem}" for problem in error.problems]
        return None


def _metrics_text(metrics: Mapping[str, Any], folder: Path) -> str:
    try:
        return json.dumps(metrics, indent=2, allow_nan=False) + "\n"
    except (TypeError, ValueError) as error:
        raise BundleError(f"metrics cannot be saved as JSON: {error}", str(folder)) from error


def _read_metrics(content: bytes | None, problems: list[str]) -> dict[str, Any]:
    try:
        metrics = {} if content is None else json.loads(content)
    except (ValueError, RecursionError) as error:
        problems.append(f"{METRICS} is not JSON: {error}")
        return {}
    if isinstance(metrics, dict):
        return metrics
    problems.append(f"{METRICS} is not a table of names and values")
    return {}
