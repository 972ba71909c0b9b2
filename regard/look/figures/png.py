"""PNG: a small writer for matrices inside pictures, and whole pictures as pixels."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from importlib import import_module

import numpy as np

from regard.errors import RequestError

ZOOM = 2
"""Pixels of a PNG for one of the SVG that it is made from: sharp on screens of today, and in print."""


def indexed_png(levels: np.ndarray, palette: Sequence[str]) -> bytes:
    """A picture of one pixel a cell, (rows, columns) of bytes, each the number of a colour #rrggbb."""
    rows, columns = levels.shape
    # Each line of pixels opens with a byte that says how it is filtered: not at all.
    lines = np.pad(levels.astype(np.uint8), ((0, 0), (1, 0)))
    header = struct.pack(">IIBBBBB", columns, rows, 8, 3, 0, 0, 0)  # eight bits a pixel, by number
    chunks = {
        b"IHDR": header,
        b"PLTE": bytes.fromhex("".join(colour.lstrip("#") for colour in palette)),
        b"IDAT": zlib.compress(lines.tobytes(), 9),
        b"IEND": b"",
    }
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, data) for name, data in chunks.items())


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def rasterised(picture: str) -> bytes:
    """One of our SVG pictures as a PNG, in the colours of the day.

    Raises:
        RequestError: what draws it is not installed.
    """
    try:
        resvg = import_module("resvg_py")
    except ImportError as error:
        what = "a PNG is drawn by resvg, which is not installed"
        raise RequestError(f"{what}: pip install 'regard[plots]', or save as .svg") from error
    drawn: bytes = resvg.svg_to_bytes(svg_string=picture, zoom=ZOOM)
    return drawn
