"""XLIFF 1.x and 2.x: sources without a translation are translated, and inline elements are tags.

A target that a person wrote stays, whatever its state. One is made where there is none, where it is empty,
where its state is `new` or `needs-translation` (1.x) or `initial` (2.x), and where it repeats the source. A
machine translation has the state `needs-review-translation` with the qualifier `mt-suggestion` in 1.x, and
`translated`, which is not yet `reviewed`, in 2.x.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from regard.documents.icu import has_branches
from regard.documents.strings import add_with_placeholders, is_complete, with_placeholders
from regard.documents.trimming import InlineText, Trimmed, has_words, trimmed
from regard.documents.xml.tree import Edit, Element, Text, XmlFile, escaped
from regard.errors import CorpusError
from regard.text.marked import Marked

_UNTRANSLATED = ("new", "needs-translation", "initial")
_STATES = {"state": "needs-review-translation", "state-qualifier": "mt-suggestion"}
_SPACE = "{http://www.w3.org/XML/1998/namespace}space"


@dataclass(frozen=True, slots=True)
class _Sentences:
    """A source, or one of the sentences that a source was split into."""

    element: Element
    edges: Trimmed


@dataclass(frozen=True, slots=True)
class _Unit:
    """A source with its target."""

    parent: Element
    """`trans-unit`, or `segment` in 2.x."""
    origin: Element
    """The source, or `seg-source`."""
    target: Element | None
    parts: tuple[_Sentences, ...]


class Xliff:
    """A file of translation units."""

    def __init__(self, file: XmlFile) -> None:
        self._file = file
        self._is_2 = file.root.attributes.get("version", "").startswith("2")
        self._branched = self._kept = 0
        self._units = list(self._found(file.root, translate=True, keeps_spaces=False, data={}))
        self.segments: Sequence[Marked] = [part.edges.inner for unit in self._units for part in unit.parts]
        self.notes: list[str] = self._first_notes()

    def written(self, translations: Sequence[Marked], language: str = "") -> bytes:
        """The file with targets."""
        self.notes = self._first_notes()
        remaining = iter(translations)
        edits = self._languages(language) if language else []
        lost = 0
        for unit in self._units:
            pairs = [(part, next(remaining)) for part in unit.parts]
            if all(is_complete(part.edges.inner, translation) for part, translation in pairs):
                edits += self._target(unit, self._content(unit, pairs))
            else:
                lost += 1
        if lost:
            self.notes.append(f"{lost} units stay untranslated: an inline element or a placeholder was lost")
        return self._file.edited(edits)

    def _first_notes(self) -> list[str]:
        what = "units with branches (plural, select) are not translated"
        return [f"{self._branched} {what}"] if self._branched else []

    # --- reading --------------------------------------------------------------------------------------------

    def _found(
        self, element: Element, *, translate: bool, keeps_spaces: bool, data: Mapping[str, str]
    ) -> Iterator[_Unit]:
        """The units in an element that need a target; `translate` and spaces are inherited."""
        translate = element.attributes.get("translate", "yes" if translate else "no") == "yes"
        space = element.attributes.get(_SPACE)
        keeps_spaces = keeps_spaces if space is None else space == "preserve"
        if originals := element.child("originalData"):
            data = {each.attributes.get("id", ""): each.text for each in originals.elements}
        is_unit = element.name == ("segment" if self._is_2 else "trans-unit")
        if is_unit and translate:
            yield from self._unit(element, keeps_spaces, data)
        elif not is_unit:
            for child in element.elements:
                # Elements of other namespaces, such as proposals of a memory, have sources of their own.
                if child.namespace == self._file.root.namespace:
                    yield from self._found(child, translate=translate, keeps_spaces=keeps_spaces, data=data)

    def _unit(self, parent: Element, keeps_spaces: bool, data: Mapping[str, str]) -> Iterator[_Unit]:
        source, target = parent.child("source"), parent.child("target")
        if source is None:
            line = self._file.line(parent.start)
            raise CorpusError(f"line {line}: <{parent.name}> has no <source>", code="damaged_file")
        if not self._is_untranslated(parent, source, target):
            self._kept += 1
            return
        if has_branches(source.text):
            self._branched += 1
            return
        split = parent.child("seg-source")
        sentences = [each for each in split.walk() if each.attributes.get("mtype") == "seg"] if split else []
        keeps_spaces = source.attributes.get(_SPACE, "preserve" if keeps_spaces else "") == "preserve"
        parts = []
        for element in sentences or [source]:
            found = InlineText(keeps_spaces=keeps_spaces)
            self._add(found, element, data)
            edges = trimmed(found.marked)
            if has_words(edges.inner.text):
                parts.append(_Sentences(element, edges))
        if parts:
            origin = split if split is not None and sentences else source
            yield _Unit(parent, origin, target, tuple(parts))

    def _is_untranslated(self, parent: Element, source: Element, target: Element | None) -> bool:
        if target is None or not target.children or (not target.text.strip() and not target.elements):
            return True
        holder = parent if self._is_2 else target
        state = holder.attributes.get("state")
        if parent.attributes.get("approved") == "yes" or (state and state not in _UNTRANSLATED):
            return False
        return bool(state) or self._inner(target) == self._inner(source)

    def _inner(self, element: Element) -> str:
        return self._file.raw(element.inner_start, element.inner_end)

    def _add(self, found: InlineText, element: Element, data: Mapping[str, str]) -> None:
        """Append what is in a source."""
        for child in element.children:
            raw = self._file.raw(child.start, child.end)
            if isinstance(child, Text):
                if child.is_text:
                    add_with_placeholders(found, child.text, escaped)
                else:
                    found.add_tag(raw)
            elif self._is_container(child):
                name = f"{child.name}{child.start}"
                found.add_tag(self._file.raw(child.start, child.inner_start), opens=name)
                self._add(found, child, data)
                found.add_tag(self._file.raw(child.inner_end, child.end), closes=name)
            else:
                opens, closes = _pair(child)
                is_word = not opens and not closes and _is_word(child, data)
                found.add_tag(raw, opens=opens, closes=closes, is_word=is_word)

    def _is_container(self, element: Element) -> bool:
        if element.name not in ("g", "pc", "mrk") or element.inner_start == element.end:
            return False
        return element.attributes.get("translate") != "no" and element.attributes.get("mtype") != "protected"

    # --- writing --------------------------------------------------------------------------------------------

    def _content(self, unit: _Unit, pairs: list[tuple[_Sentences, Marked]]) -> str:
        """The content of the target: that of the source, with translations."""
        pieces, place = [], unit.origin.inner_start
        for part, translation in pairs:
            if translation == part.edges.inner:
                continue
            text = part.edges.around(translation).written(escaped)
            pieces += [self._file.raw(place, part.element.inner_start), text]
            place = part.element.inner_end
        return "".join([*pieces, self._file.raw(place, unit.origin.inner_end)])

    def _target(self, unit: _Unit, content: str) -> list[Edit]:
        """Writes a target; in 2.x the state is an attribute of the segment."""
        edits = [self._file.with_attributes(unit.parent, {"state": "translated"})] if self._is_2 else []
        states = {} if self._is_2 else _STATES
        if unit.target is not None:
            tag = self._file.start_tag(unit.target, states, opens=True)
            new = f"{tag}{content}</{_written_name(tag)}>"
            return [*edits, Edit(unit.target.start, unit.target.end, new.encode())]
        source = unit.parent.child("source")
        assert source is not None, "checked on reading"
        before = self._file.raw(unit.parent.inner_start, source.start)
        indent = re.search(r"\s*\Z", before)
        name = re.sub(r"source\Z", "target", _written_name(self._file.raw(source.start, source.inner_start)))
        attributes = "".join(f' {key}="{value}"' for key, value in states.items())
        new = f"{indent[0] if indent else ''}<{name}{attributes}>{content}</{name}>"
        after = (unit.parent.child("seg-source") or source).end
        return [*edits, Edit(after, after, new.encode())]

    def _languages(self, language: str) -> list[Edit]:
        """Declares the language of the targets; zh-CN stays where zh is written."""
        if self._is_2:
            elements, name = [self._file.root], "trgLang"
        else:
            elements = [each for each in self._file.root.elements if each.name == "file"]
            name = "target-language"
        found = []
        for element in elements:
            old = element.attributes.get(name, "")
            if re.split("[-_]", old)[0].lower() == re.split("[-_]", language)[0].lower():
                continue
            if old and self._kept:
                self.notes.append(f"the file had translations into {old}; they stay beside the new ones")
            found.append(self._file.with_attributes(element, {name: language}))
        return found


def read(content: bytes) -> Xliff:
    """Read an XLIFF file.

    Raises:
        CorpusError: it is damaged, or not XLIFF; the message names the line.
    """
    file = XmlFile(content)
    if file.root.name != "xliff":
        problem = f"line {file.line(file.root.start)}: is not XLIFF: the root is <{file.root.name}>"
        raise CorpusError(problem, code="damaged_file")
    return Xliff(file)


def _written_name(tag: str) -> str:
    """The name of an element as it is written, with its prefix."""
    match = re.match(r"</?([^\s/>]+)", tag)
    assert match is not None, "a tag begins with a name"
    return match[1]


def _pair(element: Element) -> tuple[str, str]:
    """The names that an inline element without content opens and closes."""
    attributes = element.attributes
    number = attributes.get("rid") or attributes.get("id", "")
    if element.name in ("bpt", "bx", "sc", "sm"):
        return f"pair{attributes.get('id', '') if element.name in ('sc', 'sm') else number}", ""
    if element.name in ("ept", "ex", "ec", "em"):
        return "", f"pair{attributes.get('startRef', number)}"
    # Angular: START_LINK … CLOSE_LINK.
    if match := re.fullmatch(r"(START|CLOSE)_(\w+)", attributes.get("id", "")):
        return (match[2], "") if match[1] == "START" else ("", match[2])
    return "", ""


def _is_word(element: Element, data: Mapping[str, str]) -> bool:
    """Whether an inline element stands for a word: a placeholder of a program, or protected text."""
    attributes = element.attributes
    if element.name == "mrk" or attributes.get("id", "").startswith("INTERPOLATION"):
        return True
    known = (attributes.get(name, "") for name in ("equiv-text", "equiv", "disp"))
    content = element.text or data.get(attributes.get("dataRef", ""), "") or next(filter(None, known), "")
    return any(tag.is_word for tag in with_placeholders(content).tags)
