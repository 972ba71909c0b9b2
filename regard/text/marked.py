"""Texts with inline markup: the words that are translated, and the tags between them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class InlineTag(NamedTuple):
    """A tag inside a sentence: one end of an element, or something without words, such as a picture."""

    place: int
    """Its position in the text, in characters."""
    raw: str
    """As it is written: `<b>`, `**`, `](https://a.org)`."""
    opens: str = ""
    """Name of the element that it opens; empty if it opens none."""
    closes: str = ""
    """Name of the element that it closes."""
    is_word: bool = False
    """Whether it stands for a word of the sentence, such as code, a formula or a placeholder."""
    is_break: bool = False
    """Whether a sentence ends here, as at a line break or at the tag of a paragraph."""


class Marked(NamedTuple):
    """A text with its inline tags, in order."""

    text: str
    """Without markup and escapes: what the model reads."""
    tags: tuple[InlineTag, ...] = ()

    def written(self, escape: Callable[[str], str] = str) -> str:
        """The text with its tags; `escape` is applied to what is between them."""
        pieces, place = [], 0
        for tag in self.tags:
            pieces += [escape(self.text[place : tag.place]), tag.raw]
            place = tag.place
        return "".join([*pieces, escape(self.text[place:])])
