"""The interface of a document format, and the choice of one by the name of a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from regard.text.marked import Marked


class Document(Protocol):
    """A document that was read; what is not in its segments stays as it is."""

    segments: Sequence[Marked]
    """What is translated, in reading order: paragraphs, headings, cells, subtitles, messages."""

    def written(self, translations: Sequence[Marked]) -> bytes:
        """The document with a translation for each segment.

        With the segments themselves it is the document that was read: the same bytes, or the same tree.
        """


@dataclass(frozen=True, slots=True)
class Format:
    """A document format."""

    name: str
    suffixes: tuple[str, ...]
    """Endings of file names, such as `.html`."""
    read: Callable[[bytes], Document]
    """Reads a file; raises `CorpusError` with the place if it is damaged, or a package is not installed."""
