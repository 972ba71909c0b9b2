"""Save, load, describe and compress model folders."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.bundle.card import card
from regard.bundle.manifest import (
    CARD,
    CONFIG,
    DAMAGED,
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
    named_folder,
    read_manifest,
)
from regard.bundle.weights import (
    count_parameters,
    empty_model,
    hash_of,
    int8_weights,
    load_tensors,
    read_tensors,
    structure_problems,
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
    """In evaluation mode, with weights in the dtype that they were saved in."""
    subwords: bytes | None = field(repr=False)
    """The subword model as it was saved, if there is one."""


@dataclass(frozen=True, slots=True)
class Description:
    """What is known of a model folder without loading it."""

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
    """Write a model folder atomically; returns its absolute path.

    Args:
        folder: where to write; parent folders are created, a link is followed.
        model: the weights and the configuration. A model with other modules than the configuration
            describes is refused; register them as choices. Forward hooks are not saved.
        subwords: the subword model.
        labels: the labels of a classifier, in the order of its outputs.
        metrics: measurements that JSON can hold: no NaN, no infinity.
        decoding: the default search settings; by default those of the paper.
        task: what the model is for, if known.
        notes: Markdown for the card: the languages, the task, the data.
        overwrite: replace an existing model folder. Nothing else is ever replaced.

    Raises:
        BundleError: something else is in the way, the system refuses, or the model could not be loaded again.
            What was there before is unchanged.
    """
    folder = Path(folder).resolve()
    weights = dict(model.named_parameters())
    described = empty_model(model.config)
    if problems := weight_problems(described, weights):
        # A wrapped model (compiled, distributed) has other names; one with broken sharing has more.
        problems = [f"cannot be saved: {problem}" for problem in problems]
    elif problems := structure_problems(model, described):
        problems = [f"cannot be saved: {problem}" for problem in problems]
        problems.append("register the choice, name it in the configuration and build the model anew")
    if problems:
        raise BundleError(problems, str(folder), code="unsavable_model")
    dtype = ", ".join(sorted({str(weight.dtype).removeprefix("torch.") for weight in weights.values()}))
    measured = _metrics_text(metrics or {}, folder)
    files = {
        WEIGHTS: to_bytes(model),
        CONFIG: _config_text(model.config, decoding or DecodingConfig(), task or TaskConfig()).encode(),
        CARD: card(folder.name, model.config, (model.n_parameters, dtype), metrics or {}, notes).encode(),
    }
    if subwords is not None:
        files[SUBWORDS] = subwords
    if labels:
        files[LABELS] = (json.dumps(list(labels), ensure_ascii=False, indent=1) + "\n").encode()
    if metrics is not None:
        files[METRICS] = measured.encode()
    files[MANIFEST] = manifest_of(files, hash_of(files[WEIGHTS]))
    write_folder(folder, files, overwrite=overwrite)
    return folder


def add_file(folder: Path | str, name: str, content: bytes) -> None:
    """Add a file to a model folder, or replace it; the whole folder is replaced atomically.

    Raises:
        BundleError: the folder is damaged, holds files that are not part of it, or the system refuses.
    """
    folder = Path(folder).resolve()
    manifest = read_manifest(folder)
    problems: list[str] = []
    files = dict(intact_files(folder, manifest, problems))
    if problems:
        raise BundleError(problems, _where(folder, manifest), code=DAMAGED)
    files[name] = content
    files[MANIFEST] = manifest_of(files, manifest.weights_hash)
    write_folder(folder, files, overwrite=True)


def compact(folder: Path | str, out: Path | str, *, notes: str = "", overwrite: bool = False) -> Path:
    """Write a copy of a model folder with every matrix in 8 bits: a quarter of the size.

    It is loaded like any other, and computes in float32 or in what its engine supports. `notes` are Markdown
    for its card.

    Raises:
        BundleError: the folder is damaged, or something is in the way of the new one.
    """
    folder, out = Path(folder), Path(out).resolve()
    described, problems = describe_bundle(folder), list[str]()
    files = dict(intact_files(folder, read_manifest(folder), problems))
    if problems:
        raise BundleError(problems, str(folder), code=DAMAGED)
    files[WEIGHTS] = int8_weights(files[WEIGHTS], {"regard_format": str(FORMAT)})
    sizes = (described.n_parameters, "int8")
    files[CARD] = card(out.name, described.config, sizes, described.metrics, notes).encode()
    files[MANIFEST] = manifest_of(files, hash_of(files[WEIGHTS]))
    write_folder(out, files, overwrite=overwrite)
    return out


def load_bundle(folder: Path | str, device: torch.device | str = "cpu") -> Bundle:
    """Load a model folder, or a bundled model by its name, and check all of it.

    Raises:
        BundleError: with every problem at once: files missing or changed, unknown settings, weights missing,
            unexpected or of another shape; or a newer format, or a folder of another kind.
    """
    folder = named_folder(folder)
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
    raise BundleError(problems, _where(folder, manifest), code=DAMAGED)


def describe_bundle(folder: Path | str) -> Description:
    """Describe a model folder, or a bundled model by its name, without loading it.

    It reads the manifest, the configuration and the header of the weights: fast, and without torch. Sizes are
    checked, hashes only by `load_bundle`.

    Raises:
        BundleError: with every problem at once.
    """
    folder = named_folder(folder)
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
    raise BundleError(problems, _where(folder, manifest), code=DAMAGED)


def read_labels(folder: Path | str, n_labels: int) -> tuple[str, ...]:
    """The labels of a classifier, from `labels.json`; without that file, numbers.

    Raises:
        BundleError: the file is damaged, or the number of labels is not the model's.
    """
    file = Path(folder) / LABELS
    if not file.exists():
        return tuple(map(str, range(n_labels)))
    try:
        labels = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise BundleError(f"{LABELS} cannot be read: {error}", str(folder), code=DAMAGED) from error
    if not isinstance(labels, list) or len(labels) != n_labels or not all(isinstance(x, str) for x in labels):
        problem = f"{LABELS} does not hold the {n_labels} labels of the model"
        raise BundleError(problem, str(folder), code=DAMAGED)
    return tuple(labels)


def _where(folder: Path, manifest: Manifest) -> str:
    """The folder, and the version that wrote it if it is another one, since that may explain a problem."""
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
        found = [f"{CONFIG}: {problem}" for problem in error.problems]
        if error.code == "unknown_choice":  # nothing is damaged: a module must be imported first
            advice = "import the module that registers it before you load the folder"
            raise BundleError([*found, advice], str(folder), code=error.code) from error
        problems += found
        return None


def _metrics_text(metrics: Mapping[str, Any], folder: Path) -> str:
    try:
        return json.dumps(metrics, indent=2, allow_nan=False) + "\n"
    except (TypeError, ValueError) as error:
        raise BundleError(
            f"metrics cannot be saved as JSON: {error}", str(folder), code="bad_metrics"
        ) from error


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
