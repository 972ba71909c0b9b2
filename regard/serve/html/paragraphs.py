"""The paragraphs of a page: what reads as one text, with the tags inside of it, and all else between them."""

from __future__ import annotations

import re
from typing import NamedTuple

from regard.serve.html.text import Part, parts, plain

_INLINE = frozenset(
    """
    a abbr b bdi bdo big cite code data del dfn em font i img ins kbd label mark q s samp small span strong
    sub sup time tt u var wbr
    """.split()  # noqa: SIM905
)
"""Tags that a sentence may go on through; any other ends it."""
MOST_TAGS = 256
"""Of one paragraph; where there are more, what stands between two of them is a text of its own."""
_SPACES = re.compile(r"[ \t\r\n\f]+")
"""What a browser shows as one space."""
_CODE = re.compile(r"<code[\s>].*</code\s*>\Z", re.DOTALL | re.IGNORECASE)
_NAME = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9]*)")


class Mark(NamedTuple):
    """What stands inside of a paragraph and is not its text: a tag, a comment, or code with its tags."""

    place: int
    """Before which character of the text."""
    raw: str

    @property
    def opens(self) -> str | None:
        """What it is the beginning of."""
        name = _NAME.match(self.raw)
        alone = self.raw.endswith("/>") or "</" in self.raw or (name and name[2].lower() in ("img", "wbr"))
        return name[2].lower() if name and not name[1] and not alone else None

    @property
    def closes(self) -> str | None:
        """What it is the end of."""
        name = _NAME.match(self.raw)
        return name[2].lower() if name and name[1] else None


class Paragraph(NamedTuple):
    """A text of one piece, or what stays as it is."""

    raw: str
    text: str = ""
    """As one reads it, with a space for every break of a line; empty where nothing is to be translated."""
    marks: tuple[Mark, ...] = ()
    code: tuple[str, ...] = ()
    """What `{c0}` in the text stands for, and `{c1}`, and so on: a word that is not read."""

    @property
    def outside(self) -> tuple[str, str]:
        """The spaces around it."""
        bare = self.raw.strip(" \t\r\n\f")
        start = self.raw.index(bare)
        return self.raw[:start], self.raw[start + len(bare) :]

    def with_code(self, html: str) -> str:
        """A translation with its code; what got lost stands at the end."""
        for i, raw in enumerate(self.code):
            name = code_name(i)
            html = html.replace(name, raw, 1) if name in html else html + raw
        return html


def code_name(i: int) -> str:
    """What a text has for its code; translations keep it as it is (`engine/verbatim.py`)."""
    return f"{{c{i}}}"


def paragraphs(page: str) -> list[Paragraph]:
    """A page in paragraphs; what they hold, joined, is the page."""
    found: list[Paragraph] = []
    going: list[Part] = []
    inside = 0  # of <pre>, in which breaks of lines count
    for part in parts(page):
        if part.is_text or (not part.is_tag and going) or _is_inline(part):
            going.append(part)
            continue
        found += _paragraph(going, as_laid_out=inside > 0)
        going = []
        found.append(Paragraph(part.raw))
        name = _NAME.match(part.raw)
        if name and name[2].lower() == "pre":
            inside += -1 if name[1] else 1
    return [*found, *_paragraph(going, as_laid_out=inside > 0)]


def _is_inline(part: Part) -> bool:
    name = _NAME.match(part.raw)
    return part.raw.startswith("<!--") or (name is not None and name[2].lower() in _INLINE)


def _paragraph(going: list[Part], *, as_laid_out: bool) -> list[Paragraph]:
    """Parts that belong together; as they stand, where there is nothing to translate."""
    raw = "".join(part.raw for part in going)
    crowded = sum(part.is_tag for part in going) > MOST_TAGS
    if as_laid_out or crowded or not any(part.is_text for part in going):
        return [
            Paragraph(part.raw, plain(part.raw).strip(" \t\r\n\f") if part.is_text else "") for part in going
        ]
    text = ""
    marks: list[Mark] = []
    code: list[str] = []
    for part in going:
        if _CODE.match(part.raw) and code_name(0)[:2] not in raw:
            text += code_name(len(code))
            code.append(part.raw)
            continue
        if part.is_tag:
            marks.append(Mark(len(text), part.raw))
            continue
        read = _SPACES.sub(" ", plain(part.raw))
        text += read.lstrip(" ") if not text or text.endswith(" ") else read
    text = text.rstrip(" ")
    placed = (mark._replace(place=min(mark.place, len(text))) for mark in marks)
    return [Paragraph(raw, text, tuple(placed), tuple(code))]
