"""What was seen when the experiments were last run for a release: documents that come with the package."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

from regard.experiments.registry import NAMES


def seen() -> list[dict[str, Any]]:
    """The documents that `Run.document` made, in the order of the experiments' names."""
    folder = files("regard.experiments").joinpath("seen")
    found = [folder.joinpath(f"{name}.json") for name in NAMES]
    return [json.loads(file.read_text(encoding="utf-8")) for file in found if file.is_file()]
