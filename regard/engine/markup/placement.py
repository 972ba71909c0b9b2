"""Inline tags in a translation: at the words that come from the words that they were at, by word alignment.

Every tag occurs once. The words of an element are the consecutive output words that mostly come from its
text. A tag without words, such as a picture, stands beside the word that was beside it.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from regard.engine.document.sentences import CJK
from regard.engine.document.verbatim import verbatim_spans
from regard.engine.results import WordLink
from regard.text.marked import InlineTag, Marked

_RUN = re.compile(rf"(?:(?!_)[^\W{CJK}])(?:[^\s\u3000-\u303f\uff00-\uffef{CJK}]*(?:(?!_)[^\W{CJK}]))?")
"""A word of a language that puts spaces between words, with the signs in it, but not at its ends."""
_WITHIN = re.compile(rf"(?:(?!_)[^\W{CJK}])+(?:[.,:/'’_-](?:(?!_)[^\W{CJK}])+)*")
"""What no tag splits: a word, a number, a time."""
_AT_NO_END = frozenset({"的", "地", "the", "a", "an"})
"""Words at which no element ends, as they belong to the word after them."""
_AT_NO_START = frozenset({"的", "地"})
_SCRIPTS = ("sub", "sup")
DEEPEST = 64
"""Most elements inside one another."""
MOST_CUT = 64
"""Most words of a text that are cut by tags; and how far a free word is searched for."""
_WEAK = 0.1
"""Least weight of a word from elsewhere among the words of an element."""


class Placed(NamedTuple):
    """The tags of a translation."""

    tags: tuple[InlineTag, ...]
    unaligned: tuple[str, ...] = ()
    """The texts of elements that no word of the translation is aligned with: their place is a guess."""


@dataclass(eq=False, slots=True)
class _Node:
    """An element, or a single tag."""

    opening: InlineTag
    start: int
    closing: InlineTag | None = None
    end: int = -1
    """End of its text, in characters of the source."""
    children: list[_Node] = field(default_factory=list)
    words: range = range(0)
    """Its words in the translation."""


def placed(source: Marked, text: str, links: Sequence[WordLink]) -> Placed:
    """The tags of a source in its translation.

    Args:
        source: the text that was translated.
        text: the translation.
        links: its words in order, with their sources.
    """
    if not source.tags:
        return Placed(())
    links = _cut(source, text, _joined(text, links))
    root = _tree(source)
    root.words = range(len(links))
    placement = _Placement(source.text, links)
    placement.place(root)
    return Placed(tuple(_Writer(source.text, links).tags(root)), tuple(placement.unaligned))


# --- words ------------------------------------------------------------------------------------------------


def _joined(text: str, links: Sequence[WordLink]) -> list[WordLink]:
    """Links with the parts of a word, a number, a placeholder or a URL joined, so that no tag splits it."""
    spans = sorted([*verbatim_spans(text), *(match.span() for match in _WITHIN.finditer(text))])
    found: list[WordLink] = []
    i, end, best = 0, -1, 0.0
    for link in links:
        if found and link.target_start < end:
            last, best = found[-1], max(best, link.strength)
            strongest = link if link.strength == best else last
            found[-1] = replace(strongest, target_start=last.target_start, target_end=link.target_end)
        else:
            found.append(link)
            best = link.strength
        while i < len(spans) and spans[i][0] < link.target_end:
            end = max(end, spans[i][1])
            i += 1
    return found


def _cut(source: Marked, text: str, links: list[WordLink]) -> list[WordLink]:
    """Links with a word cut where a tag cuts it in the source, if it was copied, such as H<sub>2</sub>O."""
    places = {tag.place for tag in source.tags}
    last = len(source.text)
    inside = {place for place in places if 0 < place < last and source.text[place - 1 : place + 1].isalnum()}
    if not inside:
        return links
    ordered, n_cut = sorted(places), 0
    for run in _RUN.finditer(source.text):
        cuts = ordered[bisect_right(ordered, run.start()) : bisect_left(ordered, run.end())]
        if inside.isdisjoint(cuts) or n_cut >= MOST_CUT:
            continue
        start, n_cut = -1, n_cut + 1
        for _ in range(source.text.count(run[0], 0, run.start()) + 1):
            start = text.find(run[0], start + 1)
        if start < 0:
            continue
        end, shift = start + len(run[0]), start - run.start()
        others = [link for link in links if link.target_end <= start or link.target_start >= end]
        if any(link.target_start < start or link.target_end > end for link in links if link not in others):
            continue  # part of a longer word
        parts = zip([run.start(), *cuts], [*cuts, run.end()], strict=True)
        copied = [_copied(source.text[a:b], a, a + shift) for a, b in parts]
        links = sorted([*others, *copied], key=lambda link: link.target_start)
    return links


def _copied(word: str, source: int, target: int) -> WordLink:
    n = len(word)
    return WordLink(
        source=word,
        target=word,
        source_start=source,
        source_end=source + n,
        target_start=target,
        target_end=target + n,
        strength=1.0,
    )


# --- elements ---------------------------------------------------------------------------------------------


def _tree(source: Marked) -> _Node:
    """The tree of elements. A tag without its counterpart, or nested too deep, has no content."""
    root = _Node(InlineTag(0, ""), 0, end=len(source.text))
    opened, names = [root], Counter[str]()
    for tag in source.tags:
        if tag.closes and names[tag.closes]:
            while opened[-1].opening.opens != tag.closes:
                names[opened[-1].opening.opens] -= 1
                _dissolve(opened.pop(), opened[-1])
            names[tag.closes] -= 1
            node = opened.pop()
            node.closing, node.end = tag, tag.place
            continue
        node = _Node(tag, tag.place, end=tag.place)
        opened[-1].children.append(node)
        if tag.opens and len(opened) < DEEPEST:
            opened.append(node)
            names[tag.opens] += 1
    while len(opened) > 1:
        _dissolve(opened.pop(), opened[-1])
    return root


def _dissolve(node: _Node, parent: _Node) -> None:
    """Make an element that is never closed a single tag; its children go to its parent."""
    parent.children += node.children
    node.children, node.end = [], node.start


class _Placement:
    """Assigns words of a translation to elements of its source; linear in both."""

    def __init__(self, source: str, links: Sequence[WordLink]) -> None:
        self._source, self._links = source, links
        self.unaligned: list[str] = []
        self._by_start = sorted(range(len(links)), key=lambda i: links[i].source_start)
        self._starts = [links[i].source_start for i in self._by_start]
        self._by_end = sorted(range(len(links)), key=lambda i: (links[i].source_end, i))
        self._ends = [links[i].source_end for i in self._by_end]
        self._longest = max((link.source_end - link.source_start for link in links), default=0)

    def place(self, node: _Node) -> None:
        """Assign words to every element inside this one."""
        free = set(node.words)
        for child in node.children:
            child.words = self._trimmed(child, self._run(child, node.words, free))
            free -= set(child.words)
        for child in node.children:
            content = self._source[child.start : child.end].strip()
            if not child.words and any(map(str.isalnum, content)):
                self.unaligned.append(content)
                if child.opening.opens not in _SCRIPTS:
                    child.words = self._guess(child, node, free)
                    free -= set(child.words)
        # A tag without words stands in no other element.
        last_of = {i: child.words[-1] for child in node.children for i in child.words[:-1]}
        for child in node.children:
            if not child.words:
                nearest = self._word_before(child, node)
                after = last_of.get(nearest, nearest) + 1
                child.words = range(after, after)
            self.place(child)
        node.children.sort(key=lambda child: (child.words.start, child.words.stop))

    def _run(self, node: _Node, within: range, free: set[int]) -> range:
        """The consecutive words that come from an element's text more than from elsewhere."""
        if node.start == node.end:
            return range(0)
        first = bisect_left(self._starts, node.start - self._longest)
        nearby = self._by_start[first : bisect_left(self._starts, node.end)]
        inside = {i for i in nearby if i in free and self._is_inside(self._links[i], node)}
        if not inside:
            return range(0)
        best, best_sum, start, so_far = range(0), 0.0, min(inside), 0.0
        for i in range(start, min(max(inside) + 1, within.stop)):
            strength = self._links[i].strength
            so_far += strength if i in inside else -max(strength, _WEAK)
            if so_far <= 0 or i not in free:
                start, so_far = i + 1, 0.0
            elif so_far > best_sum:
                best, best_sum = range(start, i + 1), so_far
        return best

    @staticmethod
    def _is_inside(link: WordLink, node: _Node) -> bool:
        """Whether a word comes from an element, at least by half."""
        overlap = min(link.source_end, node.end) - max(link.source_start, node.start)
        length = link.source_end - link.source_start
        needed = length if node.opening.opens in _SCRIPTS else length / 2
        return 0 < overlap >= needed

    def _trimmed(self, node: _Node, words: range) -> range:
        """The words of an element without punctuation and particles at its ends that its source has not."""
        content = self._source[node.start : node.end].strip()
        starts_with_sign, ends_with_sign = (not end.isalnum() for end in (content[:1], content[-1:]))
        while len(words) > 1 and _is_loose(self._links[words[-1]].target, ends_with_sign, _AT_NO_END):
            words = words[:-1]
        while len(words) > 1 and _is_loose(self._links[words[0]].target, starts_with_sign, _AT_NO_START):
            words = words[1:]
        return words

    def _guess(self, node: _Node, parent: _Node, free: set[int]) -> range:
        """A word for an element that none is aligned with: where it would be if the order were the same."""
        length = max(1, parent.end - parent.start)
        share = ((node.start + node.end) / 2 - parent.start) / length
        expected = parent.words.start + round(share * len(parent.words) - 0.5)
        for distance in range(MOST_CUT):
            for i in (expected - distance, expected + distance):
                if i in free and any(map(str.isalnum, self._links[i].target)):
                    return range(i, i + 1)
        return range(0)

    def _word_before(self, node: _Node, parent: _Node) -> int:
        """The word that comes from the text before a tag; the one before its element if there is none."""
        for k in range(bisect_right(self._ends, node.start) - 1, -1, -1):
            if self._ends[k] <= parent.start:
                break
            if self._by_end[k] in parent.words:
                return self._by_end[k]
        return parent.words.start - 1


def _is_loose(word: str, may_be_sign: bool, not_here: frozenset[str]) -> bool:
    return word in not_here or not (may_be_sign or any(map(str.isalnum, word)))


class _Writer:
    """Lists tags with their places in the translation, from left to right."""

    def __init__(self, source: str, links: Sequence[WordLink]) -> None:
        self._source, self._links, self._place = source, links, 0

    def tags(self, node: _Node) -> Iterator[InlineTag]:
        """The tags inside an element."""
        for child in node.children:
            after = child.words.start
            if after > 0:
                self._advance(self._links[after - 1].target_end)
            if child.words or (after in node.words and self._leans_right(child)):
                self._advance(self._links[after].target_start)
            yield child.opening._replace(place=self._place)
            yield from self.tags(child)
            if child.closing is not None:
                yield child.closing._replace(place=self._place)
        if node.words:
            self._advance(self._links[node.words[-1]].target_end)

    def _leans_right(self, node: _Node) -> bool:
        """Whether a tag without words follows a space, and precedes none."""
        before, after = self._source[: node.start][-1:], self._source[node.end : node.end + 1]
        return not before.strip() and bool(after.strip())

    def _advance(self, place: int) -> None:
        self._place = max(self._place, place)
