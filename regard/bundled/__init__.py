"""Models that come with the package: each a model folder here, known by its name. No torch, no reading."""

from __future__ import annotations

from pathlib import Path

from regard.errors import ConfigError

DEFAULT = "zh-en"
"""The translator that serves where no model is named."""
_HERE = Path(__file__).parent


def names() -> list[str]:
    """The models that this installation has."""
    return sorted(file.parent.name for file in _HERE.glob("*/manifest.json"))


def folder(name: str = DEFAULT) -> Path:
    """The folder of a model that comes with the package.

    Raises:
        ConfigError: this installation has none of that name.
    """
    if name not in names():
        raise ConfigError(
            f"no model {name!r} comes with this installation of regard: name a model folder, or a run's"
        )
    return _HERE / name
