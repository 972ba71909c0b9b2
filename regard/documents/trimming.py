"""Builds a text with inline tags; spaces and tags at its edges stay outside of what is translated."""

from __future__ import annotations

import re
from typing import NamedTuple

from regard.text.marked import InlineTag, Marked

_SPACES = re.compile(r"[ \t\r\n]+")


def has_words(text: str) -> bool:
    """Whether a text has letters."""
    return any(map(str.isalpha, text))


class Trimmed(NamedTuple):
    """A text with inline tags, without the spaces and tags at its edges."""

    before: Marked
    """Spaces and tags before it."""
    inner: Marked
    after: Marked

    def around(self, translation: Marked) -> Marked:
        """A translation with the same edges."""
        return joined([self.before, translation, self.after])


class InlineText:
    """A text with tags that grows from left to right."""

    def __init__(self, *, keeps_spaces: bool = True) -> None:
        self._keeps_spaces = keeps_spaces
        self.text = ""
        self.tags: list[InlineTag] = []

    def add_text(self, text: str) -> None:
        """Append text; where spaces do not count, consecutive spaces and line breaks become one space."""
        if not self._keeps_spaces:
            text = _SPACES.sub(" ", text)
            if self.text.endswith(" ") and not (self.tags and self.tags[-1].is_word and self._at_end()):
                text = text.removeprefix(" ")
        self.text += text

    def _at_end(self) -> bool:
        return self.tags[-1].place == len(self.text)

    def add_tag(
        self, raw: str, *, opens: str = "", closes: str = "", is_word: bool = False, is_break: bool = False
    ) -> None:
        """Append a tag."""
        self.tags.append(InlineTag(len(self.text), raw, opens, closes, is_word, is_break))

    def add_marked(self, marked: Marked) -> None:
        """Append a text with its tags."""
        for tag in marked.tags:
            self.tags.append(tag._replace(place=tag.place + len(self.text)))
        self.text += marked.text

    @property
    def marked(self) -> Marked:
        """The text with its tags."""
        return Marked(self.text, tuple(self.tags))

    def trimmed(self) -> Trimmed:
        """The text with its edges apart."""
        return trimmed(self.marked)


def joined(pieces: list[Marked]) -> Marked:
    """Texts with tags, concatenated."""
    whole = InlineText()
    for piece in pieces:
        whole.add_marked(piece)
    return whole.marked


def part(marked: Marked, start: int, end: int, tags: slice) -> Marked:
    """The characters from `start` to `end`, and these tags."""
    inside = (tag._replace(place=min(max(tag.place, start), end) - start) for tag in marked.tags[tags])
    return Marked(marked.text[start:end], tuple(inside))


def trimmed(marked: Marked) -> Trimmed:
    """Separates spaces at the edges, and tags there that contain everything or nothing."""
    text, tags = marked
    start = len(text) - len(text.lstrip())
    end = max(start, len(text.rstrip()))
    first, last = 0, len(tags)
    partners = _partners(tags)
    while first < last:
        left, right = tags[first], tags[last - 1]
        # A tag before the first letter, or after the last one; a word there belongs to the sentence.
        at_start = left.place <= start and not left.is_word
        at_end = right.place >= end and not right.is_word
        if at_start and first not in partners:
            first += 1
        elif at_end and last - 1 not in partners:
            last -= 1
        elif at_start and at_end and partners.get(first) == last - 1:
            first, last = first + 1, last - 1
        elif at_start and first + 1 == partners.get(first) and tags[first + 1].place <= start:
            first += 2  # an element without words
        elif at_end and last - 2 == partners.get(last - 1) and tags[last - 2].place >= end:
            last -= 2
        else:
            break
    inner_tags = tags[first:last]
    # A word at the edge keeps its distance to the text.
    if any(tag.is_word and tag.place < start for tag in inner_tags):
        start = min(tag.place for tag in inner_tags if tag.is_word)
    if any(tag.is_word and tag.place > end for tag in inner_tags):
        end = max(tag.place for tag in inner_tags if tag.is_word)
    return Trimmed(
        part(marked, 0, start, slice(0, first)),
        part(marked, start, end, slice(first, last)),
        part(marked, end, len(text), slice(last, len(tags))),
    )


def _partners(tags: tuple[InlineTag, ...]) -> dict[int, int]:
    """The other end of each tag that has one."""
    found: dict[int, int] = {}
    opened: list[int] = []
    for i, tag in enumerate(tags):
        if tag.closes and any(tags[j].opens == tag.closes for j in opened):
            while tags[opened[-1]].opens != tag.closes:
                opened.pop()
            j = opened.pop()
            found[i], found[j] = j, i
        elif tag.opens:
            opened.append(i)
    return found
