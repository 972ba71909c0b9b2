"""Translators for tests of document formats: they change every text in a way that can be recognised."""

from collections.abc import Sequence

from regard.documents.document import Document
from regard.text.marked import Marked


def upper(marked: Marked) -> Marked:
    """A text in capitals, tags where they were. No letter becomes two, so that places stay."""
    return marked._replace(text="".join(c.upper() if len(c.upper()) == 1 else c for c in marked.text))


def in_capitals(document: Document, language: str = "") -> bytes:
    """The document with every segment in capitals."""
    return document.written([upper(each) for each in document.segments], language)


def unchanged(document: Document, language: str = "") -> bytes:
    """The document with its own segments as translations."""
    return document.written(document.segments, language)


def texts(document: Document) -> list[str]:
    """The texts of the segments."""
    return [each.text for each in document.segments]


def raws(segment: Marked) -> list[str]:
    """The tags of a segment."""
    return [tag.raw for tag in segment.tags]


def with_texts(document: Document, translations: Sequence[str], language: str = "") -> bytes:
    """The document with these translations, which have no tags."""
    return document.written([Marked(each) for each in translations], language)
