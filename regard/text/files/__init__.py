"""The bytes of a file, or of standard input, unpacked where they are packed.

Whether a file is packed is told from its first bytes, not from its name: no text in UTF-8 begins like a
packed file. So `.gz`, `.xz` and `.zst` work under any name and from a pipe.
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
"""The path that stands for standard input."""

NOT_TEXT = {
    b"PK\x03\x04": "a zip archive, as .docx, .odt and .xlsx are",
    b"\xd0\xcf\x11\xe0": "a document of an old Office",
    b"%PDF-": "a PDF",
    b"{\\rtf": "a document in RTF",
}
"""How files begin that people take for text, and what they are."""
_GZIP, _XZ, _ZSTD = b"\x1f\x8b", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd"


def display_name(path: Path | str) -> str:
    """A file as messages call it."""
    return "standard input" if str(path) == STDIN else str(path)


def path_problem(path: Path | str) -> str | None:
    """Why there is nothing to open at a path, or None if there is something."""
    path = Path(path)
    if str(path) == STDIN:
        return None
    try:
        if path.is_dir():
            return f"{path}: is a directory; name a file in it"
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
    """Open a file, unpacked, for as long as the block runs.

    Raises:
        CorpusError: it is missing, a directory, unreadable, damaged or cut short.
    """
    name = display_name(path)
    if problem := path_problem(path):
        raise CorpusError(problem)
    try:
        if str(path) == STDIN:
            yield _unpacked(cast(BinaryIO, sys.stdin.buffer), name)
        else:
            with Path(path).open("rb") as raw:
                yield _unpacked(raw, name)
    except (EOFError, zlib.error, lzma.LZMAError) as error:
        raise CorpusError(f"{name}: is damaged or cut short: {error}") from error
    except gzip.BadGzipFile as error:
        raise CorpusError(f"{name}: is damaged: {error}") from error
    except OSError as error:
        raise CorpusError(f"{name}: cannot be read: {error.strerror or error}") from error
    except Exception as error:
        # The one library whose error has no name here: it may not be there.
        if type(error).__name__ != "ZstdError":
            raise
        raise CorpusError(f"{name}: is damaged: {error}") from error


def _unpacked(raw: BinaryIO, name: str) -> BinaryIO:
    # Looking ahead takes a buffered reader, which the place of standard input need not be.
    reader = raw if isinstance(raw, io.BufferedReader) else io.BufferedReader(cast(io.RawIOBase, raw))
    raw, start = cast(BinaryIO, reader), reader.peek(8)[:8]
    if kind := next((kind for sign, kind in NOT_TEXT.items() if start.startswith(sign)), None):
        raise CorpusError(f"{name}: is {kind}, and not text; save what it says as plain text, in UTF-8")
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
    how = "pip install backports.zstd, or unpack it first (unzstd)"
    raise CorpusError(f"{name}: is packed with zstd, which this Python cannot unpack; {how}")
