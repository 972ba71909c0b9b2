"""Translates pages of HTML: paragraph by paragraph, with inline tags put back around the right words.

A tag is put back once. The words of an element are the consecutive output words that mostly come from its
text, by word alignment. An element without words, such as a picture, stands after the word that precedes it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from regard.engine.results import Result, WordLink
from regard.serve.html.paragraphs import InlineTag, Paragraph, escaped, paragraphs
from regard.serve.models import ModelRegistry
from regard.serve.translation import TextsToTranslate, Translated, choose_model, translate
from regard.serve.work.jobs import RequestJob


def translate_pages(models: ModelRegistry, job: RequestJob, request: TextsToTranslate) -> list[Translated]:
    """Translate pages; the language is detected for a whole page.

    Raises:
        ApiError: a language cannot be detected, or there is no model for it.
        RegardError: an option cannot be satisfied.
    """
    return [_page(models, job, replace(request, texts=[page])) for page in request.texts]


def _page(models: ModelRegistry, job: RequestJob, request: TextsToTranslate) -> Translated:
    (page,) = request.texts
    split = paragraphs(page)
    texts = [each.text for each in split if each.text]
    choice = choose_model(models, replace(request, texts=["\n".join(texts)]), 0)
    if choice.model is None or not texts:
        return Translated(Result(text=page, unexpected_language=choice.unexpected), choice)
    # Word alignment is needed only to put tags back.
    options = {**request.options, "alignment": any(each.tags for each in split)}
    paragraphs_of_page = replace(
        request,
        texts=texts,
        source=choice.source,
        is_detected=request.given_source is None,
        options=options,
    )
    results = translate(models, job, paragraphs_of_page)
    ranked = []
    for rank in range(request.options.get("n_best", 1)):
        outputs = iter(_of_rank(each.result, rank) for each in results)
        ranked.append("".join(_html(each, next(outputs)) if each.text else each.raw for each in split))
    unexpected = next(filter(None, (each.result.unexpected_language for each in results)), "")
    best, *others = (Result(text=text, unexpected_language=unexpected) for text in ranked)
    return Translated(replace(best, alternatives=tuple(others)), choice)


def _html(paragraph: Paragraph, result: Result) -> str:
    before, after = paragraph.outside
    html = with_tags(result.text, result.alignment, paragraph.tags, len(paragraph.text))
    return before + paragraph.with_code(html) + after


def _of_rank(result: Result, rank: int) -> Result:
    ranked = [result, *result.alternatives]
    return ranked[min(rank, len(ranked) - 1)]


# --- tags -------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class _Node:
    """An element, or a single tag."""

    opening: str
    start: int
    closing: str = ""
    end: int = -1
    """End of its text, in characters of the source."""
    children: list[_Node] = field(default_factory=list)
    words: range = range(0)
    """Its words in the output."""


def with_tags(text: str, links: Sequence[WordLink], tags: Sequence[InlineTag], length: int) -> str:
    """A translation as HTML with its inline tags.

    Args:
        text: the translation, not escaped.
        links: its words in order, with their sources.
        tags: the inline tags of the source.
        length: number of characters of the source.
    """
    if not tags:
        return escaped(text)
    links = _joined(text, links)
    root = _tree(tags, length)
    root.words = range(len(links))
    _place(root, links)
    return _Writer(text, links).written(root)


def _joined(text: str, links: Sequence[WordLink]) -> list[WordLink]:
    """Links with the words of a placeholder joined, so that no tag splits it."""
    names = [match.span() for match in re.finditer(r"\{\w+\}", text)]
    found: list[WordLink] = []
    for link in links:
        start = next((start for start, end in names if start < link.target_end <= end), len(text))
        if found and found[-1].target_start >= start:
            found[-1] = replace(found[-1], target_end=link.target_end)
        else:
            found.append(link)
    return found


def _tree(tags: Sequence[InlineTag], length: int) -> _Node:
    """The tree of elements. A tag without its counterpart has no content."""
    root = _Node("", 0, end=length)
    opened = [(root, "")]
    for tag in tags:
        names = [name for _, name in opened]
        if tag.closes in names:
            while opened[-1][1] != tag.closes:
                _dissolve(opened.pop()[0], opened[-1][0])
            node, _ = opened.pop()
            node.closing, node.end = tag.raw, tag.place
            continue
        node = _Node(tag.raw, tag.place, end=tag.place)
        opened[-1][0].children.append(node)
        if tag.opens:
            opened.append((node, tag.opens))
    while len(opened) > 1:
        _dissolve(opened.pop()[0], opened[-1][0])
    return root


def _dissolve(node: _Node, parent: _Node) -> None:
    """Make an element that is never closed a single tag; its children go to its parent."""
    parent.children += node.children
    node.children, node.end = [], node.start


def _place(node: _Node, links: Sequence[WordLink]) -> None:
    """Assign words to every element inside this one."""
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
    """The consecutive words that come from an element's text more than from elsewhere."""
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
    """The place of an element without words: after the word that comes from the text before it."""
    before = [i for i in parent.words if links[i].source_end <= node.start]
    nearest = max(before, key=lambda i: (links[i].source_end, i), default=parent.words.start - 1)
    for other in parent.children:
        if nearest in other.words[:-1]:  # not inside another element
            nearest = other.words[-1]
    return range(nearest + 1, nearest + 1)


class _Writer:
    """Writes every word, and what is between words, once."""

    def __init__(self, text: str, links: Sequence[WordLink]) -> None:
        self._text, self._links, self._place = text, links, 0

    def written(self, root: _Node) -> str:
        """The whole text with its elements."""
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
