"""Checkpoints: everything that a run needs to resume as if it had never stopped.

    checkpoints/step-00001000/
        weights.safetensors     the model
        moments.safetensors     the optimizer, the moving average, the states of the random number generators
        state.json              the step, the place in the data, the journal's length, the best score so far,
                                and what the last bits depend on: threads, torch, processor

A checkpoint is written under another name and renamed, so that it is complete or absent. It holds whole
weights, however many processes wrote it, and any number of processes can resume from it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load, save
from torch import Tensor, nn

from regard.bundle.manifest import WEIGHTS as MODEL_WEIGHTS
from regard.bundle.writing import write_folder
from regard.durable import remove_folder
from regard.errors import BundleError
from regard.training.distributed.sharding import put, whole
from regard.training.distributed.world import World

WEIGHTS, MOMENTS, STATE = "weights.safetensors", "moments.safetensors", "state.json"
GENERATOR = "generator"


def whole_weights(model: nn.Module) -> dict[str, Tensor]:
    """Every weight, gathered if it is sharded, in host memory; all processes must call this."""
    return on_host(dict(model.named_parameters()))


def on_host(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Whole tensors in host memory; all processes must call this."""
    return {name: whole(tensor).cpu().contiguous() for name, tensor in tensors.items()}


def generators(world: World) -> dict[str, Tensor]:
    """The states of every process's random number generators; all processes must call this."""
    own = {"cpu": torch.get_rng_state()}
    if world.device.type == "cuda":
        own["cuda"] = torch.cuda.get_rng_state(world.device)
    if world.device.type == "mps":
        own["mps"] = torch.mps.get_rng_state()
    everyone = world.gather(own)
    return {
        f"{GENERATOR}.{kind}.{i}": state for i, each in enumerate(everyone) for kind, state in each.items()
    }


def set_generators(saved: Mapping[str, Tensor], world: World, seed: int) -> None:
    """Restore this process's generators; a process without saved states starts from the seed."""
    own = {kind: saved.get(f"{GENERATOR}.{kind}.{world.rank}") for kind in ("cpu", "cuda", "mps")}
    torch.manual_seed(seed + world.rank)
    if own["cpu"] is not None:
        torch.set_rng_state(own["cpu"])
    if own["cuda"] is not None and world.device.type == "cuda":
        torch.cuda.set_rng_state(own["cuda"], world.device)
    if own["mps"] is not None and world.device.type == "mps":
        torch.mps.set_rng_state(own["mps"])


def write_checkpoint(
    folder: Path, weights: dict[str, Tensor], moments: dict[str, Tensor], step: int, state: dict[str, Any]
) -> Path:
    """Write the checkpoint of a step."""
    place = folder / f"step-{step:08d}"
    files = {
        WEIGHTS: save(weights),
        MOMENTS: save(moments),
        STATE: json.dumps({"step": step, **state}, indent=1).encode(),
    }
    write_folder(place, files, overwrite=False)
    return place


def checkpoints(folder: Path) -> list[Path]:
    """Every complete checkpoint of a run, oldest first."""
    return sorted(path for path in folder.glob("step-*") if (path / STATE).is_file())


def read_weights(place: Path) -> dict[str, Tensor]:
    """The weights of a checkpoint or a model folder."""
    if not place.is_dir():
        raise BundleError("there is no such folder", str(place), code="missing_folder")
    file = place / MODEL_WEIGHTS if (place / MODEL_WEIGHTS).is_file() else place / WEIGHTS
    try:
        return load(file.read_bytes())
    except Exception as error:
        raise BundleError(f"the weights cannot be read: {error}", str(place), code="damaged_file") from error


def read_state(place: Path) -> dict[str, Any]:
    """The state of a checkpoint; empty if it cannot be read, which `read_checkpoint` reports."""
    try:
        state = json.loads((place / STATE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return state if isinstance(state, dict) else {}


def read_checkpoint(place: Path, model: nn.Module) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Load the weights of a checkpoint into the model; returns the moments and the state."""
    try:
        weights, moments = (load((place / name).read_bytes()) for name in (WEIGHTS, MOMENTS))
        state: dict[str, Any] = json.loads((place / STATE).read_text(encoding="utf-8"))
    except Exception as error:
        advice = "delete its folder, and the run resumes from the one before"
        raise BundleError(
            f"the checkpoint cannot be read: {error}; {advice}", str(place), code="damaged_checkpoint"
        ) from error
    wanted = {name: parameter.shape for name, parameter in model.named_parameters()}
    if wanted != {name: tensor.shape for name, tensor in weights.items()}:
        what = "the checkpoint is of another model: its weights differ"
        raise BundleError(what, str(place), code="wrong_weights")
    for name, parameter in model.named_parameters():
        put(parameter, weights[name])
    return moments, state


def step_of(place: Path) -> int:
    """The step after which a checkpoint was written."""
    return int(place.name.removeprefix("step-"))


def prune(folder: Path, keep: int, every: int) -> None:
    """Delete all but `keep` checkpoints: the newest, and the last ones at multiples of `every` steps."""
    older = checkpoints(folder)[:-1]
    due = [place for place in older if step_of(place) % every == 0]
    for place in {*older} - {*due[1 - keep :]}:
        remove_folder(place)
