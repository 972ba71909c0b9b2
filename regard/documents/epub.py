"""E-books (.epub): chapters as pages of HTML, titles in the table of contents and in the metadata.

All other files stay, and so do order and compression: `mimetype` is the first file, uncompressed.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import unquote
from xml.parsers import expat

from regard.documents import html
from regard.documents.document import Document
from regard.documents.trimming import has_words
from regard.documents.xml.packages import Package
from regard.documents.xml.tree import Edit, Element, XmlFile, escaped
from regard.errors import CorpusError
from regard.text.marked import Marked

_CONTAINER, _ENCRYPTION = "META-INF/container.xml", "META-INF/encryption.xml"
_PAGES = ("application/xhtml+xml", "text/html", "text/x-oeb1-document")
_CONTENTS = "application/x-dtbncx+xml"
_LANG = "{http://www.w3.org/XML/1998/namespace}lang"


@dataclass(frozen=True, slots=True)
class _Title:
    """An element with nothing but text."""

    element: Element
    text: str


class _Titles:
    """A file of XML in which some elements are translated."""

    notes: Sequence[str] = ()

    def __init__(self, file: XmlFile, elements: Sequence[Element]) -> None:
        self._file = file
        self._titles = [
            _Title(each, re.sub(r"\s+", " ", each.text.strip()))
            for each in elements
            if has_words(each.text) and not each.elements
        ]
        self.segments: Sequence[Marked] = [Marked(title.text) for title in self._titles]

    def written(self, translations: Sequence[Marked], language: str = "") -> bytes:
        """The file with translations."""
        edits = [
            Edit(title.element.inner_start, title.element.inner_end, escaped(translation.text).encode())
            for title, translation in zip(self._titles, translations, strict=True)
            if translation.text != title.text
        ]
        return self._file.edited(edits + (self._languages(language) if language else []))

    def _languages(self, language: str) -> list[Edit]:
        """The language in attributes and in `dc:language`."""
        found = []
        for element in self._file.root.walk():
            declared = element.attributes.get(_LANG)
            if declared is not None and not _same(declared, language):
                found.append(self._file.with_attributes(element, {"xml:lang": language}))
            is_declaration = element.name == "language" and element.children and not element.elements
            if is_declaration and not _same(element.text, language):
                found.append(Edit(element.inner_start, element.inner_end, language.encode()))
        return found


def _same(declared: str, language: str) -> bool:
    """Whether a declaration fits: en-US for en."""
    return re.split("[-_]", declared.strip())[0].lower() == re.split("[-_]", language)[0].lower()


class Book:
    """An e-book."""

    def __init__(self, package: Package) -> None:
        self._package = package
        self._missing = 0
        self._parts = dict(self._read())
        self.segments: Sequence[Marked] = [each for part in self._parts.values() for each in part.segments]
        self.notes: list[str] = self._first_notes()

    def written(self, translations: Sequence[Marked], language: str = "") -> bytes:
        """The book with translations."""
        self.notes = self._first_notes()
        changed = {}
        place = 0
        for name, part in self._parts.items():
            count = len(part.segments)
            own = translations[place : place + count]
            place += count
            new = part.written(own, language)
            # Readers show nothing of a chapter that is not well-formed.
            if _is_well_formed(new) or not _is_well_formed(self._package.read(name)):
                changed[name] = new
            else:
                self.notes.append(f"{name} stays untranslated: its tags cannot be put back")
        assert place == len(translations), "there is a translation for each segment"
        return self._package.with_files(changed, first="mimetype")

    def _first_notes(self) -> list[str]:
        return [f"{self._missing} files of the manifest are missing"] if self._missing else []

    def _read(self) -> Iterator[tuple[str, Document]]:
        """The files that are translated: the book's description, chapters as they are read, contents."""
        for name in _descriptions(self._package):
            description = self._package.xml(name)
            metadata = description.root.child("metadata")
            titles = [each for each in metadata.walk() if each.name == "title"] if metadata else []
            yield name, _Titles(description, titles)
            pages, contents = self._listed(description, posixpath.dirname(name))
            for page in pages:
                yield page, self._page(page)
            for each in contents:
                file = self._package.xml(each)
                texts = (element for element in file.root.walk() if element.name == "text")
                yield each, _Titles(file, list(texts))

    def _listed(self, description: XmlFile, folder: str) -> tuple[list[str], list[str]]:
        """The pages of a book in the order of reading, and its tables of contents."""
        manifest, spine = description.root.child("manifest"), description.root.child("spine")
        items = manifest.elements if manifest else []
        order = {each.attributes.get("idref"): i for i, each in enumerate(spine.elements if spine else [])}
        items = sorted(items, key=lambda item: order.get(item.attributes.get("id"), len(order)))
        pages: dict[str, None] = {}
        contents: dict[str, None] = {}
        for item in items:
            href = unquote(item.attributes.get("href", ""))
            name, kind = posixpath.normpath(posixpath.join(folder, href)), item.attributes.get("media-type")
            if kind not in (*_PAGES, _CONTENTS):
                continue
            if name not in self._package.names:
                self._missing += 1
            else:
                (contents if kind == _CONTENTS else pages)[name] = None
        return list(pages), list(contents)

    def _page(self, name: str) -> Document:
        if name in _encrypted(self._package):
            problem = f"{name}: is encrypted, by a protection against copies; it cannot be read"
            raise CorpusError(problem, code="encrypted_file")
        try:
            return html.read(self._package.read(name))
        except CorpusError as error:
            raise CorpusError(f"{name}: {error}", code=error.code) from error


def read(content: bytes) -> Book:
    """Read an e-book.

    Raises:
        CorpusError: it is damaged, encrypted, too large or no EPUB.
    """
    return Book(Package(content))


def _descriptions(package: Package) -> list[str]:
    """The files that describe the renditions of a book; nearly always one."""
    if _CONTAINER not in package.names:
        raise CorpusError(f"is no EPUB: {_CONTAINER} is missing", code="damaged_file")
    files = [each for each in package.xml(_CONTAINER).root.walk() if each.name == "rootfile"]
    names = dict.fromkeys(each.attributes.get("full-path", "") for each in files)
    if not names:
        raise CorpusError(f"{_CONTAINER}: names no book", code="damaged_file")
    return list(names)


def _encrypted(package: Package) -> set[str]:
    if _ENCRYPTION not in package.names:
        return set()
    references = (each for each in package.xml(_ENCRYPTION).root.walk() if each.name == "CipherReference")
    return {unquote(each.attributes.get("URI", "")) for each in references}


def _is_well_formed(content: bytes) -> bool:
    try:
        expat.ParserCreate().Parse(content, True)
    except expat.ExpatError:
        return False
    return True
