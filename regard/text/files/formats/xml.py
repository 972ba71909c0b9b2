"""XML read as a stream: a few elements in memory, no entities of the document, nothing fetched."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.parsers import expat

from regard.errors import CorpusError
from regard.text.files import open_unpacked

_CHUNK = 1 << 16


class Events(ABC):
    """What is done with the elements of a document; names are without prefixes of namespaces."""

    @abstractmethod
    def start(self, name: str, attributes: dict[str, str], line: int) -> None:
        """An element begins."""

    @abstractmethod
    def end(self, name: str) -> None:
        """An element ends."""

    @abstractmethod
    def text(self, text: str) -> None:
        """Text inside the element that has begun last."""


def parse_xml(path: Path | str, name: str, events: Events) -> Iterator[None]:
    """Parse a document; yields after each part of it, so that a caller can take what has been collected.

    Raises:
        CorpusError: the document is not XML, is damaged, or declares entities of its own.
    """
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = lambda tag, attributes: events.start(
        _local(tag), attributes, parser.CurrentLineNumber
    )
    parser.EndElementHandler = lambda tag: events.end(_local(tag))
    parser.CharacterDataHandler = events.text

    def refuse_entity(entity: str, *_: Any) -> None:
        # Entities can expand to gigabytes, or name files of this machine.
        problem = f"declares the entity {entity}; entities of a document are not read"
        place = f"{name}:{parser.CurrentLineNumber}"
        raise CorpusError(f"{place}: {problem}", code="xml_entity")

    parser.EntityDeclHandler = refuse_entity
    with open_unpacked(path) as stream:
        try:
            while data := stream.read(_CHUNK):
                parser.Parse(data, False)
                yield
            parser.Parse(b"", True)
        except (expat.ExpatError, ValueError, LookupError) as error:
            reason = str(error).partition(":")[0]
            problem = f"is not well-formed XML: {reason}; the file is damaged or truncated"
            raise CorpusError(f"{name}:{parser.ErrorLineNumber}: {problem}", code="not_xml") from None
    yield


def _local(tag: str) -> str:
    return tag.rpartition(":")[2]
