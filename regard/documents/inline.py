"""Inline markup of Markdown, with HTML in it, as it stands in one paragraph or in one line of plain text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, Literal, NamedTuple

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from regard.documents.html import INLINE, element_tags
from regard.text.marked import InlineTag, Marked

BLOCKS = frozenset(
    """
    address article aside blockquote body br button caption center dd details div dl dt fieldset figcaption
    figure footer form h1 h2 h3 h4 h5 h6 head header hr html legend li main nav ol option p section select
    summary table tbody td tfoot th thead title tr ul
    """.split()  # noqa: SIM905
)
"""HTML elements that end a sentence, in plain text; in a page, all others do."""
_NAME = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9]*)")
_MARKUP = re.compile(r"[*_~]\S|\]\(|</?[A-Za-z]")
"""What a line with markup contains."""

_LINE_END = re.compile(r"(?<! )(  +)?[ \t]*\n[ \t]*")
_TWO_STARS = re.compile(r"(?<!\*)\*\*(?!\*)")

Kind = Literal["text", "tag", "code", "html", "image", "link", "space", "break"]


class InlineItem(NamedTuple):
    """A piece of inline markup; what is between two of them is literal text."""

    start: int
    end: int
    kind: Kind
    text: str = ""
    """What an escape or an entity stands for; the alternative text of an image."""
    opens: str = ""
    closes: str = ""


def element_name(raw: str) -> str:
    """The name of the HTML element of a tag, in lower case; empty for a comment."""
    name = _NAME.match(raw)
    return name[2].lower() if name else ""


# --- the parser, with positions ---------------------------------------------------------------------------

_Rule = Callable[[StateInline, bool], bool]
_LONG_DELIMITER = {"strong_open": (-1, 1), "strong_close": (0, 2), "s_open": (0, 2), "s_close": (0, 2)}
"""Where the delimiter begins and ends, from the place of its token; others have one character."""


def with_positions(md: MarkdownIt) -> MarkdownIt:
    """The parser, whose inline tokens have their positions in `meta["span"]`."""
    rules, names = md.inline.ruler.getRules(""), md.inline.ruler.get_active_rules()
    for name, rule in zip(names, rules, strict=True):
        if name not in ("text", "newline"):
            md.inline.ruler.at(name, _positioned(name, rule))
    # It would join escapes with the text around them.
    md.inline.ruler2.disable("fragments_join", ignoreInvalid=True)
    return md


def _positioned(name: str, rule: _Rule) -> _Rule:
    def positioned(state: StateInline, silent: bool) -> bool:
        start, n = state.pos, len(state.tokens)
        label_end = -1
        if name == "link" and not silent and state.src[start] == "[":
            label_end = state.md.helpers.parseLinkLabel(state, start, True)
        if not rule(state, silent):
            return False
        if not silent:
            _mark(name, state.tokens[n:], start, state.pos, label_end)
        return True

    return positioned


def _mark(name: str, tokens: Sequence[Token], start: int, end: int, label_end: int) -> None:
    """Note the positions of the tokens of one piece of markup; text that was pending comes before them."""
    if name in ("emphasis", "strikethrough"):
        place = end
        for token in reversed(tokens):
            if place <= start:
                break
            place -= len(token.content)
            token.meta["span"] = (place, place + len(token.content))
    elif name == "link":
        opening = next(token for token in tokens if token.type == "link_open" and "span" not in token.meta)
        opening.meta["span"], tokens[-1].meta["span"] = (start, start + 1), (label_end, end)
    elif tokens:
        tokens[-1].meta["span"] = (start, end)


def inline_items(md: MarkdownIt, source: str, env: dict[str, Any] | None = None) -> list[InlineItem]:
    """The markup of a paragraph, in order, by a parser with positions."""
    tokens: list[Token] = []
    md.inline.parse(source, md, {} if env is None else env, tokens)
    tokens = [token for token in tokens if "span" in token.meta]
    found = [_item(token, source) for token in tokens]
    found += _left_over(tokens, source)
    for match in _LINE_END.finditer(source):
        found.append(InlineItem(match.start(), match.end(), "break" if match[1] else "space"))
    items: list[InlineItem] = []
    for item in sorted(filter(None, found)):
        if not items or item.start >= items[-1].end:  # a line break in a tag or in code is part of it
            items.append(item)
    return items


def _left_over(tokens: Sequence[Token], source: str) -> Iterator[InlineItem]:
    """Pairs of `**` that are no emphasis in CommonMark, because of Chinese punctuation: **注意：**请."""
    stars = [token.meta["span"][0] for token in tokens if token.type == "text" and token.content == "*"]
    runs = [start for start in stars if _TWO_STARS.match(source, start)]
    opening: int | None = None
    for start in runs:
        if opening is not None and "\n" in source[opening:start]:
            opening = None
        if opening is None:
            opening = start if source[start + 2 : start + 3].strip() else None
        elif source[start - 1].strip():
            yield InlineItem(opening, opening + 2, "tag", "", "strong**", "")
            yield InlineItem(start, start + 2, "tag", "", "", "strong**")
            opening = None


def _item(token: Token, source: str) -> InlineItem | None:
    start, end = token.meta["span"]
    kind = token.type
    if kind == "text":  # a delimiter that is none
        return None
    if kind == "hardbreak":
        return InlineItem(start, end, "break")
    if kind == "footnote_ref":
        return InlineItem(start, end, "tag")
    if kind == "text_special":
        return InlineItem(start, end, "text", token.content)
    if kind == "html_inline":
        return InlineItem(start, end, "html", "", *element_tags(source[start:end]))
    if kind == "image":
        return InlineItem(start, end, "image", token.content)
    if kind == "link_close" and token.info == "auto":
        return InlineItem(start, end, "link")
    name, _, side = kind.rpartition("_")
    if side in ("open", "close") and name:
        before, after = _LONG_DELIMITER.get(kind, (0, end - start))
        name += token.markup
        opens, closes = (name, "") if side == "open" else ("", name)
        return InlineItem(start + before, start + after, "tag", "", opens, closes)
    return InlineItem(start, end, "code")


# --- plain text -------------------------------------------------------------------------------------------


@cache
def _plain_parser() -> MarkdownIt:
    rules = ["emphasis", "strikethrough", "link", "image", "html_inline", "backticks"]
    md = MarkdownIt("zero", {"html": True}).enable(rules)
    return with_positions(md)


def marked_line(line: str) -> Marked:
    """A line of plain text with the markup that is surely meant as such; escapes and code stay in the text.

    Tags that are not closed, and elements that HTML does not have, are text.
    """
    if not _MARKUP.search(line):
        return Marked(line)
    items = [item for item in inline_items(_plain_parser(), line) if _is_markup(item, line)]
    paired = _paired(items)
    text, tags, place = "", [], 0
    for i, item in enumerate(items):
        if (item.opens or item.closes) and i not in paired and not _is_block(item, line):
            continue
        text += line[place : item.start]
        raw = line[item.start : item.end]
        opens, closes = (item.opens, item.closes) if i in paired else ("", "")
        tags.append(InlineTag(len(text), raw, opens, closes, is_break=_is_block(item, line)))
        place = item.end
    return Marked(text + line[place:], tuple(tags))


def _is_block(item: InlineItem, line: str) -> bool:
    return item.kind == "html" and element_name(line[item.start : item.end]) in BLOCKS


def _is_markup(item: InlineItem, line: str) -> bool:
    if item.kind == "html":
        return element_name(line[item.start : item.end]) in INLINE | BLOCKS
    if item.kind == "tag" and not item.opens.startswith("link") and not item.closes.startswith("link"):
        # 2*3*4 and a**b**c are no emphasis.
        outside = line[item.start - 1 : item.start] if item.opens else line[item.end : item.end + 1]
        return not (outside.isascii() and outside.isalnum())
    return item.kind in ("tag", "image")


def _paired(items: Sequence[InlineItem]) -> set[int]:
    """The indices of tags that open and close one element, properly nested."""
    paired: set[int] = set()
    opened: list[int] = []
    for i, item in enumerate(items):
        if item.opens:
            opened.append(i)
        elif item.closes:
            for k in range(len(opened) - 1, max(-1, len(opened) - 1 - _DEPTH), -1):
                if items[opened[k]].opens == item.closes:
                    paired |= {opened[k], i}
                    del opened[k:]
                    break
    return paired


_DEPTH = 32
"""Elements that may be left open inside of one that is closed."""


def literal(source: str, items: Sequence[InlineItem]) -> Iterator[tuple[str, InlineItem | None]]:
    """A paragraph in pieces: literal text, and the items between."""
    place = 0
    for item in items:
        if item.start > place:
            yield source[place : item.start], None
        yield source[item.start : item.end], item
        place = item.end
    if place < len(source):
        yield source[place:], None


# --- writing ----------------------------------------------------------------------------------------------


def fitted(marked: Marked) -> Marked:
    """A text with its emphasis so written that Markdown takes it for emphasis.

    Chinese and Japanese put no spaces around words: `**注意：**请` is no emphasis, because the delimiter is
    between punctuation and a letter, so that the punctuation goes outside of it; `_词_` in a sentence needs
    asterisks, and delimiters that touch need a space.
    """
    if not any(_is_delimiter(tag) for tag in marked.tags):
        return marked
    text, tags = marked.text, list(marked.tags)
    for start, end in _pairs(tags):
        tags[start], tags[end] = _flanked(text, tags, start, end)
    order = sorted(range(len(tags)), key=lambda i: tags[i].place)  # stable
    return _spaced(Marked(text, tuple(tags[i] for i in order)))


def _is_delimiter(tag: InlineTag) -> bool:
    return bool(tag.raw) and tag.raw[0] in "*_~" and tag.raw.count(tag.raw[0]) == len(tag.raw)


def _pairs(tags: Sequence[InlineTag]) -> Iterator[tuple[int, int]]:
    opened: list[int] = []
    for i, tag in enumerate(tags):
        if _is_delimiter(tag) and tag.opens:
            opened.append(i)
        elif _is_delimiter(tag) and opened and tags[opened[-1]].opens == tag.closes:
            yield opened.pop(), i


def _flanked(text: str, tags: Sequence[InlineTag], start: int, end: int) -> tuple[InlineTag, InlineTag]:
    """The two delimiters of an element with punctuation at its ends moved out, where it has to be."""
    first, last = tags[start], tags[end]
    a, b = first.place, last.place
    before = (
        tags[start - 1].raw[-1:] if start and tags[start - 1].place == a else text[a - 1 : a] if a else ""
    )
    after = tags[end + 1].raw[:1] if end + 1 < len(tags) and tags[end + 1].place == b else text[b : b + 1]
    # No tag is moved past another one.
    while a < min(b - 1, tags[start + 1].place) and _is_sign(text[a]) and before.isalnum():
        before, a = text[a], a + 1
    while b > max(a + 1, tags[end - 1].place) and _is_sign(text[b - 1]) and after.isalnum():
        after, b = text[b - 1], b - 1
    raws = first.raw, last.raw
    if first.raw[0] == "_" and (before.isalnum() or after.isalnum()):
        raws = "*" * len(first.raw), "*" * len(last.raw)
    return first._replace(place=a, raw=raws[0]), last._replace(place=b, raw=raws[1])


def _is_sign(letter: str) -> bool:
    return not letter.isalnum() and not letter.isspace()


def _spaced(marked: Marked) -> Marked:
    """A text with a space between a delimiter that closes and one that opens."""
    text, place = "", 0
    tags: list[InlineTag] = []
    for tag in marked.tags:
        text += marked.text[place : tag.place]
        place = tag.place
        last = tags[-1] if tags else None
        touch = last is not None and last.place == len(text) and last.closes and tag.opens
        if last is not None and touch and _is_delimiter(last) and _is_delimiter(tag):
            text += " "
        tags.append(tag._replace(place=len(text)))
    return Marked(text + marked.text[place:], tuple(tags))
