"""Averages of weights: a moving average during training, and the mean of checkpoints (6.1).

Both reduce the noise that the last steps leave in the weights while the learning rate is above zero.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from regard.bundle import Bundle, load_bundle, save_bundle
from regard.bundle.bundle import read_labels
from regard.bundle.weights import load_tensors, weight_problems
from regard.errors import BundleError
from regard.training.checkpoints.checkpoint import STATE, read_weights, step_of
from regard.training.distributed.sharding import put


class MovingAverage:
    """An exponential moving average of a model's weights.

    In the first steps it decays faster than `decay`, to forget the random initial weights soon.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self.weights = {name: weight.detach().clone() for name, weight in model.named_parameters()}

    @torch.no_grad()
    def update(self, model: nn.Module, step: int) -> None:
        """Include the weights after a step."""
        decay = min(self.decay, step / (step + 9))
        torch._foreach_lerp_(list(self.weights.values()), [w.detach() for w in model.parameters()], 1 - decay)


def mean_of(places: Sequence[Path]) -> dict[str, Tensor]:
    """The mean of the weights of several checkpoints or model folders of one model."""
    total: dict[str, Tensor] = {}
    for place in places:
        weights = read_weights(place)
        total = {name: total.get(name, 0) + weight.double() for name, weight in weights.items()}
    return {name: (weight / len(places)).float() for name, weight in total.items()}


def model_of_checkpoint(place: Path, out: Path) -> Path:
    """Write the model of a checkpoint as a model folder.

    Raises:
        BundleError: it cannot be read, its run has no model folder yet, or `out` exists.
    """
    return average_models([place], out, metrics={"step": step_of(place)})


def average_models(places: Sequence[Path], out: Path, metrics: Mapping[str, Any] | None = None) -> Path:
    """Write the mean of several checkpoints or model folders of one model as a model folder.

    Everything but the weights comes from the first one; for a checkpoint, from a model folder of its run.
    `metrics` are by default the names of the models.

    Raises:
        BundleError: they are not of one model or cannot be read, or `out` exists. Nothing is written then.
    """
    first = load_bundle(_model_folder(places[0]))
    for place in places:
        if problems := weight_problems(first.model, read_weights(place)):
            heading = f"has other weights than {places[0]}"
            raise BundleError([heading, *problems], str(place), code="ensemble_mismatch")
    model = load_tensors(first.model, mean_of(places), "cpu")
    return save_bundle(
        out,
        model,
        subwords=first.subwords,
        labels=_labels(first),
        metrics=metrics or {"averaged": [str(place) for place in places]},
        decoding=first.decoding,
        task=first.task,
    )


def _labels(model: Bundle) -> Sequence[str]:
    n_labels = model.config.n_labels
    return read_labels(model.folder, n_labels) if n_labels else ()


def _model_folder(place: Path) -> Path:
    """The folder itself if it is a model folder; for a checkpoint, a model folder of its run."""
    if (place / STATE).is_file():
        run = place.resolve().parent.parent
        return run / "best" if (run / "best").is_dir() else run / "last"
    return place


@contextmanager
def with_weights(model: nn.Module, weights: Mapping[str, Tensor]) -> Iterator[None]:
    """Give the model other weights for the duration of the block."""
    own = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    try:
        for name, weight in model.named_parameters():
            put(weight, weights[name])
        yield
    finally:
        with torch.no_grad():
            for name, weight in model.named_parameters():
                weight.copy_(own[name])
