"""Input lines of a verb: texts from the command line, or standard input, processed as it arrives."""

from __future__ import annotations

import queue
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

from regard.errors import CorpusError
from regard.text.files import STDIN, display_name
from regard.text.files.lines import InputLine, numbered_lines

NAME = display_name(STDIN)
_CHUNK = 1 << 16
_BLOCK = 1 << 18
"""Bytes at which a block is passed on, even if more has arrived: a few thousand lines."""
_CHUNKS_AHEAD = 16
OPENING = 1 << 16
"""Bytes at the beginning of a document that show what it is …"""
PAUSE = 0.25
"""… or those before the first pause of so many seconds: who waits for an answer need not write more."""


def input_blocks(texts: Sequence[str] | None, *, opening: bool = False) -> Iterator[list[InputLine]]:
    """The texts of the command line as one block; without texts, the lines of standard input in blocks.

    With `opening`, the first block is the beginning of a document, even if it arrives in small pieces.
    """
    if texts is None:
        return read_arriving(sys.stdin.buffer, opening=opening)
    return iter([[InputLine(0, text) for text in texts]])


def read_arriving(stream: BinaryIO, *, opening: bool = False) -> Iterator[list[InputLine]]:
    """Lines in blocks: all that have arrived since the last block, at least one.

    A person who types gets an answer to every line; a file comes in large blocks.
    """
    return numbered_lines(_read_available(stream, opening=opening), NAME)


def _read_available(stream: BinaryIO, *, opening: bool) -> Iterator[bytes]:
    """The bytes that are available, as soon as there are any; at first perhaps a whole opening."""
    chunks: queue.Queue[bytes | OSError] = queue.Queue(_CHUNKS_AHEAD)
    # The raw stream returns what is there; and a thread blocked on it does not delay the program's exit.
    raw: Any = getattr(stream, "raw", stream)

    def read() -> None:
        data: bytes | OSError = b"-"
        while data and isinstance(data, bytes):
            try:
                data = raw.read(_CHUNK)
            except OSError as error:
                data = error
            chunks.put(data)

    threading.Thread(target=read, daemon=True).start()
    while True:
        available = b""
        chunk = chunks.get()
        while chunk and isinstance(chunk, bytes):
            available += chunk
            waits = opening and len(available) < OPENING
            if len(available) >= _BLOCK or (chunks.empty() and not waits):
                break
            try:
                chunk = chunks.get(timeout=PAUSE if waits else None)
            except queue.Empty:
                break
        opening = False
        if available:
            yield available
        if isinstance(chunk, OSError):
            raise CorpusError(f"{NAME}: cannot be read: {chunk.strerror or chunk}", code="unreadable_file")
        if not chunk:
            return
