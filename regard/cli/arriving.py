"""Lines of standard input as they arrive: all that are there, and never a wait for more."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

from regard.errors import CorpusError
from regard.text.lines import LONGEST_LINE, not_utf_8, refuse_utf_16
from regard.text.opening import STDIN, name_of

NAME = name_of(STDIN)
_CHUNK = 1 << 16
_BLOCK = 1 << 18
"""Bytes from which on a block is not made larger: some thousands of lines."""
_WAITING = 16
"""Chunks that are read ahead."""


class Line(NamedTuple):
    """One line."""

    number: int
    text: str
    problem: str | None = None
    """Why it cannot be read; then it has no text."""


def arriving(stream: BinaryIO) -> Iterator[list[Line]]:
    """Blocks of lines: what has arrived since the last block, at least one.

    Somebody who types gets an answer to each line, and a file comes in large blocks.
    """
    number, rest, skipped = 1, b"", False
    for data in _arrived(stream):
        if number == 1 and not rest:
            refuse_utf_16(data, NAME)
        *whole, rest = (rest + data).split(b"\n")
        if skipped and whole:
            whole[0], skipped = b"x" * LONGEST_LINE, False
        if len(rest) >= LONGEST_LINE or skipped:
            rest, skipped = b"", True
        if whole:
            yield [_line(raw, number + i) for i, raw in enumerate(whole)]
            number += len(whole)
    if rest or skipped:
        yield [_line(b"x" * LONGEST_LINE if skipped else rest, number)]


def _line(raw: bytes, number: int) -> Line:
    if len(raw) >= LONGEST_LINE:
        longest = f"a line of a megabyte or more ({LONGEST_LINE:,} bytes) is not read: break it into lines"
        return Line(number, "", f"{NAME}:{number}: {longest}")
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        return Line(number, "", not_utf_8(raw, error.start, number, NAME))
    return Line(number, text.removeprefix("\ufeff") if number == 1 else text)


def _arrived(stream: BinaryIO) -> Iterator[bytes]:
    """What is there, together, as soon as something is."""
    chunks: queue.Queue[bytes | OSError] = queue.Queue(_WAITING)
    # What is below the buffer gives what there is; and a thread that waits there does not hold up the exit.
    below: Any = getattr(stream, "raw", stream)

    def read() -> None:
        data: bytes | OSError = b"-"
        while data and isinstance(data, bytes):
            try:
                data = below.read(_CHUNK)
            except OSError as error:
                data = error
            chunks.put(data)

    threading.Thread(target=read, daemon=True).start()
    while True:
        together = b""
        chunk = chunks.get()
        while chunk and isinstance(chunk, bytes):
            together += chunk
            if len(together) >= _BLOCK or chunks.empty():
                break
            chunk = chunks.get()
        if together:
            yield together
        if isinstance(chunk, OSError):
            raise CorpusError(f"{NAME}: cannot be read: {chunk.strerror or chunk}")
        if not chunk:
            return
