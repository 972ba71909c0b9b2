"""The heads that align words best, as they were measured, and as a model folder keeps them. No torch here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, get_args

from regard.bundle.bundle import add_file
from regard.bundle.manifest import ALIGNMENT
from regard.config import ModelConfig
from regard.errors import BundleError
from regard.look.alignment.alignment import Head, Rows


@dataclass(frozen=True, kw_only=True, slots=True)
class AligningHeads:
    """Some heads of cross-attention, and how well they align when they are averaged."""

    heads: tuple[Head, ...]
    rows: Rows = "predicting"
    accuracy: float | None = None
    """Share of known links that they find, in pairs that had no say in the choice; None: not measured."""
    n_pairs: int = 0
    """Pairs that the accuracy was measured on."""
    of_each_head: tuple[tuple[float, ...], ...] = ()
    """What each head alone found of the pairs that it was chosen by: layers, and heads in them."""

    @property
    def measured(self) -> bool:
        """Whether these heads were chosen by measuring."""
        return self.accuracy is not None

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)

    @staticmethod
    def from_json(values: Mapping[str, Any]) -> AligningHeads:
        """Undo `to_json`."""
        rows = values["rows"]
        if rows not in get_args(Rows):
            raise ValueError(f"rows = {rows!r}")
        return AligningHeads(
            heads=tuple((int(layer), int(head)) for layer, head in values["heads"]),
            rows=rows,
            accuracy=values["accuracy"],
            n_pairs=int(values["n_pairs"]),
            of_each_head=tuple(tuple(map(float, layer)) for layer in values["of_each_head"]),
        )


def usual_heads(config: ModelConfig) -> AligningHeads:
    """What to align by where nothing was measured: all heads of the later half of the layers, averaged."""
    layers = range(config.decoder_layers // 2, config.decoder_layers)
    return AligningHeads(heads=tuple((layer, head) for layer in layers for head in range(config.n_heads)))


def keep_aligning_heads(folder: Path | str, heads: AligningHeads) -> None:
    """Write them into a model folder."""
    add_file(folder, ALIGNMENT, (json.dumps(heads.to_json()) + "\n").encode())


def read_aligning_heads(folder: Path | str) -> AligningHeads | None:
    """What a model folder keeps; None where nothing was measured.

    Raises:
        BundleError: it cannot be read.
    """
    file = Path(folder) / ALIGNMENT
    if not file.exists():
        return None
    try:
        return AligningHeads.from_json(json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BundleError(f"{ALIGNMENT} cannot be read: {error!r}; measure again", str(folder)) from error
