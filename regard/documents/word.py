"""Word documents (.docx): paragraphs of text, tables, text boxes, headers, footers, notes.

Only the runs of translated paragraphs are written anew, where they stand: python-docx has no way to move
formatting, links and fields inside a paragraph. All other files of the package, and all other bytes of its
XML, stay.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

from regard.documents.strings import is_complete
from regard.documents.word_runs import Paragraph, Span, paragraphs
from regard.documents.xml.packages import Package
from regard.documents.xml.tree import Edit, XmlFile
from regard.errors import CorpusError
from regard.text.marked import Marked

_TYPES, _STYLES = "[Content_Types].xml", "word/styles.xml"
_PARTS = re.compile(
    r"(?:document|template)(?:\.macroEnabled\w*)?\.main\+xml|(?:header|footer|footnotes|endnotes)\+xml"
)
"""Content types of the parts that are translated."""
_NOT_TRANSLATED = {
    "comments.xml": "comments",
    "charts/chart": "texts of charts",
    "diagrams/data": "texts of diagrams",
}
_TEXT = re.compile(rb"<\w+:t[ >]")
_EAST_ASIAN = ("zh", "ja", "ko")


class WordDocument:
    """A Word document."""

    def __init__(self, package: Package) -> None:
        self._package = package
        self._parts = {name: package.xml(name) for name in _part_names(package)}
        self._paragraphs = [(name, each) for name, part in self._parts.items() for each in paragraphs(part)]
        self.segments: Sequence[Marked] = [each.edges.inner for _, each in self._paragraphs]
        self._styles = package.xml(_STYLES) if _STYLES in package.names else None
        self.notes: list[str] = self._first_notes()

    def written(self, translations: Sequence[Marked], language: str = "") -> bytes:
        """The document with translations."""
        self.notes = self._first_notes()
        changed: dict[str, list[tuple[Paragraph, Marked]]] = {}
        lost = 0
        for (name, paragraph), translation in zip(self._paragraphs, translations, strict=True):
            if not is_complete(paragraph.edges.inner, translation):
                lost += 1
            elif translation != paragraph.edges.inner:
                changed.setdefault(name, []).append((paragraph, translation))
        if lost:
            self.notes.append(f"{lost} paragraphs stay untranslated: a link, a field or a picture was lost")
        east_asian = not language or language.split("-")[0] in _EAST_ASIAN
        files = {
            name: self._parts[name].edited(_edits(self._parts[name], pairs, east_asian))
            for name, pairs in changed.items()
        }
        if changed and language:
            files |= self._declared(language)
        return self._package.with_files(files)

    def _first_notes(self) -> list[str]:
        found = [
            what
            for part, what in _NOT_TRANSLATED.items()
            if any(
                name.startswith(f"word/{part}") and _TEXT.search(self._package.read(name))
                for name in self._package.names
            )
        ]
        return [f"{what} are not translated" for what in found]

    def _declared(self, language: str) -> dict[str, bytes]:
        """The styles with the language of the text, which the spelling checker uses."""
        part = self._styles
        if part is None:
            return {}
        kind = "eastAsia" if language.split("-")[0] in _EAST_ASIAN else "val"
        edits = []
        for defaults in (each for each in part.root.elements if each.name == "docDefaults"):
            for element in (each for each in defaults.walk() if each.name == "lang"):
                prefix = part.raw(element.start, element.inner_start)[1:].partition("lang")[0]
                old = next(
                    (text for key, text in element.attributes.items() if key.endswith(f"}}{kind}")), ""
                )
                if old.split("-")[0] != language.split("-")[0]:
                    edits.append(part.with_attributes(element, {f"{prefix}{kind}": language}))
        return {_STYLES: part.edited(edits)}


def read(content: bytes) -> WordDocument:
    """Read a Word document.

    Raises:
        CorpusError: it is damaged, encrypted, too large or not of Word.
    """
    if content.startswith(b"\xd0\xcf\x11\xe0"):
        problem = "is an old or an encrypted Office document; save it as .docx, without a password"
        raise CorpusError(problem, code="not_text")
    return WordDocument(Package(content))


def _part_names(package: Package) -> list[str]:
    """The parts with text, the main one first."""
    if _TYPES not in package.names:
        raise CorpusError(f"is no Word document: {_TYPES} is missing", code="damaged_file")
    types = package.xml(_TYPES).root.elements
    parts = {
        each.attributes.get("PartName", "").lstrip("/"): each.attributes.get("ContentType", "")
        for each in types
    }
    found = [
        name
        for name, type_ in parts.items()
        if name and _PARTS.search(type_) and re.search("wordprocessingml|ms-word", type_)
    ]
    found = [name for name in found if name in package.names]
    if not any("main+xml" in parts[name] for name in found):
        raise CorpusError("is no Word document: it has no main part", code="damaged_file")
    return sorted(found, key=lambda name: ("main+xml" not in parts[name], name))


def _edits(part: XmlFile, pairs: Sequence[tuple[Paragraph, Marked]], east_asian: bool) -> list[Edit]:
    """The new content of paragraphs; one of a text box is part of the paragraph that holds the box."""
    edits: list[Edit] = []
    # By their ends: a paragraph comes after those in its text boxes, whose edits are then the last ones.
    for paragraph, translation in sorted(pairs, key=lambda pair: pair[0].element.end):
        inside: list[Edit] = []
        while edits and edits[-1].start >= paragraph.content[0]:
            inside.insert(0, edits.pop())
        new = paragraph.written(translation, partial(_raw, part, inside), east_asian=east_asian)
        edits.append(Edit(*paragraph.content, new.encode()))
    return edits


def _raw(part: XmlFile, edits: Sequence[Edit], span: Span) -> str:
    """What is written at a place, with the edits there."""
    pieces, place = [], span[0]
    for edit in edits:
        if span[0] <= edit.start and edit.end <= span[1]:
            pieces += [part.data[place : edit.start], edit.new]
            place = edit.end
    return b"".join([*pieces, part.data[place : span[1]]]).decode()
