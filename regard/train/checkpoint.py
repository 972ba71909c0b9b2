"""Checkpoints: all that a run needs to go on as if it had never stopped.

    checkpoints/step-00001000/
        weights.safetensors     the model
        moments.safetensors     the optimizer, and the states of the random number generators
        state.json              the step, the place in the data, the journal's length, the best score so far

A checkpoint is written beside its place and renamed into it: it is there whole or not at all.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load, save
from torch import nn

from regard.bundle.weights import to_bytes
from regard.bundle.writing import write_folder
from regard.errors import BundleError
from regard.train.optimizer import moments, restore_moments

WEIGHTS, MOMENTS, STATE = "weights.safetensors", "moments.safetensors", "state.json"
CPU_GENERATOR, CUDA_GENERATOR = "generator.cpu", "generator.cuda"


def save_checkpoint(
    folder: Path, model: nn.Module, optimizer: torch.optim.Optimizer, step: int, state: dict[str, Any]
) -> Path:
    """Write the checkpoint of a step."""
    tensors = {name: value.detach().cpu() for name, value in moments(model, optimizer).items()}
    tensors[CPU_GENERATOR] = torch.get_rng_state()
    if torch.cuda.is_available():
        tensors[CUDA_GENERATOR] = torch.cuda.get_rng_state()
    place = folder / f"step-{step:08d}"
    files = {
        WEIGHTS: to_bytes(model),
        MOMENTS: save(tensors),
        STATE: json.dumps({"step": step, **state}, indent=1).encode(),
    }
    write_folder(place, files, overwrite=False)
    return place


def checkpoints(folder: Path) -> list[Path]:
    """Every whole checkpoint of a run, the oldest first."""
    return sorted(path for path in folder.glob("step-*") if (path / STATE).is_file())


def load_checkpoint(place: Path, model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """Put model, optimizer and generators back where they were; gives back the rest of the state."""
    try:
        weights, saved = load((place / WEIGHTS).read_bytes()), load((place / MOMENTS).read_bytes())
        state: dict[str, Any] = json.loads((place / STATE).read_text(encoding="utf-8"))
    except Exception as error:
        raise BundleError(f"the checkpoint cannot be read: {error}", str(place)) from error
    wanted = {name: parameter.shape for name, parameter in model.named_parameters()}
    found = {name: tensor.shape for name, tensor in weights.items()}
    if wanted != found:
        raise BundleError("the checkpoint is of another model: its weights differ", str(place))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(weights[name])
    torch.set_rng_state(saved.pop(CPU_GENERATOR))
    if (cuda := saved.pop(CUDA_GENERATOR, None)) is not None and torch.cuda.is_available():
        torch.cuda.set_rng_state(cuda)
    restore_moments(model, optimizer, saved)
    return state


def prune(folder: Path, keep: int) -> None:
    """Delete all but the newest `keep` checkpoints."""
    for place in checkpoints(folder)[:-keep]:
        shutil.rmtree(place, ignore_errors=True)
