"""Text files: opening and decompressing; `lines`, `parallel` files and `tables` are read on top of this.

Compression is recognised by the first bytes, not by the name: no UTF-8 text begins like a compressed file. So
gzip, xz and zstd work under any name and from a pipe.
"""

from __future__ import annotations

import gzip
import io
import lzma
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, cast

from regard.errors import CorpusError

STDIN = "-"
"""The path of standard input."""

NOT_TEXT = {
    b"PK\x03\x04": "a zip archive, such as .docx, .odt or .xlsx",
    b"\xd0\xcf\x11\xe0": "an old Office document",
    b"%PDF-": "a PDF",
    b"{\\rtf": "an RTF document",
}
"""First bytes of files that are mistaken for text, and what the files are."""
_GZIP, _XZ, _ZSTD = b"\x1f\x8b", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd"


def display_name(path: Path | str) -> str:
    """The name of a file in messages."""
    return "standard input" if str(path) == STDIN else str(path)


def path_problem(path: Path | str) -> str | None:
    """Why a path cannot be opened; None if it can."""
    path = Path(path)
    if str(path) == STDIN:
        return None
    try:
        if path.is_dir():
            return f"{path}: is a directory; name a file in it"
        if path.is_char_device() or path.is_block_device():
            return f"{path}: is a device, which may have no end; pipe into - instead"
        if path.exists():
            return None
        folder = path.parent
        siblings = sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []
    except OSError as error:
        return f"{path}: cannot be read: {error.strerror or error}"
    near = get_close_matches(path.name, siblings, n=1, cutoff=0.75)
    return f"{path}: there is no such file" + (f"; did you mean {folder / near[0]}?" if near else "")


@contextmanager
def open_unpacked(path: Path | str) -> Iterator[BinaryIO]:
    """Open a file for reading bytes, decompressed.

    Raises:
        CorpusError: it is missing, a directory, unreadable, damaged or truncated.
    """
    name = display_name(path)
    if problem := path_problem(path):
        raise CorpusError(problem, code="missing_file")
    try:
        if str(path) == STDIN:
            yield _decompressed(cast(BinaryIO, sys.stdin.buffer), name)
        else:
            with Path(path).open("rb") as raw:
                yield _decompressed(raw, name)
    except (EOFError, zlib.error, lzma.LZMAError) as error:
        raise CorpusError(f"{name}: is damaged or truncated: {error}", code="damaged_file") from error
    except gzip.BadGzipFile as error:
        raise CorpusError(f"{name}: is damaged: {error}", code="damaged_file") from error
    except OSError as error:
        problem = f"{name}: cannot be read: {error.strerror or error}"
        raise CorpusError(problem, code="unreadable_file") from error
    except Exception as error:
        # zstd is optional, so its error class cannot be named here.
        if type(error).__name__ != "ZstdError":
            raise
        raise CorpusError(f"{name}: is damaged: {error}", code="damaged_file") from error


def _decompressed(raw: BinaryIO, name: str) -> BinaryIO:
    # Peeking needs a buffered reader, which a replaced standard input may not be.
    reader = raw if isinstance(raw, io.BufferedReader) else io.BufferedReader(cast(io.RawIOBase, raw))
    raw, start = cast(BinaryIO, reader), reader.peek(8)[:8]
    if kind := next((kind for sign, kind in NOT_TEXT.items() if start.startswith(sign)), None):
        problem = f"is {kind}, not text; save its content as plain text in UTF-8"
        raise CorpusError(f"{name}: {problem}", code="not_text")
    if start.startswith(_GZIP):
        return cast(BinaryIO, gzip.GzipFile(fileobj=raw))
    if start.startswith(_XZ):
        return cast(BinaryIO, lzma.LZMAFile(raw))
    if start.startswith(_ZSTD):
        return cast(BinaryIO, _zstd(name).ZstdFile(raw))
    return raw


def _zstd(name: str) -> Any:
    for module in ("compression.zstd", "backports.zstd"):  # the first since Python 3.14
        with suppress(ImportError):
            return import_module(module)
    problem = "is compressed with zstd, which this Python cannot read"
    how = "pip install backports.zstd, or decompress it first (unzstd)"
    raise CorpusError(f"{name}: {problem}; {how}", code="missing_library")
