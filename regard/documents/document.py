"""The interface of a document format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from regard.text.marked import Marked


class Document(Protocol):
    """A document that was read; what is not in its segments stays as it is.

    A module of a format has a function `read`, which takes the content of a file. It raises `CorpusError`,
    with the place but without the name of the file, if the content is damaged.
    """

    @property
    def segments(self) -> Sequence[Marked]:
        """What is translated, in reading order: paragraphs, headings, cells, subtitles, messages."""

    @property
    def notes(self) -> Sequence[str]:
        """What is not translated or cannot be kept, for a report; usually nothing."""

    def written(self, translations: Sequence[Marked], language: str = "") -> bytes:
        """The document with a translation for each segment.

        With the segments themselves it is the document that was read: the same bytes, or the same tree.

        Args:
            translations: as many as there are segments.
            language: the code of their language, for formats that declare it; empty to keep the declaration.
        """
