"""HTML pages: paragraphs with inline tags, and the attributes that people read; the rest stays byte for byte.

The parser is Python's `html.parser`. It says where each tag begins, so that a page is cut into its pieces,
not written anew.
"""

from __future__ import annotations

import codecs
import html
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from html.parser import HTMLParser
from itertools import accumulate
from typing import Literal, NamedTuple

from regard.documents.reading import DecodedText, decoded
from regard.errors import CorpusError
from regard.text.marked import InlineTag, Marked

INLINE = frozenset(
    """
    a abbr acronym b bdi bdo big cite data del dfn em font i img ins label mark q ruby s small span strike
    strong sub sup time tt u wbr
    """.split()  # noqa: SIM905
)
"""Elements that may occur inside a sentence; any other ends it."""
VERBATIM = frozenset(
    {"script", "style", "textarea", "pre", "code", "kbd", "samp", "var", "math", "svg", "tt"}
)
"""Elements whose content is not text in the page's language."""
WORDS = frozenset({"code", "kbd", "samp", "var", "math", "svg", "tt"})
"""Those of them that stand for a word of a sentence."""
VOID = frozenset(
    "area base br col embed hr img input link meta param source track wbr".split()  # noqa: SIM905
)
"""Elements without content and without an end tag."""
_ATTRIBUTES = frozenset({"alt", "title", "placeholder", "aria-label", "aria-description"})
_META = frozenset(
    """
    description og:title og:description og:image:alt twitter:title twitter:description twitter:image:alt
    """.split()  # noqa: SIM905
)
_SPACES = " \t\r\n\f"
_RUNS_OF_SPACES = re.compile(r"[ \t\r\n\f]+")
"""What a browser shows as one space."""
_DECLARED = re.compile(
    rb"""<\?xml[^>]*?encoding\s*=\s*["']([\w.:-]+)|<meta[^>]*?charset\s*=\s*["']?\s*([\w.:-]+)""",
    re.IGNORECASE,
)
_ENCODINGS = {
    **dict.fromkeys(("gb2312", "gbk", "gb_2312-80", "x-gbk"), "gb18030"),
    **dict.fromkeys(("iso-8859-1", "latin1", "us-ascii", "ascii"), "cp1252"),
    **dict.fromkeys(("shift_jis", "sjis", "x-sjis"), "cp932"),
    "euc-kr": "cp949",
    "big5": "big5hkscs",
    "utf8": "utf-8",
    "unicode": "utf-8",
}
"""How browsers understand the names of encodings."""
_SNIFFED = 4096
"""Bytes at the beginning that may declare an encoding."""
_MARK_OF_NOTE = re.compile(r"[\s\d\[\]()*†‡§¶,–-]{1,12}")
"""The text of a superscript that is a footnote mark or an exponent, not a word."""
_NAME = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9]*)")
_END = "<!---->"
"""What is read after a page, so that its last text is complete."""
_ATTRIBUTE = re.compile(r"""([^\s"'>/=]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+)))?""")


class _Part(NamedTuple):
    """A tag, a comment or a text, as it is in the page."""

    kind: Literal["start", "end", "text", "other"]
    raw: str
    name: str = ""
    attributes: Sequence[tuple[str, str | None]] = ()
    text: str = ""


class _Positions(HTMLParser):
    """Notes where the parts of a page begin."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[int, _Part]] = []
        self._lines = [0, *accumulate(len(line) + 1 for line in page.split("\n"))]

    @property
    def place(self) -> int:
        """The position in the page, in characters."""
        line, column = self.getpos()
        return self._lines[line - 1] + column

    def _note(self, part: _Part) -> None:
        self.found.append((self.place, part))

    # The methods of the interface of the parser.
    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._note(_Part("start", "", tag, attrs))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._note(_Part("start", "", tag, attrs))

    def handle_endtag(self, tag: str) -> None:
        self._note(_Part("end", "", tag))

    def handle_data(self, data: str) -> None:
        self._note(_Part("text", "", text=data))

    def handle_comment(self, data: str) -> None:  # noqa: ARG002 - the interface of the parser
        self._note(_Part("other", ""))

    def handle_decl(self, decl: str) -> None:  # noqa: ARG002
        self._note(_Part("other", ""))

    handle_pi = unknown_decl = handle_comment


def parts(page: str) -> list[_Part]:
    """The parts of a page; their `raw`, concatenated, is the page."""
    parser = _Positions(page)
    with suppress(AssertionError):  # Python 3.11 to 3.13 raise it for <![x[
        # Without `close`, the parser stops at what is left open, instead of trying every position after it.
        parser.feed(page + _END)
    found = [each for each in parser.found if each[0] < len(page)]
    # What was not read, because it is left open, or text before an error.
    if not found or found[-1][0] < parser.place < len(page):
        found.append((parser.place, _Part("other", "")))
    if found[0][0] > 0:  # the parser passed over something
        found.insert(0, (0, _Part("other", "")))
    ends = [*(start for start, _ in found[1:]), len(page)]
    pieces = [part._replace(raw=page[start:end]) for (start, part), end in zip(found, ends, strict=True)]
    return [_checked(part) for part in pieces if part.raw]


def _checked(part: _Part) -> _Part:
    """A text whose raw form has a tag that the parser passed over, such as </>, is none."""
    passed_over = part.kind == "text" and "</" in part.raw and html.unescape(part.raw) != part.text
    return part._replace(kind="other") if passed_over else part


def element_tags(raw: str) -> tuple[str, str]:
    """The names of the elements that a tag opens and closes; at most one is not empty."""
    name = _NAME.match(raw)
    if name is None:
        return "", ""
    tag = name[2].lower()
    if name[1]:
        return "", tag
    return ("", "") if raw.endswith("/>") or tag in VOID else (tag, "")


# --- paragraphs -------------------------------------------------------------------------------------------


class _Attribute(NamedTuple):
    """An attribute that is translated, in a tag."""

    start: int
    end: int
    quote: str
    segment: int


@dataclass
class _Paragraph:
    """A paragraph of a page."""

    raw: list[str]
    """Its parts as they are."""
    before: str
    after: str
    index: int
    """Its segment."""


class HtmlDocument:
    """A page."""

    def __init__(self, source: DecodedText) -> None:
        self._source = source
        self.segments: list[Marked] = []
        self.notes: list[str] = []
        self._pieces: list[str | _Paragraph] = []
        self._attributes: dict[str, list[_Attribute]] = {}
        self._current: list[tuple[_Part, bool]] = []
        """The parts of a paragraph, and whether each stands for a word."""
        self._read(parts(source.text))

    def written(self, translations: Sequence[Marked], language: str = "") -> bytes:
        """The page with translations; see `Document.written`."""
        found = []
        for piece in self._pieces:
            if isinstance(piece, str):
                found.append(self._tag(_in_language(piece, language), translations, piece))
                continue
            translation = translations[piece.index]
            if translation == self.segments[piece.index]:
                found += [self._tag(raw, translations) for raw in piece.raw]
                continue
            tags = tuple(tag._replace(raw=self._tag(tag.raw, translations)) for tag in translation.tags)
            found += [piece.before, translation._replace(tags=tags).written(escaped), piece.after]
        return self._source.encoded("".join(found), "xmlcharrefreplace")

    # --- reading -------------------------------------------------------------------------------------------

    def _read(self, found: list[_Part]) -> None:
        i = 0
        while i < len(found):
            part = found[i]
            if (end := _end_of_kept(found, i)) is not None:
                raw = "".join(each.raw for each in found[i:end])
                self._add(_Part("other", raw), part.name in WORDS or part.name in INLINE, word=True)
            elif (end := _end_of_mark(found, i)) is not None:
                self._add(_Part("other", "".join(each.raw for each in found[i:end])), inside=True)
            else:
                end = i + 1
                inside = part.kind == "text" or part.name in INLINE or part.raw.startswith("<!--")
                if part.kind == "start":
                    self._read_attributes(part)
                self._add(part, inside)
            i = end
        self._finish()

    def _add(self, part: _Part, inside: bool, *, word: bool = False) -> None:
        if inside:
            self._current.append((part, word))
        else:
            self._finish()
            self._pieces.append(part.raw)

    def _finish(self) -> None:
        """Add the paragraph that ends here."""
        found, self._current = self._current, []
        text, tags, after_space = "", [], True
        for part, is_word in found:
            if part.kind == "text":
                read = _RUNS_OF_SPACES.sub(" ", part.text)
                text += read.lstrip(" ") if after_space else read
                after_space = text.endswith(" ") if read else after_space
                continue
            after_space = after_space and not is_word
            opens, closes = element_tags(part.raw) if part.kind in ("start", "end") else ("", "")
            tags.append(InlineTag(len(text), part.raw, opens, closes, is_word))
        raw = [part.raw for part, _ in found]
        text = text.rstrip(" ")
        if not any(map(str.isalpha, text)):
            self._pieces += raw
            return
        tags = [tag._replace(place=min(tag.place, len(text))) for tag in tags]
        before, after = _outside("".join(raw))
        self._pieces.append(_Paragraph(raw, before, after, len(self.segments)))
        self.segments.append(Marked(text, tuple(tags)))

    def _read_attributes(self, part: _Part) -> None:
        if part.raw in self._attributes:
            return
        values = dict(reversed(part.attributes))  # the first one counts
        wanted = {name for name in values if _is_read(part, name, values)}
        found = []
        for match in _ATTRIBUTE.finditer(part.raw, len(part.name) + 1) if wanted else ():
            name = match[1].lower()
            if name not in wanted or match.lastindex == 1:
                continue
            wanted.discard(name)
            text = _RUNS_OF_SPACES.sub(" ", values[name] or "").strip()
            assert match.lastindex is not None
            if html.unescape(match[match.lastindex]) == values[name] and any(map(str.isalpha, text)):
                quote = {2: '"', 3: "'"}.get(match.lastindex, "")
                found.append(_Attribute(*match.span(match.lastindex), quote, len(self.segments)))
                self.segments.append(Marked(text))
        if found:
            self._attributes[part.raw] = found

    # --- writing -------------------------------------------------------------------------------------------

    def _tag(self, raw: str, translations: Sequence[Marked], key: str = "") -> str:
        """A tag with its attributes translated."""
        for each in reversed(self._attributes.get(key or raw, ())):
            if translations[each.segment] != self.segments[each.segment]:
                value = html.escape(translations[each.segment].text, quote=False).replace('"', "&quot;")
                value = value.replace("'", "&#39;") if each.quote == "'" else value
                raw = raw[: each.start] + (value if each.quote else f'"{value}"') + raw[each.end :]
        return raw


def read(content: bytes) -> HtmlDocument:
    """Read a page.

    Raises:
        CorpusError: its encoding is unknown.
    """
    declared = _DECLARED.search(content[:_SNIFFED])
    name = (declared[1] or declared[2]).decode().lower() if declared else "utf-8"
    encoding = _ENCODINGS.get(name, name)
    try:
        if not encoding.startswith("utf-"):
            return HtmlDocument(decoded(content, codecs.lookup(encoding).name))
    except (LookupError, CorpusError):  # declared wrongly, as it happens
        pass
    return HtmlDocument(decoded(content))


def read_text(page: str) -> HtmlDocument:
    """Read a page that is a string already."""
    return HtmlDocument(DecodedText(page))


def escaped(text: str) -> str:
    """A text escaped for HTML."""
    return html.escape(text, quote=False)


# --- rules ------------------------------------------------------------------------------------------------


def _end_of_kept(found: Sequence[_Part], i: int) -> int | None:
    """The end of an element that begins at i and stays as it is; None if it does not."""
    part = found[i]
    if part.kind != "start" or part.raw.endswith("/>") or part.name in VOID:
        return None
    if part.name not in VERBATIM and not _is_kept(part.attributes):
        return None
    depth = 0
    for k in range(i, len(found)):
        if found[k].name != part.name:
            continue
        if k > i and found[k].kind == "start" and part.name in _ENDED_BY_NEXT:
            return k
        depth += {"start": not found[k].raw.endswith("/>"), "end": -1}.get(found[k].kind, 0)
        if depth == 0:
            return k + 1
    return len(found)


_ENDED_BY_NEXT = frozenset({"p", "li", "td", "th", "tr", "dd", "dt", "option"})
"""Elements that need no end tag."""


def _is_kept(attributes: Sequence[tuple[str, str | None]]) -> bool:
    values = dict(attributes)
    return (values.get("translate") or "").lower() == "no" or "notranslate" in (
        values.get("class") or ""
    ).split()


def _end_of_mark(found: Sequence[_Part], i: int) -> int | None:
    """The end of a superscript at i that is a footnote mark or an exponent; None if it is none."""
    if found[i].kind != "start" or found[i].name != "sup":
        return None
    for k in range(i + 1, min(i + 8, len(found))):
        if found[k].kind == "end" and found[k].name == "sup":
            text = "".join(part.text for part in found[i:k] if part.kind == "text")
            return k + 1 if _MARK_OF_NOTE.fullmatch(text) else None
    return None


def _is_read(part: _Part, name: str, values: Mapping[str, str | None]) -> bool:
    """Whether people read an attribute."""
    if part.name == "meta":
        return name == "content" and (values.get("name") or values.get("property") or "").lower() in _META
    if part.name == "input" and name == "value":
        return (values.get("type") or "").lower() in ("submit", "button", "reset")
    return name in _ATTRIBUTES or (name == "label" and part.name in ("optgroup", "option", "track"))


def _outside(raw: str) -> tuple[str, str]:
    """The spaces before and after a paragraph."""
    bare = raw.strip(_SPACES)
    start = raw.index(bare)
    return raw[:start], raw[start + len(bare) :]


def _in_language(raw: str, language: str) -> str:
    """The tag of a page with the language of its translation, if it has one."""
    if not language or raw[:5].lower() != "<html":
        return raw
    return re.sub(
        r"""(?i)(?<=\slang=)("[^"]*"|'[^']*'|[^\s>]+)|(?<=:lang=)("[^"]*"|'[^']*')""", f'"{language}"', raw
    )
