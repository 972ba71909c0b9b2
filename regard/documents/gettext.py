"""Catalogues of gettext (.po, .pot): messages without a translation are translated, and marked as fuzzy.

polib reads the messages. Writing them with polib would wrap every message anew and move comments, which hides
the translations in version control: so only the lines of a changed message are replaced.

A machine translation is marked `fuzzy`, as msgmerge and editors do with their suggestions: a person confirms
it, or `msgattrib --clear-fuzzy` does for all. msgfmt leaves fuzzy messages out.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from gettext import c2py

import polib

from regard.documents.reading import DecodedText, decoded
from regard.documents.strings import (
    add_with_placeholders,
    is_complete,
    with_accelerator,
    without_accelerator,
)
from regard.documents.trimming import InlineText, Trimmed, has_words, trimmed
from regard.errors import CorpusError
from regard.text.marked import Marked

_CHARSET = re.compile(rb"Content-Type:[^\n]*charset=([\w.:-]+)", re.IGNORECASE)
_LINE = re.compile(r"line (\d+)")
_FIELD = re.compile(r'\s*(?P<name>msgctxt|msgid_plural|msgid|msgstr(?:\[\d+\])?)?\s*"(?:[^"\\]|\\.)*"\s*')
_ONE_FORM = frozenset(
    "bo dz fa id ja jv ka km ko lo ms my su th tr vi wo yo zh".split()  # noqa: SIM905
)
"""Languages whose nouns after a number have one form."""
_TWO_FORMS = frozenset(
    """
    af bg bn ca da de el en eo es et eu fi fo fy gl gu he hi hu hy it kk ku ky lb ml mn mr nb ne nl nn no pa
    ps pt sq sv sw ta te tk ur
    """.split()  # noqa: SIM905
)
"""Languages whose plural is used for everything but one; others keep the rule of their catalogue."""


@dataclass(frozen=True, slots=True)
class _Message:
    """A text of an entry: its singular or its plural."""

    entry: polib.POEntry
    is_plural: bool
    edges: Trimmed
    accelerator: str
    escape: Callable[[str], str]

    def translated(self, translation: Marked, language: str) -> str:
        """A translation as the string of a catalogue."""
        text = self.edges.around(translation).written(self.escape)
        return with_accelerator(text, self.accelerator, language) if self.accelerator else text


class Catalogue:
    """A catalogue of messages."""

    def __init__(self, decoded_text: DecodedText) -> None:
        self._decoded = decoded_text
        self._file = _parsed(decoded_text.text)
        self.notes: list[str] = []
        self._messages = [
            message
            for entry in self._file
            if not entry.obsolete and (entry.fuzzy or not _is_translated(entry))
            for message in _messages(entry)
        ]
        self.segments: Sequence[Marked] = [message.edges.inner for message in self._messages]

    def written(self, translations: Sequence[Marked], language: str = "") -> bytes:
        """The catalogue with translations."""
        self.notes = []
        found: dict[int, tuple[polib.POEntry, list[str | None]]] = {}
        lost = 0
        for message, translation in zip(self._messages, translations, strict=True):
            _, texts = found.setdefault(message.entry.linenum, (message.entry, []))
            complete = is_complete(message.edges.inner, translation)
            lost += not complete
            texts.append(message.translated(translation, language) if complete else None)
        if lost:
            self.notes.append(f"{lost} messages stay untranslated: a placeholder or a tag was lost")
        lines = self._decoded.text.splitlines(keepends=True)
        plural = self._plural_rule(language)
        for start, (entry, texts) in sorted(found.items(), reverse=True):
            strings = self._strings(entry, texts, plural)
            if strings is not None:
                _replace(lines, start - 1, strings)
        if language:
            _set_header(lines, language, plural)
        text = "".join(lines)
        try:
            return self._decoded.encoded(text)
        except UnicodeEncodeError:
            self.notes.append(
                f"the charset is UTF-8 now: {self._decoded.encoding} lacks letters of the translation"
            )
            return _CHARSET.sub(lambda field: field[0].replace(field[1], b"UTF-8"), text.encode(), count=1)

    def _plural_rule(self, language: str) -> str:
        """The rule for plural forms: of the header, or of the language."""
        rule = self._file.metadata.get("Plural-Forms", "")
        if re.match(r"\s*nplurals\s*=\s*\d+\s*;\s*plural\s*=", rule):
            return rule
        short = re.split("[-_]", language)[0]
        if short in _ONE_FORM:
            return "nplurals=1; plural=0;"
        return "nplurals=2; plural=(n != 1);" if short in _TWO_FORMS else ""

    def _strings(
        self, entry: polib.POEntry, texts: list[str | None], rule: str
    ) -> dict[int, str] | str | None:
        """What is written as `msgstr`, for each plural form; None if a translation is missing."""
        if any(text is None for text in texts):
            return None
        if not entry.msgid_plural:
            return texts[0]
        if not rule:
            self.notes.append(f"line {entry.linenum}: the header has no Plural-Forms")
            return None
        kept = {} if entry.fuzzy else {int(form): text for form, text in entry.msgstr_plural.items() if text}
        forms = {form: texts[0 if is_one else -1] or "" for form, is_one in enumerate(_forms(rule))}
        return forms | kept


def read(content: bytes) -> Catalogue:
    """Read a catalogue.

    Raises:
        CorpusError: it is damaged; the message names the line.
    """
    named = _CHARSET.search(content[:20_000])
    charset = named[1].decode() if named else "utf-8"
    if charset.upper() in ("CHARSET", "ASCII", "US-ASCII", "UTF8", "UTF-8"):
        charset = "utf-8"
    try:
        codecs.lookup(charset)
    except LookupError:
        problem = f"the header names an unknown charset, {charset}; convert the file with msgconv -t UTF-8"
        raise CorpusError(problem, code="wrong_encoding") from None
    return Catalogue(decoded(content, charset))


def _parsed(text: str) -> polib.POFile:
    for number, line in enumerate(text.splitlines(), 1):
        # polib accepts a string that is not closed.
        if line.strip() and not line.lstrip().startswith("#") and not _FIELD.fullmatch(line):
            raise CorpusError(
                f"line {number}: is not a line of a catalogue: {line[:60]}", code="damaged_file"
            )
    try:
        # polib opens a file if its argument is the name of one; no name has so many line breaks.
        return polib.pofile(text + "\n" * 300)
    except (OSError, ValueError, IndexError) as error:
        line_number = _LINE.search(str(error))
        place = f"line {line_number[1]}" if line_number else "the catalogue"
        problem = f"{place}: the message is damaged; msgfmt -c shows the reason"
        raise CorpusError(problem, code="damaged_file") from error


def _is_translated(entry: polib.POEntry) -> bool:
    return all(entry.msgstr_plural.values()) if entry.msgid_plural else bool(entry.msgstr)


def _messages(entry: polib.POEntry) -> list[_Message]:
    """The texts of an entry; none if one of them has no words."""
    texts = [entry.msgid, entry.msgid_plural] if entry.msgid_plural else [entry.msgid]
    # Two percent signs are one where percent signs begin placeholders.
    formats = any(flag.endswith(("c-format", "python-format", "php-format")) for flag in entry.flags)
    formats = formats and not any(flag.startswith("no-") for flag in entry.flags)

    def escape(text: str) -> str:
        return text.replace("%", "%%") if formats else text

    found = []
    for i, text in enumerate(texts):
        bare, accelerator = without_accelerator(text)
        inline = InlineText()
        for j, piece in enumerate(bare.split("%%") if formats else [bare]):
            inline.add_text("%" if j else "")
            add_with_placeholders(inline, piece)
        found.append(_Message(entry, i == 1, trimmed(inline.marked), accelerator, escape))
    return found if all(has_words(message.edges.inner.text) for message in found) else []


def _forms(rule: str) -> list[bool]:
    """For each plural form, whether it is used for one thing only."""
    match = re.match(r"\s*nplurals\s*=\s*(\d+)\s*;\s*plural\s*=([^;]+)", rule)
    assert match is not None, "rules are checked before"
    try:
        form_of = c2py(match[2].strip())
        forms = [form_of(n) for n in range(201)]
    except ValueError as error:
        raise CorpusError(f"the header's Plural-Forms is damaged: {rule}", code="damaged_file") from error
    return [forms.count(form) == 1 and forms[1] == form for form in range(min(int(match[1]), 10))]


# --- lines --------------------------------------------------------------------------------------------------


def _replace(lines: list[str], start: int, strings: dict[int, str] | str) -> None:
    """Replace the `msgstr` of the entry that begins at a line, and mark it as fuzzy."""
    end, seen = start, False
    while end < len(lines) and lines[end].strip():
        name = _FIELD.match(lines[end])
        starts_next = lines[end].startswith("#") or bool(name and name["name"] in ("msgctxt", "msgid"))
        if seen and starts_next:
            break  # entries without an empty line between them
        seen = seen or bool(name and name["name"] and name["name"].startswith("msgstr"))
        end += 1
    break_ = "\r\n" if lines[start].endswith("\r\n") else "\n"
    entry = lines[start:end]
    # What the fuzzy message was translated from.
    entry = [line for line in entry if not line.startswith("#|")]
    names = [_FIELD.match(line) for line in entry]
    first = next(i for i, name in enumerate(names) if name and (name["name"] or "").startswith("msgstr"))
    plural = {} if isinstance(strings, str) else strings
    made = polib.POEntry(
        msgstr="" if plural else strings, msgstr_plural=plural, msgid_plural="x" if plural else ""
    )
    text = made.__unicode__(wrapwidth=78)
    written = text[re.search(r"^msgstr", text, re.MULTILINE).start() :].strip()  # type: ignore[union-attr]
    lines[start:end] = _with_fuzzy(entry[:first], break_) + [line + break_ for line in written.split("\n")]


def _with_fuzzy(head: list[str], break_: str) -> list[str]:
    """The lines before `msgstr`, with the flag."""
    for i, line in enumerate(head):
        if line.startswith("#,"):
            if "fuzzy" not in re.split(r"[,\s]+", line):
                head[i] = line.replace("#,", "#, fuzzy,", 1)
            return head
    first = next(i for i, line in enumerate(head) if not line.startswith("#"))
    return [*head[:first], f"#, fuzzy{break_}", *head[first:]]


def _set_header(lines: list[str], language: str, plural: str) -> None:
    """Set Language and, where it is missing, Plural-Forms."""
    wanted = {"Language": language.replace("-", "_"), "Plural-Forms": plural}
    for i, line in enumerate(lines):
        if _FIELD.match(line) and line.startswith("msgid") and line.strip() != 'msgid ""':
            break
        field = re.match(r'"(Language|Plural-Forms):\s*(.*?)\s*\\n"', line)
        if field is None:
            continue
        old, new = field[2], wanted.pop(field[1], "")
        same = old.replace("_", "-").split("-")[0] == language.split("-")[0]
        if new and not (field[1] == "Language" and same) and old != new:
            lines[i] = line.replace(field[0], f'"{field[1]}: {new}\\n"')
    _append_to_header(lines, {name: value for name, value in wanted.items() if value})


def _append_to_header(lines: list[str], fields: dict[str, str]) -> None:
    """Add fields at the end of the header, if there is a header."""
    first = next((i for i, line in enumerate(lines) if line.startswith("msgid")), len(lines))
    if (
        first + 1 >= len(lines)
        or lines[first].strip() != 'msgid ""'
        or not lines[first + 1].startswith("msgstr")
    ):
        return
    end = first + 2
    while end < len(lines) and lines[end].startswith('"'):
        end += 1
    break_ = "\r\n" if lines[first].endswith("\r\n") else "\n"
    lines[end:end] = [f'"{name}: {value}\\n"{break_}' for name, value in fields.items()]
