"""HTML in parts: the text between tags, which is translated, and all else, which stays as it is."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import NamedTuple

_OPENS = re.compile(r"<(?=[A-Za-z/!?])")
_NAME = re.compile(r"</?([A-Za-z][A-Za-z0-9]*)")
_STAYS = ("script", "style", "code", "textarea")
"""What stands between these tags is not a text in the page's language."""


class Part(NamedTuple):
    """A tag, a comment, what stays with the tags around it, or the text between two."""

    raw: str
    is_tag: bool

    @property
    def is_text(self) -> bool:
        """Whether there is something to translate."""
        return not self.is_tag and bool(self.raw.strip())


def parts(page: str) -> list[Part]:
    """A page in parts; joined, they are the page."""
    found: list[Part] = []
    staying, inside = "", None
    for raw, is_tag in _split(page):
        name = _NAME.match(raw) if is_tag else None
        if inside is None and name and name[1].lower() in _STAYS and not raw.startswith("</"):
            inside = name[1].lower()
        if inside is None:
            found.append(Part(raw, is_tag))
            continue
        staying += raw
        if name and raw.startswith("</") and name[1].lower() == inside:
            found.append(Part(staying, is_tag=True))
            staying, inside = "", None
    return [*found, Part(staying, is_tag=True)] if staying else found


def plain(raw: str) -> str:
    """The text of a part, as one reads it."""
    return html.unescape(raw)


def escaped(text: str) -> str:
    """A text as it stands between tags."""
    return html.escape(text, quote=False)


def _split(page: str) -> Iterator[tuple[str, bool]]:
    """Tags and what lies between. Each character is looked at once, whatever is left open."""
    place = 0
    while opening := _OPENS.search(page, place):
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
    """Where a tag or a comment that begins here is over; None if it never is."""
    if page.startswith("<!--", start):
        return _after(page, "-->", start + 4)
    place = start + 1
    while (mark := re.compile(r"[\"'>]").search(page, place)) is not None:
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
