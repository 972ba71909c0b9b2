"""What a classifier tells apart: `labels.json` of a model folder, names in the order of its outputs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from regard.bundle.manifest import LABELS
from regard.errors import BundleError


def labels_text(labels: Sequence[str]) -> bytes:
    """The content of the file."""
    return (json.dumps(list(labels), ensure_ascii=False, indent=1) + "\n").encode()


def read_labels(folder: Path | str, n_labels: int) -> tuple[str, ...]:
    """The labels of a model folder; numbers where it names none.

    Raises:
        BundleError: the file is damaged, or has not as many labels as the model.
    """
    file = Path(folder) / LABELS
    if not file.exists():
        return tuple(map(str, range(n_labels)))
    try:
        labels = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise BundleError(f"{LABELS} cannot be read: {error}", str(folder)) from error
    if not isinstance(labels, list) or len(labels) != n_labels or not all(isinstance(x, str) for x in labels):
        raise BundleError(f"{LABELS} does not hold the {n_labels} labels of the model", str(folder))
    return tuple(labels)
