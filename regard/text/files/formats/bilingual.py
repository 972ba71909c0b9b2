"""Translations that other tools keep: translation memories (TMX) and XLIFF 1.2 and 2.

A row is an object of texts by language code. A column may be named less exactly than the file does: `en` is
`en-US` where there is no `en`, and `EN_us` is `en-US`. A row without a language has an empty text there.

Inline elements are dropped: what they mark stays, what is code of the original document goes. Of XLIFF, units
whose translation is final are read: one with the state `translated`, `reviewed`, `signed-off` or `final`, or,
where the file has no state, one that is not empty and not marked `approved="no"`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from regard.errors import CorpusError
from regard.text.files.formats.format import Format, Reading, Records
from regard.text.files.formats.xml import Events, parse_xml
from regard.text.files.lines import LONGEST_LINE, MEGABYTE, NOT_FINAL
from regard.text.languages import known_code

_AT_ONCE = 1024
_LANGUAGE = "xml:lang"
_FINAL = {"translated", "reviewed", "signed-off", "final"}
_CODE = {"bpt", "ept", "it", "ph", "ut", "sc", "ec", "x", "bx", "ex"}
"""Inline elements whose content is code of the original document, not text."""


class Unit(dict[str, str]):
    """Texts by language code; `unit["en"]` is the text in `en-US` if there is no nearer one."""

    def __missing__(self, code: str) -> str:
        wanted = standard_code(code)
        near = [text for own, text in self.items() if own.partition("-")[0] == wanted]
        return self.get(wanted) or (near[0] if near else "")


def standard_code(code: str) -> str:
    """A language code in its usual spelling: `en-US` for `EN_us`."""
    return known_code(code) or code.replace("_", "-")


class _Collector(Events):
    """Collects units while a document is parsed."""

    unit_element: str
    """The element that holds a translation."""

    def __init__(self, root: str) -> None:
        self.root, self.path = root, list[str]()
        self.units: deque[tuple[int, Unit, str | None]] = deque()
        self.unit, self.line, self.why = Unit(), 0, ""
        self.text_of: str | None = None
        """The language whose text is read; None outside of texts."""
        self.depth = 0
        """The number of elements that the text is in."""
        self.hidden = 0
        """The depth at which an element with code of the document began; 0 outside of one."""
        self.pieces: list[str] = []
        self.right_root = False

    def start(self, name: str, attributes: dict[str, str], line: int) -> None:
        """Note texts and units; other elements are only passed through."""
        if not self.path:
            self.right_root = name == self.root
        self.path.append(name)
        if self.text_of is not None:
            if not self.hidden and name in _CODE:
                self.hidden = len(self.path)
            if name == "cp":  # a character that XML cannot hold; of these, only blanks belong into a text
                self.pieces.append(" ")
        elif name == self.unit_element:
            self.unit, self.line, self.why = Unit(), line, ""
            self.begin_unit(attributes)
        else:
            self.text_of = self.begin_text(name, attributes)
            self.depth, self.hidden, self.pieces = len(self.path), 0, []

    def end(self, name: str) -> None:
        """Keep the text or the unit that ends."""
        if self.text_of is not None:
            if len(self.path) == self.hidden:
                self.hidden = 0
            elif len(self.path) == self.depth:
                self.unit.setdefault(self.text_of, "".join(self.pieces).strip())
                self.text_of = None
        elif name == self.unit_element:
            self.end_unit()
        self.path.pop()

    def text(self, text: str) -> None:
        """Collect text that is not code."""
        if self.text_of is not None and not self.hidden:
            self.pieces.append(text)

    def keep(self, why: str | None = None) -> None:
        """Keep the unit, or the reason why it cannot be used."""
        if any(len(text) >= LONGEST_LINE for text in self.unit.values()):
            self.unit, why = Unit(), MEGABYTE
        self.units.append((self.line, self.unit, why))

    def begin_unit(self, attributes: dict[str, str]) -> None:
        """A unit begins."""

    @abstractmethod
    def begin_text(self, name: str, attributes: dict[str, str]) -> str | None:
        """The language of the text that begins with this element; None for another element."""

    @abstractmethod
    def end_unit(self) -> None:
        """A unit ends."""


class _TmxCollector(_Collector):
    unit_element = "tu"

    def __init__(self) -> None:
        super().__init__("tmx")
        self.language = ""

    def begin_text(self, name: str, attributes: dict[str, str]) -> str | None:
        """A `seg` in a `tuv`, which says the language."""
        if name == "tuv":
            self.language = standard_code(attributes.get(_LANGUAGE) or attributes.get("lang") or "")
        return self.language or None if name == "seg" and self.path[-2:-1] == ["tuv"] else None

    def end_unit(self) -> None:
        """Every unit is kept."""
        self.keep()


class _XliffCollector(_Collector):
    def __init__(self) -> None:
        super().__init__("xliff")
        self.languages = {"source": "source", "target": "target"}
        self.unit_element = "trans-unit"
        self.approved = self.state = ""

    def start(self, name: str, attributes: dict[str, str], line: int) -> None:
        """Languages are attributes of the root (2.x) or of a file (1.2)."""
        if name == "xliff" and attributes.get("version", "").startswith("2"):
            self.unit_element = "segment"
            self._name_languages(attributes.get("srcLang"), attributes.get("trgLang"))
        if name == "file" and self.unit_element == "trans-unit":
            self._name_languages(attributes.get("source-language"), attributes.get("target-language"))
        super().start(name, attributes, line)

    def _name_languages(self, source: str | None, target: str | None) -> None:
        given = {"source": source, "target": target}
        self.languages = {side: standard_code(code) if code else side for side, code in given.items()}

    def begin_unit(self, attributes: dict[str, str]) -> None:
        """A `trans-unit` may be approved; a `segment` has a state."""
        self.approved, self.state = attributes.get("approved", ""), attributes.get("state", "")

    def begin_text(self, name: str, attributes: dict[str, str]) -> str | None:
        """A source or a target of a unit itself, not of a proposal in it."""
        if self.path[-2:-1] != [self.unit_element] or name not in self.languages:
            return None
        if name == "target":
            self.state = attributes.get("state", self.state)
        return self.languages[name]

    def end_unit(self) -> None:
        """A unit is kept, or counted as not final."""
        final = self.state in _FINAL or (not self.state and self.approved != "no")
        self.keep(None if final and self.unit.get(self.languages["target"]) else NOT_FINAL)


class _Bilingual(Format):
    by_language = True
    collector: type[_TmxCollector] | type[_XliffCollector]

    def read(self, path: Path | str, reading: Reading, wanted: Sequence[str] = ()) -> Iterator[Records]:  # noqa: ARG002
        """The units, with the lines where they begin."""
        units = self._units(path, reading.name)
        while some := list(islice(units, _AT_ONCE)):
            unusable = {i: why for i, (_, _, why) in enumerate(some) if why is not None}
            yield Records([unit for _, unit, _ in some], [line for line, _, _ in some], unusable)

    def _units(self, path: Path | str, name: str) -> Iterator[tuple[int, Unit, str | None]]:
        collector = self.collector()
        for _ in parse_xml(path, name, collector):
            while collector.units:
                yield collector.units.popleft()
        if not collector.right_root:
            raise CorpusError(f"{name}:1: is XML, but not {self.kind.upper()}", code="not_xml")


class Tmx(_Bilingual):
    """A translation memory."""

    kind, suffixes, collector = "tmx", (".tmx",), _TmxCollector


class Xliff(_Bilingual):
    """Texts that are being translated, with their translations."""

    kind, suffixes, collector = "xliff", (".xliff", ".xlf"), _XliffCollector
