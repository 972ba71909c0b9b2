"""XML as a tree whose parts know their place in the file, so that one part is replaced and all others stay.

expat reads it, without entities of its own and without anything from outside. Writing a tree with a library
would change quotes, entities, declarations and line breaks everywhere.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

from regard.documents.reading import DecodedText, decoded
from regard.errors import CorpusError

MAX_DEPTH = 256
"""Maximum depth of elements."""
MAX_BYTES = 128 << 20
"""Maximum size of one XML file; the tree takes about ten times as much memory."""
_DECLARED = re.compile(rb"\A\s*<\?xml[^>]*?encoding\s*=\s*[\"']([\w.:-]+)[\"']")


@dataclass(slots=True, eq=False)
class Text:
    """Characters between tags, or anything else that is no element: comments, instructions."""

    text: str
    start: int
    end: int = 0
    """Its place in the bytes of the file."""
    is_text: bool = True


@dataclass(slots=True, eq=False)
class Element:
    """An element."""

    name: str
    """Without its prefix."""
    namespace: str
    attributes: dict[str, str]
    """Names in a namespace have it in front: `{http://…}lang`."""
    start: int
    inner_start: int = 0
    """After its start tag; the end of the element if it is written as `<a/>`."""
    inner_end: int = 0
    end: int = 0
    children: list[Element | Text] = field(default_factory=list)

    @property
    def elements(self) -> list[Element]:
        """The children that are elements."""
        return [child for child in self.children if isinstance(child, Element)]

    @property
    def text(self) -> str:
        """All characters in it."""
        return "".join(child.text for child in self.children)

    def child(self, name: str) -> Element | None:
        """The first child of this name."""
        return next((each for each in self.elements if each.name == name), None)

    def walk(self) -> Iterator[Element]:
        """It and all elements in it, in the order of their start tags."""
        waiting = [self]
        while waiting:
            element = waiting.pop()
            yield element
            waiting += reversed(element.elements)


@dataclass(frozen=True, slots=True)
class Edit:
    """Bytes that replace others."""

    start: int
    end: int
    new: bytes


class XmlFile:
    """A file of XML that was read."""

    def __init__(self, content: bytes) -> None:
        if len(content) > MAX_BYTES:
            problem = f"has {len(content) >> 20} MiB of XML; the limit is {MAX_BYTES >> 20}"
            raise CorpusError(problem, code="too_large")
        self._decoded = _decoded(content)
        self.data = self._decoded.text.encode()
        """Its characters in UTF-8."""
        self.root = _Reader(self.data).read()

    def raw(self, start: int, end: int) -> str:
        """What is written from one place to another."""
        return self.data[start:end].decode()

    def line(self, place: int) -> int:
        """The number of the line of a place."""
        return self.data.count(b"\n", 0, place) + 1

    def edited(self, edits: list[Edit]) -> bytes:
        """The file with other bytes at some places, which do not overlap."""
        pieces, place = [], 0
        for edit in sorted(edits, key=lambda edit: edit.start):
            assert edit.start >= place, "edits do not overlap"
            pieces += [self.data[place : edit.start], edit.new]
            place = edit.end
        pieces.append(self.data[place:])
        # A letter that the encoding of the file lacks becomes a reference.
        return self._decoded.encoded(b"".join(pieces).decode(), "xmlcharrefreplace")

    def start_tag(self, element: Element, attributes: dict[str, str], *, opens: bool = False) -> str:
        """The start tag of an element with some attributes set.

        Args:
            element: the element.
            attributes: names as they are written, with their values.
            opens: the tag of an element with content, also if it is written as `<a/>`.
        """
        tag = self.raw(element.start, element.inner_start)
        for name, value in attributes.items():
            quoted = f'{name}="{escaped(value, quote=True)}"'
            pattern = re.compile(rf"(?<=\s){re.escape(name)}\s*=\s*(?:\"[^\"]*\"|'[^']*')")
            if pattern.search(tag):
                tag = pattern.sub(lambda _, new=quoted: new, tag, count=1)  # type: ignore[misc]
            else:
                tag = re.sub(r"\s*(/?>)\Z", lambda end, new=quoted: f" {new}{end[1]}", tag)  # type: ignore[misc]
        return re.sub(r"\s*/>\Z", ">", tag) if opens else tag

    def with_attributes(self, element: Element, attributes: dict[str, str]) -> Edit:
        """Sets attributes of an element."""
        return Edit(element.start, element.inner_start, self.start_tag(element, attributes).encode())


_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")


def escaped(text: str, *, quote: bool = False) -> str:
    """A text as characters of XML, which has no control characters."""
    text = _CONTROL.sub("", text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace('"', "&quot;") if quote else text


def _decoded(content: bytes) -> DecodedText:
    declared = _DECLARED.match(content[:1000].removeprefix(codecs.BOM_UTF8))
    encoding = declared[1].decode() if declared else "utf-8"
    try:
        encoding = codecs.lookup(encoding).name
    except LookupError:
        raise CorpusError(f"line 1: the encoding {encoding} is unknown", code="wrong_encoding") from None
    # In bytes without a mark that begin with an ASCII declaration, UTF-16 cannot be meant.
    return decoded(content, "utf-8" if encoding.startswith("utf") or encoding == "ascii" else encoding)


class _Reader:
    """Builds the tree from the events of expat."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._parser = parser = expat.ParserCreate("utf-8", " ")
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        parser.DefaultHandler = self._other
        parser.EntityDeclHandler = self._entity
        self._root: Element | None = None
        self._open: list[Element] = []
        self._unfinished: Callable[[int], None] | None = None
        """Takes the place where the last tag or text ended."""

    def read(self) -> Element:
        """The root of the file."""
        try:
            self._parser.Parse(self._data, True)
        except expat.ExpatError as error:
            problem = f"line {error.lineno}: is not well-formed XML: {expat.errors.messages[error.code]}"
            raise CorpusError(problem, code="damaged_file") from error
        assert self._root is not None, "well-formed XML has a root"
        return self._root

    def _reach(self) -> int:
        """The place of this event, which is the end of what came before."""
        place = self._parser.CurrentByteIndex
        if self._unfinished is not None:
            self._unfinished(place)
            self._unfinished = None
        return place

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        place = self._reach()
        namespace, _, local = name.rpartition(" ")
        named = {
            f"{{{key.replace(' ', '}')}" if " " in key else key: text for key, text in attributes.items()
        }
        element = Element(local, namespace, named, place)
        if len(self._open) >= MAX_DEPTH:
            line = self._parser.CurrentLineNumber
            raise CorpusError(f"line {line}: elements are nested too deeply", code="damaged_file")
        if self._open:
            self._open[-1].children.append(element)
        else:
            self._root = element
        self._open.append(element)

        def finish(end: int) -> None:
            element.inner_start = end

        self._unfinished = finish

    def _end(self, _name: str) -> None:
        element = self._open.pop()
        is_empty = self._unfinished is not None and not element.inner_start
        place = self._reach()
        element.inner_end = place
        # Of <a/>, expat reports the end after the tag.
        if is_empty and self._data[place - 2 : place] == b"/>":
            element.end = place
        else:
            element.end = self._data.index(b">", place) + 1

    def _characters(self, text: str) -> None:
        place = self._reach()
        if not self._open:
            return
        children = self._open[-1].children
        if not (children and isinstance(children[-1], Text) and children[-1].is_text):
            children.append(Text("", place))
        node = children[-1]
        assert isinstance(node, Text), "it was just appended"
        node.text += text

        def finish(end: int) -> None:
            node.end = end

        self._unfinished = finish

    def _other(self, raw: str) -> None:
        # The marks of a CDATA section belong to its text; comments and the like have no text.
        self._characters("") if raw in ("<![CDATA[", "]]>") else self._note()

    def _note(self) -> None:
        place = self._reach()
        if self._open:
            node = Text("", place, is_text=False)
            self._open[-1].children.append(node)

            def finish(end: int) -> None:
                node.end = end

            self._unfinished = finish

    def _entity(self, name: str, *_: object) -> None:
        line = self._parser.CurrentLineNumber
        problem = f"line {line}: declares the entity {name}; entities are not read, since they can be endless"
        raise CorpusError(problem, code="entities")
