"""A trace, or a view of it, as a file: what is written follows from the file's name."""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from regard.errors import RequestError
from regard.look.choice import Choice
from regard.look.export.document import alignment
from regard.look.export.html import html
from regard.look.figures.png import rasterised
from regard.look.trace.file import write_file
from regard.look.views import numbers, picture

if TYPE_CHECKING:
    from regard.look.trace.trace import Trace

WHOLE = ".safetensors"
"""The trace itself, which `Trace.load` reads."""


def save_view(trace: Trace, path: Path, choice: Choice) -> None:
    """Write a view of a trace, whole or not at all.

    Raises:
        RequestError: nobody knows such a file, what draws it is missing, or it cannot be written.
    """
    check_suffix(path)
    write_file(path, _WRITERS[path.suffix.lower()](trace, choice))


def check_suffix(path: Path) -> None:
    """Refuse a file of a kind that nobody writes, before anything is computed for it."""
    if path.suffix.lower() not in (WHOLE, *_WRITERS):
        known = ", ".join((WHOLE, *_WRITERS))
        raise RequestError(f"{path}: what to write follows from the end of the name, one of {known}")


def _html(trace: Trace, choice: Choice) -> bytes:
    kept, aligned = choice.aligning, None
    if kept.measured:
        with suppress(RequestError):  # there is nothing to align, which the page says too
            aligned = alignment(trace, kept.heads, kept.rows)
    return html(trace, tree=trace.beam, aligned=aligned).encode()


def _npz(trace: Trace, choice: Choice) -> bytes:
    written = io.BytesIO()
    np.savez_compressed(written, **numbers(trace, choice).arrays())  # type: ignore[arg-type]
    return written.getvalue()


_WRITERS: dict[str, Callable[[Trace, Choice], bytes]] = {
    ".html": _html,
    ".svg": lambda trace, choice: picture(trace, choice).encode(),
    ".png": lambda trace, choice: rasterised(picture(trace, choice)),
    ".csv": lambda trace, choice: numbers(trace, choice).csv().encode(),
    ".npz": _npz,
}
