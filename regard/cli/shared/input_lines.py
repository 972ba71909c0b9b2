"""Lines to work on: those of a command line, or of standard input as they arrive, never waiting for more."""

from __future__ import annotations

import queue
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

from regard.errors import CorpusError
from regard.text.files import STDIN, display_name
from regard.text.files.lines import InputLine, numbered_lines

__all__ = ["NAME", "InputLine", "arriving", "given", "given_or_arriving"]

NAME = display_name(STDIN)
_CHUNK = 1 << 16
_BLOCK = 1 << 18
"""Bytes from which on a block is not made larger: some thousands of lines."""
_WAITING = 16
"""Chunks that are read ahead."""


def given(texts: Sequence[str]) -> Iterator[list[InputLine]]:
    """The texts of a command line, in one block."""
    return iter([[InputLine(0, text) for text in texts]])


def given_or_arriving(texts: Sequence[str] | None) -> Iterator[list[InputLine]]:
    """The texts of a command line; where it names none, the lines of standard input."""
    return arriving(sys.stdin.buffer) if texts is None else given(texts)


def arriving(stream: BinaryIO) -> Iterator[list[InputLine]]:
    """Blocks of lines: what has arrived since the last block, at least one.

    Somebody who types gets an answer to each line, and a file comes in large blocks.
    """
    return numbered_lines(_arrived(stream), NAME)


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
