"""A text with tags as a translator reads it, and what is undone afterwards.

Tags around a whole text stay around its translation. Code and what else stands for a word is replaced by a
placeholder, which translations copy (`document/verbatim.py`). Where a tag ends a sentence, a separator stands
that layouts keep.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from regard.text.marked import InlineTag, Marked
from regard.text.normalisation import composed

_SEPARATORS = "\x1e\x1d\x1c"
_LETTERS = "cxzq"


class PreparedText(NamedTuple):
    """A text with tags as a translator reads it."""

    body: Marked
    """With placeholders, and only with the tags that have to be placed."""
    before: tuple[InlineTag, ...] = ()
    after: tuple[InlineTag, ...] = ()
    stand_ins: tuple[tuple[str, InlineTag], ...] = ()
    """What stands for words and for ends of sentences in the text, in order."""

    def restored(self, text: str, tags: Sequence[InlineTag]) -> Marked:
        """A translation with all tags of the source; lost words are appended.

        Args:
            text: the translation of the body.
            tags: the tags of the body in the translation.
        """
        places: list[tuple[int, int, InlineTag]] = []
        found: dict[str, int] = {}
        for name, tag in self.stand_ins:
            start = text.find(name, found.get(name, 0))
            if start < 0:
                places.append((len(text), len(text), tag))
                continue
            found[name] = start + len(name)
            places.append((start, start + len(name), tag))
        places.sort(key=lambda place: place[:2])
        inner = iter([*tags, InlineTag(len(text) + 1, "")])
        pieces, merged, end, removed, following = [], [*self.before], 0, 0, next(inner)
        for start, stop, word in places:
            pieces.append(text[end:start])
            while following.place <= start:
                merged.append(following._replace(place=max(end, following.place) - removed))
                following = next(inner)
            merged.append(word._replace(place=start - removed))
            removed, end = removed + stop - start, stop
        rest = [following, *inner][:-1]
        merged += [tag._replace(place=max(end, tag.place) - removed) for tag in rest]
        text = "".join([*pieces, text[end:]])
        merged += [tag._replace(place=len(text)) for tag in self.after]
        return Marked(text, tuple(merged))

    def lost(self, text: str) -> list[str]:
        """The code and placeholders of the source that a translation of the body lacks."""
        return [tag.raw for name, tag in self.stand_ins if not tag.is_break and name not in text]


def prepared(marked: Marked) -> PreparedText:
    """A text as a translator reads it."""
    separator = next((each for each in _SEPARATORS if each not in marked.text), " ")
    letter = next((each for each in _LETTERS if f"{{{each}" not in marked.text), _LETTERS[0])
    text, place = "", 0
    tags: list[InlineTag] = []
    stand_ins: list[tuple[str, InlineTag]] = []
    for tag in marked.tags:
        text += composed(marked.text[place : tag.place])
        place = tag.place
        if tag.is_word or tag.is_break:
            name = separator if tag.is_break else f"{{{letter}{len(stand_ins)}}}"
            stand_ins.append((name, tag))
            text += name
        else:
            tags.append(tag._replace(place=len(text)))
    text += composed(marked.text[place:])
    before, inner, after = _peeled(text, tags)
    return PreparedText(Marked(text, tuple(inner)), tuple(before), tuple(after), tuple(stand_ins))


def _peeled(text: str, tags: list[InlineTag]) -> tuple[list[InlineTag], list[InlineTag], list[InlineTag]]:
    """The tags before a text, in it, and after it; elements around all of it are outside."""
    first, last, other = 0, len(tags) - 1, _partners(tags)
    while first <= last:
        if tags[min(last, max(first, other[first]))].place == 0:  # an element without words, at the beginning
            first = max(first, other[first]) + 1
        elif tags[max(first, min(last, other[last]))].place == len(text):
            last = min(last, other[last]) - 1
        elif other[first] == last and tags[first].place == 0 and tags[last].place == len(text):
            first, last = first + 1, last - 1
        else:
            break
    return tags[:first], tags[first : last + 1], tags[last + 1 :]


def _partners(tags: Sequence[InlineTag]) -> list[int]:
    """For each tag the index of the other end of its element; its own index if there is none."""
    partners = [*range(len(tags))]
    opened: defaultdict[str, list[int]] = defaultdict(list)
    for i, tag in enumerate(tags):
        if tag.opens:
            opened[tag.opens].append(i)
        elif tag.closes and opened[tag.closes]:
            partners[i] = opened[tag.closes].pop()
            partners[partners[i]] = i
    return partners
