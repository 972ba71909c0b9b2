"""Tags put back into a translated paragraph: each once, around the words that come from what it held.

An element's words are those next to each other that come from its text, for the most part. One that holds no
word, such as a picture, or of whose words nothing was written, stands behind the word before it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from regard.engine.results import WordLink
from regard.serve.html.paragraphs import Mark
from regard.serve.html.text import escaped


@dataclass(eq=False)
class _Node:
    """An element, or a tag without a partner."""

    opening: str
    start: int
    closing: str = ""
    end: int = -1
    """Of its text, in characters of the source."""
    children: list[_Node] = field(default_factory=list)
    words: range = range(0)
    """Of the output."""


def marked(text: str, links: Sequence[WordLink], marks: Sequence[Mark], length: int) -> str:
    """A translation as HTML.

    Args:
        text: the translation, not escaped.
        links: its words, in their order, and where each comes from.
        marks: what stood inside of the source.
        length: characters of the source.
    """
    if not marks:
        return escaped(text)
    links = _joined(text, links)
    root = _tree(marks, length)
    root.words = range(len(links))
    _place(root, links)
    return _Writer(text, links).written(root)


def _joined(text: str, links: Sequence[WordLink]) -> list[WordLink]:
    """The words of a name in braces as one, so that no tag parts them."""
    names = [match.span() for match in re.finditer(r"\{\w+\}", text)]
    found: list[WordLink] = []
    for link in links:
        start = next((start for start, end in names if start < link.target_end <= end), len(text))
        if found and found[-1].target_start >= start:
            found[-1] = replace(found[-1], target_end=link.target_end)
        else:
            found.append(link)
    return found


def _tree(marks: Sequence[Mark], length: int) -> _Node:
    """Elements inside of elements. What is never closed, or never opened, holds nothing."""
    root = _Node("", 0, end=length)
    opened = [(root, "")]
    for mark in marks:
        names = [name for _, name in opened]
        if mark.closes in names:
            while opened[-1][1] != mark.closes:
                _dissolve(opened.pop()[0], opened[-1][0])
            node, _ = opened.pop()
            node.closing, node.end = mark.raw, mark.place
            continue
        node = _Node(mark.raw, mark.place, end=mark.place)
        opened[-1][0].children.append(node)
        if mark.opens:
            opened.append((node, mark.opens))
    while len(opened) > 1:
        _dissolve(opened.pop()[0], opened[-1][0])
    return root


def _dissolve(node: _Node, parent: _Node) -> None:
    """An element that is never closed: a tag alone, and its children are its parent's."""
    parent.children += node.children
    node.children, node.end = [], node.start


def _place(node: _Node, links: Sequence[WordLink]) -> None:
    """Give every element inside of this one its words."""
    free = set(node.words)
    for child in node.children:
        child.words = _run(child, node.words, free, links)
        free -= set(child.words)
    for child in node.children:
        if not child.words:
            child.words = _gap(child, node, links)
        _place(child, links)
    node.children.sort(key=lambda child: child.words.start)


def _run(node: _Node, within: range, free: set[int], links: Sequence[WordLink]) -> range:
    """The words next to each other that come from an element's text more than from elsewhere."""
    best, best_sum, start, so_far = range(0), 0.0, within.start, 0.0
    for i in within:
        link = links[i]
        inside = node.start <= link.source_start < node.end
        so_far += link.strength if inside else -max(link.strength, 0.1)
        if so_far <= 0 or i not in free:
            start, so_far = i + 1, 0.0
        elif so_far > best_sum:
            best, best_sum = range(start, i + 1), so_far
    return best


def _gap(node: _Node, parent: _Node, links: Sequence[WordLink]) -> range:
    """Where an element without words stands: behind the word that comes from what was before it."""
    before = [i for i in parent.words if links[i].source_end <= node.start]
    nearest = max(before, key=lambda i: (links[i].source_end, i), default=parent.words.start - 1)
    for other in parent.children:
        if nearest in other.words[:-1]:  # not into the middle of another element
            nearest = other.words[-1]
    return range(nearest + 1, nearest + 1)


class _Writer:
    """Writes words with what stands between them, once each."""

    def __init__(self, text: str, links: Sequence[WordLink]) -> None:
        self._text, self._links, self._place = text, links, 0

    def written(self, root: _Node) -> str:
        """The whole."""
        return self._inside(root) + self._up_to(len(self._text))

    def _inside(self, node: _Node) -> str:
        html = ""
        for child in node.children:
            if child.words.start > 0:
                html += self._up_to(self._links[child.words.start - 1].target_end)
            if child.words:
                html += self._up_to(self._links[child.words.start].target_start)
            html += child.opening + self._inside(child) + child.closing
        return html + (self._up_to(self._links[node.words[-1]].target_end) if node.words else "")

    def _up_to(self, place: int) -> str:
        some = self._text[self._place : place]
        self._place = max(self._place, place)
        return escaped(some)
