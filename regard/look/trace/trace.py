"""`Trace`: the data of one pass through a model, with the methods that walk through it, save and show it.

The only module of this folder that imports views and files; everything below takes a `TraceData`.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from regard.errors import RequestError
from regard.look.trace.data import TraceData
from regard.look.trace.file import write_file
from regard.look.walk import Step, walk

if TYPE_CHECKING:
    from regard.look.alignment.alignment import AligningHeads
    from regard.look.export.html import Frame
    from regard.look.trace.blocks import Kind
    from regard.look.views.view import Choice

WHOLE = ".safetensors"
"""Suffix of the file that `Trace.load` reads."""
FORMATS = (WHOLE, ".html", ".svg", ".png", ".csv", ".npz")


class Trace(TraceData):
    """What a model did with one text, or one pair of texts: as arrays, as views and as files."""

    __slots__ = ()

    def walk(self, kind: Kind, layer: int, head: int, query: int) -> list[Step]:
        """The formula of attention, step by step, with the numbers of one token in one head."""
        return walk(self, kind, layer, head, query)

    def save(
        self,
        path: Path | str,
        view: str = "heads",
        *,
        kind: str | None = None,
        layer: int | None = None,
        head: int | Sequence[int] | None = None,
        query: int | None = None,
        aligning: AligningHeads | None = None,
    ) -> None:
        """Write the trace, or a view of it.

        Args:
            path: its suffix selects the format. `.safetensors` holds everything, and `Trace.load` reads it;
                `.html` is a page that shows everything; `.svg` and `.png` are pictures of a view, `.csv` and
                `.npz` its numbers.
            view: one of `regard.look.views.MODULES`. `influence` needs `LoadedModel.with_influences` first.
            kind: of attention; default: cross-attention, or the only kind that the model has.
            layer: default: the last.
            head: one or several; default: all of the layer.
            query: the token of a walk; default: the first that is a word.
            aligning: the heads used to align words, such as those stored in a model folder.

        Raises:
            RequestError: the view, the place or the file format is unknown, or the file cannot be written.
        """
        from regard.look.views.view import choose

        check_suffix(path := Path(path))
        if path.suffix.lower() == WHOLE:
            write_file(path, self.to_bytes())
            return
        choice = choose(self, view, kind=kind, layer=layer, head=head, query=query, aligning=aligning)
        write_file(path, _contents(self, choice, path.suffix.lower()))

    def show(self, height: int | None = None) -> Frame:
        """The whole page in a notebook cell, `height` pixels high."""
        from regard.look.export.html import HEIGHT, Frame, html

        return Frame(html(self), HEIGHT if height is None else height)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:  # noqa: ARG002
        """What a notebook displays: all heads as one static picture."""
        from regard.look.views.view import choose, picture

        return {"text/plain": repr(self), "image/svg+xml": picture(self, choose(self))}


def check_suffix(path: Path) -> None:
    """Check the file format before anything is computed.

    Raises:
        RequestError: the suffix is none of `FORMATS`.
    """
    if path.suffix.lower() not in FORMATS:
        raise RequestError(f"{path}: the suffix must be one of {', '.join(FORMATS)}", code="unknown_format")


def _contents(trace: TraceData, choice: Choice, suffix: str) -> bytes:
    """The contents of a file in one of the `FORMATS`."""
    from regard.look.export.document import alignment
    from regard.look.export.html import html
    from regard.look.figures.svg import rasterised
    from regard.look.views.view import numbers, picture

    match suffix:
        case ".svg":
            return picture(trace, choice).encode()
        case ".png":
            return rasterised(picture(trace, choice))
        case ".csv":
            return numbers(trace, choice).csv().encode()
        case ".npz":
            npz = io.BytesIO()
            np.savez_compressed(npz, **numbers(trace, choice).arrays())  # type: ignore[arg-type]
            return npz.getvalue()
    aligned = None
    if (heads := choice.aligning).measured:
        with suppress(RequestError):  # nothing to align; the page says so too
            aligned = alignment(trace, heads.heads, heads.rows)
    return html(trace, aligned=aligned).encode()
