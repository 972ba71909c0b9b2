"""Copies of what can be read only once: standard input and other pipes.

A corpus is read several times. A pipe is therefore copied to a file first: for as long as the program runs
(`temporary_copy`), or for as long as there is a run that may have to go on with it (`spooled`).
"""

from __future__ import annotations

import atexit
import gzip
import hashlib
import io
import os
import shutil
import sys
import tempfile
from pathlib import Path

from regard.errors import CorpusError
from regard.text.files.opening import STDIN, name_of, opened

_CHUNK = 1 << 20


def temporary_copy(path: Path | str, scratch: Path | str | None = None) -> Path:
    """A copy of a pipe in a folder, the system's by default, that goes when the program ends.

    Raises:
        CorpusError: it cannot be read, or the folder cannot hold it.
    """
    place = Path(scratch or tempfile.gettempdir())
    try:
        folder = Path(tempfile.mkdtemp(prefix="regard-input-", dir=place))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        copy = folder / "input"
        with copy.open("xb", buffering=0) as file:
            _copy(path, file, place)
    except OSError as error:
        raise _refusal(path, place, error) from error
    return copy


def spooled(place: Path, *, fixed: bool) -> Path:
    """The file that holds standard input, packed: what comes now or, if nothing does, what came before.

    Args:
        place: where the file is, or will be.
        fixed: whether there is a run that began with what is there, so that nothing else will do.

    Raises:
        CorpusError: nothing comes, now or before; something else comes than the run began with; it cannot be
            read, or there is no room for it.
    """
    partial = place.with_name(f".{place.name}.partial")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        came = _spool(partial)
        kept = place.is_file()
        if not came and not kept:
            raise CorpusError("standard input: nothing comes from it; pipe a table into it")
        if came and not (kept and _digest(partial) == _digest(place)):
            if kept and fixed:
                told = f"standard input: is not what the run began with, which is in {place}"
                raise CorpusError(f"{told}; choose another folder with --out")
            partial.replace(place)
    except OSError as error:
        raise _refusal(STDIN, place.parent, error) from error
    finally:
        partial.unlink(missing_ok=True)
    return place


def _spool(place: Path) -> bool:
    """Copy standard input to a packed file; whether anything came."""
    if sys.stdin is None or sys.stdin.isatty():  # nobody types a corpus
        return False
    with place.open("wb") as file:
        # Written once and read a few times: quick is worth more than small.
        with gzip.GzipFile("", "wb", compresslevel=1, fileobj=file, mtime=0) as packed:
            count = _copy(STDIN, packed, place.parent)
        file.flush()
        os.fsync(file.fileno())
    return count > 0


def _copy(path: Path | str, file: io.RawIOBase | io.BufferedIOBase, place: Path) -> int:
    """Copy what a pipe gives, unpacked; how many bytes came."""
    count = 0
    with opened(path) as stream:
        while data := stream.read(_CHUNK):
            try:
                file.write(data)
            except OSError as error:  # not the reader's, who would say that the input is at fault
                raise _refusal(path, place, error) from error
            count += len(data)
    return count


def _digest(path: Path) -> bytes:
    """Of what is in a packed file, which another zlib may have packed otherwise."""
    digest = hashlib.blake2b()
    with opened(path) as stream:
        while data := stream.read(_CHUNK):
            digest.update(data)
    return digest.digest()


def _refusal(path: Path | str, place: Path, error: OSError) -> CorpusError:
    return CorpusError(f"{name_of(path)}: cannot be copied to {place}: {error.strerror or error}")
