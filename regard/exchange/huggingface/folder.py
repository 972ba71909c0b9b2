"""A folder as Hugging Face keeps models: settings, weights, and the files of a tokenizer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.errors import BundleError

if TYPE_CHECKING:
    from torch import Tensor

SETTINGS, GENERATION, TOKENIZER = "config.json", "generation_config.json", "tokenizer_config.json"
SAFE, PICKLED = "model.safetensors", "pytorch_model.bin"

ACTIVATIONS = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu-tanh",
    "gelu_pytorch_tanh": "gelu-tanh",
    "swish": "swish",
    "silu": "swish",
}
"""Hugging Face's names of activations, and ours; the first of several is the one that is written."""


class Settings:
    """What `config.json` says, and what of it regard cannot do."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values = values
        self.problems: list[str] = []

    def get(self, name: str, default: Any = None) -> Any:
        """A setting, or what it is where nothing is said."""
        return self.values.get(name, default)

    def number(self, name: str) -> int:
        """A setting that must be there, a whole number."""
        value = self.values.get(name)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        self.problems.append(f"{name} = {value!r} is not a whole number")
        return 1

    def same(self, name: str, other: str) -> int:
        """Two settings that are one in regard."""
        first, second = self.number(name), self.number(other)
        if first != second:
            self.problems.append(f"{name} = {first} and {other} = {second} differ; in regard they are one")
        return first

    def only(self, name: str, *values: Any) -> None:
        """A setting that regard knows these values of; the first is what it is where nothing is said."""
        if (found := self.get(name)) not in (None, *values):
            known = " or ".join(map(repr, values))
            self.problems.append(f"{name} = {found!r} is not supported, only {known} is")

    def activation(self, name: str) -> Any:
        """Ours for the activation that a setting names."""
        found = self.get(name)
        if found not in ACTIVATIONS:
            self.problems.append(f"{name} = {found!r} is not supported, only {', '.join(ACTIVATIONS)} are")
        return ACTIVATIONS.get(found, "relu")


class ForeignFolder:
    """A folder of Hugging Face's, opened."""

    def __init__(self, folder: Path | str) -> None:
        """Read the settings.

        Raises:
            BundleError: there is no such folder, or no settings in it.
        """
        self.folder = Path(folder)
        if not self.folder.is_dir():
            raise BundleError("there is no such folder", str(folder))
        if not (self.folder / SETTINGS).is_file():
            raise BundleError(f"is not a Hugging Face folder: it has no {SETTINGS}", str(folder))
        self.settings = Settings(self.table(SETTINGS))
        self.generation, self.tokenizer = self.table(GENERATION), self.table(TOKENIZER)

    def has(self, name: str) -> bool:
        """Whether there is such a file."""
        return (self.folder / name).is_file()

    def bytes_of(self, name: str) -> bytes:
        """What is in a file.

        Raises:
            BundleError: it cannot be read.
        """
        try:
            return (self.folder / name).read_bytes()
        except OSError as error:
            raise BundleError(f"{name} cannot be read: {error.strerror}", str(self.folder)) from error

    def table(self, name: str) -> dict[str, Any]:
        """What is in a JSON file; nothing where there is none.

        Raises:
            BundleError: it is something else.
        """
        if not self.has(name):
            return {}
        try:
            found = json.loads(self.bytes_of(name))
        except (ValueError, RecursionError) as error:
            raise BundleError(f"{name} is not JSON: {error}", str(self.folder)) from error
        if not isinstance(found, dict):
            raise BundleError(f"{name} is not a table of names and values", str(self.folder))
        return found

    def weights(self) -> dict[str, Tensor]:
        """Every weight by its name, from one file or from several.

        Raises:
            BundleError: there are none, or they cannot be read.
        """
        for name in (SAFE, PICKLED):
            if self.has(name):
                return self._weights_in(name)
            if self.has(f"{name}.index.json"):
                parts = sorted(set(self.table(f"{name}.index.json").get("weight_map", {}).values()))
                return {key: weight for part in parts for key, weight in self._weights_in(part).items()}
        raise BundleError(f"has no weights: neither {SAFE} nor {PICKLED}", str(self.folder))

    def _weights_in(self, name: str) -> dict[str, Tensor]:
        import pickle

        import safetensors
        import torch
        from safetensors.torch import load

        try:
            if name.endswith(".safetensors"):
                return load(self.bytes_of(name))
            # Weights only: a pickle could execute anything, and this one may not.
            found = torch.load(self.folder / name, map_location="cpu", weights_only=True)
        except (OSError, RuntimeError, pickle.UnpicklingError, safetensors.SafetensorError) as error:
            raise BundleError(f"{name} cannot be read: {error}", str(self.folder)) from error
        return {key: weight for key, weight in found.items() if isinstance(weight, torch.Tensor)}
