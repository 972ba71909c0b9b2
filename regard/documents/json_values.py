"""JSON files: strings that are language are translated where they stand; keys and structure stay.

The standard library finds and checks the strings. Only their characters are replaced, since writing the file
with it would change indentation, numbers and escapes.

Messages of ICU (`{n, plural, one {…} other {…}}`) are translated branch by branch, each as a whole sentence.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from regard.documents.icu import Message, has_branches, message
from regard.documents.reading import DecodedText, decoded
from regard.documents.strings import is_complete, is_language, with_placeholders
from regard.documents.trimming import Trimmed, has_words, trimmed
from regard.errors import CorpusError
from regard.text.marked import Marked

_TOKEN = re.compile(r'[{}\[\]",:]')
_ESCAPED = re.compile(r"\\u(?!00[0-7])[\dA-Fa-f]{4}")


@dataclass(frozen=True, slots=True)
class _Value:
    """A string of the file."""

    start: int
    end: int
    """Places of its quotes in the file: the first, and after the last."""
    text: str
    path: tuple[str, ...]
    """The keys that lead to it; an element of a list has the key of its list."""


@dataclass(frozen=True, slots=True)
class _Translatable:
    """A string that is translated."""

    value: _Value
    icu: Message | None
    texts: tuple[Trimmed, ...]
    """Its text; of a message with branches, the sentence of each branch."""

    def written(self, translations: Sequence[Marked]) -> str | None:
        """The string with translations; None if a placeholder is lost."""
        pairs = list(zip(self.texts, translations, strict=True))
        if not all(is_complete(text.inner, translation) for text, translation in pairs):
            return None
        if all(text.inner == translation for text, translation in pairs):
            return self.value.text
        written = [text.around(translation) for text, translation in pairs]
        return self.icu.written(written) if self.icu else written[0].written()


class Values:
    """A JSON file."""

    def __init__(self, file: DecodedText) -> None:
        self._file = file
        values = list(_values(file.text))
        self._locales = [value for value in values if value.path == ("@@locale",)]
        extension = _is_extension(values)
        found = [
            _translatable(each) for each in values if not _is_for_programs(each, extension) and _speaks(each)
        ]
        self._translatable = [each for each in found if each is not None]
        self._not_understood = len(found) - len(self._translatable)
        self.segments: Sequence[Marked] = [text.inner for each in self._translatable for text in each.texts]
        # Without letters outside of ASCII there is nothing that shows a choice: then nothing is escaped.
        self._escapes = bool(_ESCAPED.search(file.text)) and file.text.isascii()
        self._escapes_slashes = "\\/" in file.text
        self.notes = self._first_notes()

    def written(self, translations: Sequence[Marked], language: str = "") -> bytes:
        """The file with translations."""
        self.notes = self._first_notes()
        remaining = iter(translations)
        changes: list[tuple[_Value, str]] = []
        lost = 0
        for each in self._translatable:
            text = each.written([next(remaining) for _ in each.texts])
            lost += text is None
            if text is not None and text != each.value.text:
                changes.append((each.value, text))
        assert next(remaining, None) is None, "there is a translation for each segment"
        if lost:
            self.notes.append(f"{lost} strings stay untranslated: a placeholder or a tag was lost")
        changes += [(value, language.replace("-", "_")) for value in self._locales if language]
        pieces, place = [], 0
        for value, text in sorted(changes, key=lambda change: change[0].start):
            pieces += [
                self._file.text[place : value.start],
                self._quoted(text, self._file.text[value.start : value.end]),
            ]
            place = value.end
        return self._file.encoded("".join([*pieces, self._file.text[place:]]))

    def _first_notes(self) -> list[str]:
        if not self._not_understood:
            return []
        return [f"{self._not_understood} strings with branches stay: they are damaged, or have too many"]

    def _quoted(self, text: str, old: str) -> str:
        quoted = json.dumps(text, ensure_ascii=self._escapes)
        # Some files write </b> and <\/b>.
        escapes_slashes = self._escapes_slashes and not re.search(r"(?<!\\)/", old)
        return quoted.replace("/", "\\/") if escapes_slashes else quoted


def read(content: bytes) -> Values:
    """Read a JSON file.

    Raises:
        CorpusError: it is not JSON; the message names the line.
    """
    file = decoded(content)
    try:
        json.loads(file.text)
    except json.JSONDecodeError as error:
        problem = f"line {error.lineno}, column {error.colno}: is not JSON: {error.msg}"
        raise CorpusError(problem, code="damaged_file") from error
    except RecursionError:
        raise CorpusError("is nested too deeply", code="damaged_file") from None
    except ValueError as error:  # an integer with too many digits
        raise CorpusError(f"is not JSON that can be read: {error}", code="damaged_file") from error
    return Values(file)


def _values(text: str) -> Iterator[_Value]:
    """The strings that are values, of JSON that is known to be valid."""
    containers: list[str] = []
    keys: list[str] = []
    expects_key = False
    decoder = json.JSONDecoder()
    place = 0
    while token := _TOKEN.search(text, place):
        sign, place = token[0], token.end()
        if sign == '"':
            string, place = decoder.raw_decode(text, token.start())
            if expects_key:
                keys[-1] = string
            else:
                yield _Value(token.start(), place, string, tuple(keys))
        elif sign in "{[":
            containers.append(sign)
            keys += [""] if sign == "{" else []
        elif sign in "}]":
            containers.pop()
            del keys[len(keys) - (sign == "}") :]
        expects_key = sign in "{," and bool(containers) and containers[-1] == "{"


# --- what is translated -------------------------------------------------------------------------------------


def _is_for_programs(value: _Value, extension: bool) -> bool:
    """Whether a key says that a string is not for readers: `@name` of ARB, `$schema`."""
    if any(key.startswith(("@", "$")) for key in value.path):
        return True
    return extension and value.path[1:2] != ("message",)


def _is_extension(values: Sequence[_Value]) -> bool:
    """Whether this is `messages.json` of a browser extension, with `message` in every entry."""
    names = {value.path[0] for value in values if value.path}
    return bool(names) and names == {value.path[0] for value in values if value.path[1:] == ("message",)}


def _speaks(value: _Value) -> bool:
    return is_language(value.text, next(reversed(value.path), ""))


def _translatable(value: _Value) -> _Translatable | None:
    """A string with its texts; None if it has branches that cannot be translated."""
    if not has_branches(value.text):
        return _Translatable(value, None, (trimmed(with_placeholders(value.text)),))
    icu = message(value.text)
    if icu is None or not all(has_words(each.text) for each in icu.sentences):
        return None
    return _Translatable(value, icu, tuple(map(trimmed, icu.sentences)))
