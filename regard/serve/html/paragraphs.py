"""Splits a page of HTML into paragraphs: texts with inline tags, and everything between them, which stays."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import NamedTuple

_INLINE = frozenset(
    """
    a abbr b bdi bdo big cite code data del dfn em font i img ins kbd label mark q s samp small span strong
    sub sup time tt u var wbr
    """.split()  # noqa: SIM905
)
"""Tags that may occur inside a sentence; any other ends it."""
_VERBATIM = ("script", "style", "code", "textarea", "pre", "math")
"""Elements whose content is not text in the page's language."""
MAX_TAGS = 256
"""Maximum number of tags in a paragraph; if there are more, every text between two tags stands alone."""
_SPACES = re.compile(r"[ \t\r\n\f]+")
"""What a browser shows as one space."""
_TAG_START = re.compile(r"<(?=[A-Za-z/!?])")
_QUOTE_OR_END = re.compile(r"[\"'>]")
_CODE = re.compile(r"<code[\s>].*</code\s*>\Z", re.DOTALL | re.IGNORECASE)
_NAME = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9]*)")


class InlineTag(NamedTuple):
    """A tag, a comment, or a code element inside a paragraph."""

    place: int
    """Its position in the text, in characters."""
    raw: str

    @property
    def opens(self) -> str | None:
        """The element that it opens, if any."""
        name = _NAME.match(self.raw)
        alone = self.raw.endswith("/>") or "</" in self.raw or (name and name[2].lower() in ("img", "wbr"))
        return name[2].lower() if name and not name[1] and not alone else None

    @property
    def closes(self) -> str | None:
        """The element that it closes, if any."""
        name = _NAME.match(self.raw)
        return name[2].lower() if name and name[1] else None


class Paragraph(NamedTuple):
    """A text with its inline tags, or HTML that stays as it is."""

    raw: str
    text: str = ""
    """The unescaped text, with a space for every line break; empty if there is nothing to translate."""
    tags: tuple[InlineTag, ...] = ()
    code: tuple[str, ...] = ()
    """The elements that the placeholders `{c0}`, `{c1}`, … of the text stand for."""

    @property
    def outside(self) -> tuple[str, str]:
        """The spaces before and after it."""
        bare = self.raw.strip(" \t\r\n\f")
        start = self.raw.index(bare)
        return self.raw[:start], self.raw[start + len(bare) :]

    def with_code(self, translation: str) -> str:
        """A translation with its code elements; lost ones are appended."""
        for i, raw in enumerate(self.code):
            name = code_name(i)
            translation = translation.replace(name, raw, 1) if name in translation else translation + raw
        return translation


def code_name(i: int) -> str:
    """The placeholder of a code element; translations copy it (`engine/document/verbatim.py`)."""
    return f"{{c{i}}}"


def paragraphs(page: str) -> list[Paragraph]:
    """The paragraphs of a page; their HTML, concatenated, is the page."""
    found: list[Paragraph] = []
    current: list[HtmlPart] = []
    for part in parts(page):
        if part.is_text or (not part.is_tag and current) or _is_inline(part):
            current.append(part)
            continue
        found += _paragraph(current)
        current = []
        found.append(Paragraph(part.raw))
    return [*found, *_paragraph(current)]


def _is_inline(part: HtmlPart) -> bool:
    name = _NAME.match(part.raw)
    return part.raw.startswith("<!--") or (name is not None and name[2].lower() in _INLINE)


def _paragraph(current: list[HtmlPart]) -> list[Paragraph]:
    """Consecutive parts as one paragraph; as they are, if there is nothing to translate."""
    raw = "".join(part.raw for part in current)
    crowded = sum(part.is_tag for part in current) > MAX_TAGS
    if crowded or not any(part.is_text for part in current):
        return [
            Paragraph(part.raw, plain(part.raw).strip(" \t\r\n\f") if part.is_text else "")
            for part in current
        ]
    text = ""
    tags: list[InlineTag] = []
    code: list[str] = []
    for part in current:
        if _CODE.match(part.raw) and code_name(0)[:2] not in raw:
            text += code_name(len(code))
            code.append(part.raw)
            continue
        if part.is_tag:
            tags.append(InlineTag(len(text), part.raw))
            continue
        read = _SPACES.sub(" ", plain(part.raw))
        text += read.lstrip(" ") if not text or text.endswith(" ") else read
    text = text.rstrip(" ")
    placed = (tag._replace(place=min(tag.place, len(text))) for tag in tags)
    return [Paragraph(raw, text, tuple(placed), tuple(code))]


# --- tags and text ------------------------------------------------------------------------------------------


class HtmlPart(NamedTuple):
    """A tag, a comment, a verbatim element, or the text between two of these."""

    raw: str
    is_tag: bool

    @property
    def is_text(self) -> bool:
        """Whether it has text to translate."""
        return not self.is_tag and bool(self.raw.strip())


def parts(page: str) -> list[HtmlPart]:
    """The parts of a page; concatenated, they are the page."""
    found: list[HtmlPart] = []
    verbatim, inside = "", None
    for raw, is_tag in _split(page):
        name = _NAME.match(raw) if is_tag else None
        if inside is None and name and name[2].lower() in _VERBATIM and not name[1]:
            inside = name[2].lower()
        if inside is None:
            found.append(HtmlPart(raw, is_tag))
            continue
        verbatim += raw
        if name and name[1] and name[2].lower() == inside:
            found.append(HtmlPart(verbatim, is_tag=True))
            verbatim, inside = "", None
    return [*found, HtmlPart(verbatim, is_tag=True)] if verbatim else found


def plain(raw: str) -> str:
    """The unescaped text of a part."""
    return html.unescape(raw)


def escaped(text: str) -> str:
    """A text escaped for HTML."""
    return html.escape(text, quote=False)


def _split(page: str) -> Iterator[tuple[str, bool]]:
    """Tags and the text between them; linear in the size of the page, whatever is left open."""
    place = 0
    while opening := _TAG_START.search(page, place):
        end = _end(page, opening.start())
        if end is None:
            break
        if opening.start() > place:
            yield page[place : opening.start()], False
        yield page[opening.start() : end], True
        place = end
    if place < len(page):
        yield page[place:], False


def _end(page: str, start: int) -> int | None:
    """The end of a tag or comment that begins here; None if there is none."""
    if page.startswith("<!--", start):
        return _after(page, "-->", start + 4)
    place = start + 1
    while (mark := _QUOTE_OR_END.search(page, place)) is not None:
        if mark[0] == ">":
            return mark.end()
        closing = page.find(mark[0], mark.end())
        if closing < 0:
            return None
        place = closing + 1
    return None


def _after(page: str, what: str, place: int) -> int | None:
    found = page.find(what, place)
    return None if found < 0 else found + len(what)
