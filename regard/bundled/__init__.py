"""The models that come with the package: model folders, known by name."""

from __future__ import annotations

from pathlib import Path

from regard.errors import ConfigError

DEFAULT = "zh-en"
"""The translator used when no model is named."""
_HERE = Path(__file__).parent


def names() -> list[str]:
    """The names of the bundled models."""
    return sorted(file.parent.name for file in _HERE.glob("*/manifest.json"))


def folder(name: str = DEFAULT) -> Path:
    """The folder of a bundled model.

    Raises:
        ConfigError: there is none of that name.
    """
    if name not in names():
        problem = f"no model {name!r} comes with this installation; give a model folder or a run folder"
        raise ConfigError(problem, code="missing_model")
    return _HERE / name
