"""The model card: a description of a model in Markdown."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from regard.config import ModelConfig
from regard.config.checking import types_of
from regard.config.describe import toml_value
from regard.version import __version__

WHAT = {
    "encoder-decoder": "A Transformer, encoder and decoder: it turns one text into another.",
    "decoder": "A language model, the decoder alone: it continues a text.",
    "encoder": "A classifier, the encoder alone: it labels a text.",
}
CALL = {
    "encoder-decoder": "model(regard.pack([[3, 1, 2]]), regard.pack([[0, 1]]))  # one row per output token",
    "decoder": "model(regard.pack([[0, 1]]))  # one row per token: the next one",
    "encoder": "model(regard.pack([[0, 3, 1, 2]]))  # one row per text: its labels",
}


def card(
    name: str, config: ModelConfig, sizes: tuple[int, str], metrics: Mapping[str, Any], notes: str
) -> str:
    """The card as Markdown; `sizes` are the number of parameters and their dtype."""
    n_parameters, dtype = sizes
    settings = types_of(ModelConfig).items()
    return "\n".join(
        [
            f"# {name}",
            "",
            f"{WHAT[config.architecture]}",
            "",
            f"{n_parameters:,} parameters, {dtype}; written by regard {__version__}.",
            "",
            *([notes.strip(), ""] if notes.strip() else []),
            *_table("measured", ((key, json.dumps(value)) for key, value in metrics.items())),
            *_table("setting", ((key, toml_value(kind, getattr(config, key))) for key, kind in settings)),
            "```python",
            "import regard",
            "",
            f"model = regard.load_bundle({json.dumps(f'path/to/{name}', ensure_ascii=False)}).model",
            f"logits = {CALL[config.architecture]}",
            "```",
            "",
        ]
    )


def _table(title: str, rows: Iterable[tuple[str, str]]) -> list[str]:
    lines = [f"| {key} | {value.replace('|', chr(92) + '|')} |" for key, value in rows]
    return [f"| {title} | |", "|---|---|", *lines, ""] if lines else []
