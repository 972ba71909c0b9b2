"""Markdown: paragraphs, headings, list items and cells, with their inline markup; all else byte for byte.

The parser gives the lines of each block and the markup in it. A paragraph that was translated is written on
one line; one that was not keeps its line breaks.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.dollarmath import dollarmath_plugin
from mdit_py_plugins.footnote import footnote_plugin
from mdit_py_plugins.front_matter import front_matter_plugin

from regard.documents.html import INLINE, WORDS
from regard.documents.inline import (
    InlineItem,
    element_name,
    fitted,
    inline_items,
    literal,
    with_positions,
)
from regard.documents.reading import DecodedText, decoded
from regard.text.marked import InlineTag, Marked

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")
_PREFIX = re.compile(r"\[[ xX]\][ \t]+|\[!\w+\][+-]?[ \t]*(?:\n[ \t]*|\Z)")
"""The box of a task; the kind of an alert."""
_SUFFIX = re.compile(r"[ \t]*\{[#.:][^{}]*\}[ \t]*\Z")
"""The attributes of a heading."""
_CJK = re.compile("[\u2e80-\u303f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef]")
_BLOCK_START = re.compile(
    r"#{1,6}(?=\s|\Z)|>|[-+*](?=\s|\Z)|(\d{1,9})([.)])(?=\s|\Z)|[=-]+\s*\Z|`{3}|~{3}|:::|\|"
)
"""What would begin another block."""
_SPECIAL = re.compile(r"[\\`*_\[\]<$~]|&(?=#?\w+;)|!(?=\[)")
_PLAIN = re.compile(r"[^\[\]()\\`*_<>&\n]+")
"""The alternative text of a picture without markup."""


@cache
def _parser() -> MarkdownIt:
    md = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    md.use(front_matter_plugin).use(dollarmath_plugin, double_inline=True).use(footnote_plugin, inline=False)
    # Inline markup is parsed here, paragraph by paragraph, and footnotes stay where they are.
    md.core.ruler.enableOnly(["normalize", "block"])
    return with_positions(md)


@dataclass(frozen=True, slots=True)
class _Place:
    """A segment in the source."""

    start: int
    end: int
    index: int
    begins_block: bool = False
    in_table: bool = False


class _Block(NamedTuple):
    """The content of a paragraph, and where each of its lines is in the source."""

    content: str
    lines: list[tuple[int, int]]
    """For each line its start in the content, and what to add to a position in it."""
    in_table: bool
    begins_block: bool

    def source(self, place: int) -> int:
        """The position in the source of a position in the content."""
        shift = next(shift for start, shift in reversed(self.lines) if start <= place)
        return place + shift


class MarkdownDocument:
    """A text in Markdown."""

    def __init__(self, source: DecodedText) -> None:
        self._source = source
        self.segments: list[Marked] = []
        self.notes: list[str] = []
        self._places: list[_Place] = []
        self._pictures: dict[str, int] = {}
        """The segments of the alternative texts of pictures."""
        self._env: dict[str, object] = {}
        lines = _LINE.findall(source.text)
        starts = [0, *accumulate(map(len, lines))]
        tokens = _parser().parse(source.text, self._env)
        n_lost = 0
        for block in _blocks(tokens, lines, starts):
            if block is None:
                n_lost += 1
            else:
                self._read(block)
        if n_lost:
            self.notes.append(f"{n_lost} paragraphs were not found in the source, and are not translated")

    def _items(self, content: str) -> list[InlineItem]:
        return inline_items(_parser(), content, self._env)

    # --- reading -------------------------------------------------------------------------------------------

    def _read(self, block: _Block) -> None:
        content = block.content
        start, end = 0, len(content)
        if prefix := _PREFIX.match(content):
            start = prefix.end()
        if suffix := _SUFFIX.search(content, start):
            end = suffix.start()
        begins, items = block.begins_block and not start, []
        for item in [*self._items(content), InlineItem(end, end, "break")]:
            if item.end <= start or item.start > end:
                continue
            if item.kind == "html" and _is_break(content[item.start : item.end]):
                item = item._replace(kind="break")
            if item.kind != "break":
                items.append(item)
                continue
            self._add(block, start, min(item.start, end), items, begins)
            begins, items, start = block.begins_block, [], item.end

    def _add(self, block: _Block, start: int, end: int, items: list[InlineItem], begins: bool) -> None:
        """Add a segment, unless there is nothing to translate in it."""
        raw = block.content[start:end]
        end -= len(raw) - len(raw.rstrip())
        start += len(raw) - len(raw.lstrip())
        if start >= end:
            return
        for item in items:
            picture = block.content[item.start : item.end]
            plain = (
                item.kind == "image" and _PLAIN.fullmatch(item.text) and picture.startswith(f"![{item.text}]")
            )
            if plain and any(map(str.isalpha, item.text)) and picture not in self._pictures:
                self._pictures[picture] = len(self.segments)
                self.segments.append(Marked(item.text))
        marked = _marked(block.content[start:end], [_moved(item, -start) for item in items])
        has_picture = any(item.kind == "image" for item in items)
        if has_picture or any(map(str.isalpha, marked.text)):
            places = block.source(start), block.source(end - 1) + 1
            self._places.append(_Place(*places, len(self.segments), begins, block.in_table))
            self.segments.append(marked)

    # --- writing -------------------------------------------------------------------------------------------

    def written(self, translations: Sequence[Marked], language: str = "") -> bytes:  # noqa: ARG002
        """The text with translations; see `Document.written`."""
        pieces, place = [], 0
        pictures = {raw: self._picture(raw, translations[i]) for raw, i in self._pictures.items()}
        for each in self._places:
            written = self._segment(each, translations[each.index], pictures)
            pieces += [self._source.text[place : each.start], written]
            place = each.end
        return self._source.encoded("".join([*pieces, self._source.text[place:]]))

    def _segment(self, place: _Place, translation: Marked, pictures: Mapping[str, str]) -> str:
        source = self.segments[place.index]
        if translation == source:
            text = self._source.text[place.start : place.end]
            for raw in {tag.raw for tag in source.tags} & pictures.keys():
                text = text.replace(raw, pictures[raw])
            return text
        fitting = fitted(translation)
        tags = tuple(tag._replace(raw=pictures.get(tag.raw, tag.raw)) for tag in fitting.tags)
        fitting = fitting._replace(tags=tags)
        text = fitting.written()
        if not self._reads_as(text, fitting):
            text = fitting.written(_escaped)
        if place.in_table:
            text = re.sub(r"(?<!\\)\|", r"\\|", text)
        return _as_paragraph(text) if place.begins_block else text

    def _picture(self, raw: str, translation: Marked) -> str:
        source = self.segments[self._pictures[raw]]
        alt = translation.text if translation == source else re.sub(r"[\[\]\\`*_<>]", "", translation.text)
        return f"![{alt}]{raw[len(source.text) + 3 :]}"

    def _reads_as(self, text: str, meant: Marked) -> bool:
        """Whether the parser finds a text and its tags in what was written."""
        found = _marked(text, self._items(text))
        return found.text == meant.text and [tag.raw for tag in found.tags] == [tag.raw for tag in meant.tags]


def read(content: bytes) -> MarkdownDocument:
    """Read a file in Markdown.

    Raises:
        CorpusError: its encoding is unknown.
    """
    return MarkdownDocument(decoded(content))


# --- blocks -----------------------------------------------------------------------------------------------


def _blocks(tokens: Sequence[Token], lines: Sequence[str], starts: Sequence[int]) -> Iterator[_Block | None]:
    """The contents of paragraphs, headings and cells; None for one that is not found in the source."""
    in_cell, in_heading, cursors = False, False, dict[int, int]()
    for token in tokens:
        if token.type in ("th_open", "td_open"):
            in_cell = True
        elif token.type in ("th_close", "td_close"):
            in_cell = False
        elif token.type in ("heading_open", "heading_close"):
            in_heading = token.type == "heading_open" and token.markup.startswith("#")
        if token.type != "inline" or not token.map or not token.content.strip():
            continue
        first = token.map[0]
        if in_cell:
            found = _cell(token.content, lines[first], cursors.get(first, 0))
            if found is None:
                yield None
                continue
            content, at = found
            cursors[first] = at + len(content)
            yield _Block(content, [(0, starts[first] + at)], in_table=True, begins_block=False)
        else:
            yield _paragraph(token.content, lines, starts, first, in_heading)


def _cell(content: str, line: str, cursor: int) -> tuple[str, int] | None:
    """The content of a cell as it is written, and its place in the line."""
    for written in (content, content.replace("|", "\\|")):
        at = line.find(written, cursor)
        if at >= 0 and ("|" not in content or written != content or "\\|" not in line[at:]):
            return written, at
    return None


def _paragraph(
    content: str, lines: Sequence[str], starts: Sequence[int], first: int, in_heading: bool
) -> _Block | None:
    places, size = [], 0
    for i, line in enumerate(content.split("\n")):
        if first + i >= len(lines):
            return None
        body = line.strip()
        at = lines[first + i].rfind(body)
        if at < 0:
            return None
        lead = line.index(body)
        places.append((size, starts[first + i] + at - lead - size))
        size += len(line) + 1
    return _Block(content, places, in_table=False, begins_block=not in_heading)


# --- inline -----------------------------------------------------------------------------------------------


def _moved(item: InlineItem, by: int) -> InlineItem:
    return item._replace(start=item.start + by, end=item.end + by)


def _is_break(raw: str) -> bool:
    """Whether an HTML tag ends a sentence."""
    name = element_name(raw)
    return bool(name) and name not in INLINE and name not in WORDS


def _marked(content: str, items: Sequence[InlineItem]) -> Marked:
    """A segment with its tags, and without escapes."""
    text = ""
    tags: list[InlineTag] = []
    for raw, item in literal(content, _with_words(items)):
        if item is None:
            text += raw
        elif item.kind == "text":
            text += item.text
        elif item.kind == "space":
            following = content[item.end : item.end + 1]
            if not tags or tags[-1].place < len(text.rstrip(" \t")):
                text = text.rstrip(" \t")
            text += "" if _CJK.match(text[-1:]) and _CJK.match(following) else " "
        else:
            is_word = item.kind in ("code", "link")
            tags.append(InlineTag(len(text), raw, item.opens, item.closes, is_word))
    return Marked(text, tuple(tags))


def _with_words(items: Sequence[InlineItem]) -> list[InlineItem]:
    """The items with HTML elements that are no language, such as <kbd>x</kbd>, as one each."""
    found: list[InlineItem] = []
    ends: defaultdict[str, list[int]] = defaultdict(list)
    for item in items:
        if item.kind == "html" and item.closes in WORDS:
            ends[item.closes].append(item.end)
    open_until = -1
    for item in items:
        if item.start < open_until:
            continue
        following = ends[item.opens] if item.kind == "html" and item.opens in WORDS else []
        k = bisect_right(following, item.end)
        if k < len(following):
            open_until = following[k]
            item = InlineItem(item.start, open_until, "code")
        found.append(item)
    return found


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\g<0>", text)


def _as_paragraph(text: str) -> str:
    """A text that begins no other block."""
    match = _BLOCK_START.match(text)
    if match is None:
        return text
    place = match.start(2) if match[2] else 0
    return f"{text[:place]}\\{text[place:]}"
