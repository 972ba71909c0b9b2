"""Paragraphs of Word: runs become a text with tags for formatting, links, fields and pictures, and back.

Word splits a sentence into runs for many reasons that nobody sees: spelling marks, editing sessions, fonts of
other scripts. Runs that look alike are joined. The commonest formatting of a paragraph has no tag.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from regard.documents.trimming import InlineText, Trimmed, has_words, trimmed
from regard.documents.xml.tree import Element, XmlFile, escaped
from regard.text.marked import Marked

NAMESPACES = (
    "http://schemas.openxmlformats.org/wordprocessingml/2006/main",
    "http://purl.oclc.org/ooxml/wordprocessingml/main",
)
_CONTAINERS = frozenset(["hyperlink", "ins", "moveTo", "smartTag", "customXml", "dir", "bdo"])
_BREAKS = frozenset(["tab", "ptab", "br", "cr"])
_WORDS = frozenset(["oMath", "oMathPara", "sym", "ruby", "pgNum"])
_DROPPED = frozenset(["proofErr", "lastRenderedPageBreak", "softHyphen", "rPr", "pPr"])
_CONTROLS = frozenset(["checkbox", "dropDownList", "comboBox", "date", "picture"])
"""Content controls whose text is chosen, not written."""
_PAIRS = {
    "bookmarkStart": "bookmarkEnd",
    "commentRangeStart": "commentRangeEnd",
    "permStart": "permEnd",
}
_CODE = re.compile(r"<\w+:[rp]Style\s[^>]*val=\"[^\"]*(?:Code|Verbatim|Preformatted)", re.IGNORECASE)
"""Styles of text that is no language."""
_HIDDEN = re.compile(
    r"<\w+:(?:lang|noProof)\b[^>]*/>|\s\w+:hint=\"\w+\"|<\w+:(?:szCs|bCs|iCs)\b[^>]*/>|<\w+:rFonts\s*/>"
)
"""What differs between runs that look alike."""
_LANG = re.compile(r"<\w+:lang\b[^>]*/>")
_HINT = re.compile(r"\s\w+:hint=\"eastAsia\"")

Span = tuple[int, int]


@dataclass(slots=True)
class _Item:
    """A text with its formatting, or something that stays."""

    kind: str
    """`text`, `tag`, `break`, `word`, `open`, `close`; `begin`, `instruction`, `separate`, `end` (fields)."""
    text: str = ""
    """The text; of a tag, the name that it opens or closes."""
    properties: str = ""
    """The formatting of a text as it is written."""
    raw: tuple[str | Span, ...] = ()
    """What stays: strings, and places in the file."""

    @property
    def key(self) -> str:
        """The same for texts that look alike."""
        bare = _HIDDEN.sub("", self.properties)
        return "" if re.fullmatch(r"<(\w+:rPr)>\s*</\1>|<\w+:rPr\s*/>", bare) else bare


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph with words."""

    element: Element
    content: Span
    """Its place after the properties."""
    edges: Trimmed
    raws: dict[str, tuple[str | Span, ...]]
    """What the tags stand for; nothing for tags of formatting."""
    formats: dict[str, str]
    """The formatting that a tag opens, by its name; of all other text, by the empty name."""
    prefix: str
    """Of the names of elements: `w:`."""

    def written(self, translation: Marked, raw: Callable[[Span], str], *, east_asian: bool) -> str:
        """The content of the paragraph with a translation; `raw` reads a place of the file."""
        whole = self.edges.around(translation)
        pieces: list[str] = []
        opened = [""]
        place = 0
        for tag in [*whole.tags, None]:
            text = whole.text[place : tag.place if tag else len(whole.text)]
            if text:
                pieces.append(self._run(self.formats[opened[-1]], text, east_asian))
            if tag is None:
                break
            place = tag.place
            if tag.opens in self.formats and tag.opens:
                opened.append(tag.opens)
            elif tag.closes in opened[1:]:
                opened.remove(tag.closes)
            pieces += [each if isinstance(each, str) else raw(each) for each in self.raws[tag.raw]]
        return "".join(pieces)

    def _run(self, properties: str, text: str, east_asian: bool) -> str:
        # The language of the source does not hold any more.
        properties = _LANG.sub("", properties)
        properties = properties if east_asian else _HINT.sub("", properties)
        text, w = re.sub(r"\s*[\r\n]\s*", " ", text), self.prefix
        return f'<{w}r>{properties}<{w}t xml:space="preserve">{escaped(text)}</{w}t></{w}r>'


def paragraphs(file: XmlFile) -> Iterator[Paragraph]:
    """The paragraphs of a part that have words, in the order of their start."""
    for element in file.root.walk():
        if element.name == "p" and element.namespace in NAMESPACES and not _is_code(element, file):
            items = list(_items(element, file))
            paragraph = _paragraph(element, file, _joined_fields(items))
            if has_words(paragraph.edges.inner.text):
                yield paragraph


def _is_code(element: Element, file: XmlFile) -> bool:
    """Whether a paragraph has the style of code."""
    found = element.child("pPr")
    return found is not None and _CODE.search(file.raw(found.start, found.end)) is not None


# --- reading ------------------------------------------------------------------------------------------------


def _items(parent: Element, file: XmlFile) -> Iterator[_Item]:
    """What is in a paragraph or in something inside of it."""
    for child in parent.elements:
        name, whole = child.name, (child.start, child.end)
        number = next((text for key, text in child.attributes.items() if key.endswith("}id")), "")
        if name in _DROPPED:
            continue
        if name == "r":
            yield from _run_items(child, file)
        elif name in _CONTAINERS and child.elements:
            yield from _container(child, child, file)
        elif name == "sdt" and (content := child.child("sdtContent")) and not _is_control(child):
            yield from _container(child, content, file)
        elif name in _WORDS or name == "fldSimple":
            yield _Item("word", raw=(whole,))
        elif name in _PAIRS:
            yield _Item("open", f"{_PAIRS[name]}{number}", raw=(whole,))
        elif name in _PAIRS.values():
            yield _Item("close", f"{name}{number}", raw=(whole,))
        else:
            yield _Item("tag", raw=(whole,))


def _is_control(element: Element) -> bool:
    properties = element.child("sdtPr")
    return properties is not None and any(each.name in _CONTROLS for each in properties.elements)


def _container(outer: Element, inner: Element, file: XmlFile) -> Iterator[_Item]:
    name = f"{outer.name}{outer.start}"
    yield _Item("open", name, raw=((outer.start, inner.inner_start),))
    yield from _items(inner, file)
    yield _Item("close", name, raw=((inner.inner_end, outer.end),))


def _run_items(run: Element, file: XmlFile) -> Iterator[_Item]:
    found = run.child("rPr")
    properties = file.raw(found.start, found.end) if found else ""
    prefix = _prefix(run, file)
    for child in run.elements:
        raw = (f"<{prefix}r>{properties}", (child.start, child.end), f"</{prefix}r>")
        if child.name == "t":
            is_code = _CODE.search(properties) is not None
            yield _Item("word", raw=raw) if is_code else _Item("text", child.text, properties, raw)
        elif child.name == "noBreakHyphen":
            yield _Item("text", "\u2011", properties, raw)
        elif child.name in _BREAKS:
            yield _Item("break", raw=raw)
        elif child.name in _WORDS:
            yield _Item("word", raw=raw)
        elif child.name == "fldChar":
            kinds = (text for key, text in child.attributes.items() if key.endswith("}fldCharType"))
            yield _Item(next(kinds, "tag"), raw=raw)
        elif child.name == "instrText":
            yield _Item("instruction", child.text, raw=raw)
        elif child.name not in _DROPPED:
            yield _Item("tag", raw=raw)


def _prefix(element: Element, file: XmlFile) -> str:
    return file.raw(element.start, element.inner_start)[1:].partition(element.name)[0]


def _joined_fields(items: list[_Item]) -> list[_Item]:
    """Items with fields as words; the text of a link that is written as a field stays a text."""
    found: list[_Item] = []
    begun: list[int] = []
    for item in items:
        found.append(item)
        if item.kind == "begin":
            begun.append(len(found) - 1)
        elif item.kind == "end" and begun:
            start = begun.pop()
            found[start:] = _field(found[start:], start)
    return found


def _field(items: list[_Item], number: int) -> list[_Item]:
    """A whole field: one word, or a link around its text."""
    instruction = "".join(item.text for item in items if item.kind == "instruction")
    middle = next((i for i, item in enumerate(items) if item.kind == "separate"), None)
    if middle is not None and instruction.split()[:1] == ["HYPERLINK"]:
        name = f"field{number}"
        head = tuple(piece for item in items[: middle + 1] for piece in item.raw)
        return [
            _Item("open", name, raw=head),
            *items[middle + 1 : -1],
            _Item("close", name, raw=items[-1].raw),
        ]
    opened = Counter(item.text for item in items if item.kind == "open")
    if opened != Counter(item.text for item in items if item.kind == "close"):
        return items
    return [_Item("word", raw=tuple(piece for item in items for piece in item.raw))]


def _paragraph(element: Element, file: XmlFile, items: list[_Item]) -> Paragraph:
    lengths: Counter[str] = Counter()
    properties: dict[str, str] = {}
    for item in items:
        if item.kind == "text" and item.text.strip():
            lengths[item.key] += len(item.text)
            properties.setdefault(item.key, item.properties)
    common = lengths.most_common(1)[0][0] if lengths else ""
    building = _Building(properties, common)
    for item in items:
        building.add(item)
    building.close()
    first = element.child("pPr")
    start = first.end if first else element.inner_start
    return Paragraph(
        element,
        (start, element.inner_end),
        trimmed(building.text.marked),
        building.raws,
        building.formats,
        _prefix(element, file),
    )


class _Building:
    """Builds the text of a paragraph."""

    def __init__(self, properties: dict[str, str], common: str) -> None:
        self._properties, self._common = properties, common
        self.text = InlineText()
        self.raws: dict[str, tuple[str | Span, ...]] = {}
        self.formats = {"": properties.get(common, "")}
        self._key, self._open = common, ""

    def add(self, item: _Item) -> None:
        """Append an item."""
        if item.kind == "text":
            # A space looks like what is before it.
            self._format(item.key if item.text.strip() else self._key)
            self.text.add_text(item.text)
            return
        if item.kind in ("open", "close", "break"):
            self.close()
        self._tag(
            item.raw,
            opens=item.text if item.kind == "open" else "",
            closes=item.text if item.kind == "close" else "",
            is_word=item.kind == "word",
            is_break=item.kind == "break",
        )

    def close(self) -> None:
        """End the formatting that is open."""
        self._format(self._common)

    def _format(self, key: str) -> None:
        if key == self._key:
            return
        if self._open:
            self._tag((), closes=self._open)
        self._key, self._open = key, ""
        if key != self._common:
            self._open = f"format{len(self.formats)}"
            self.formats[self._open] = self._properties[key]
            self._tag((), opens=self._open)

    def _tag(
        self,
        raw: tuple[str | Span, ...],
        *,
        opens: str = "",
        closes: str = "",
        is_word: bool = False,
        is_break: bool = False,
    ) -> None:
        name = f"<{len(self.raws)}>"
        self.raws[name] = raw
        self.text.add_tag(name, opens=opens, closes=closes, is_word=is_word, is_break=is_break)
