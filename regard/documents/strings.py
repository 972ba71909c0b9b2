"""Strings of programs: their placeholders and tags, accelerators, and which strings are not language."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

from regard.documents.trimming import InlineText, has_words
from regard.text.marked import Marked

_CONVERSION = r"(?:hh|h|ll|l|L|q|j|z|t)?[diouxXeEfFgGcrsaA@](?![A-Za-z])"
_PLACEHOLDER = "|".join(
    (
        r"\$?\{\{[^{}\n]+\}\}",  # {{name}}
        r"\$t\([^()\n]+\)",  # $t(key) of i18next
        r"[$%#]?\{[^{}\n]{0,80}\}",  # {name}, {0}, ${name}, %{name}, #{name}
        rf"%\(\w+\)[-+#0]*\d*(?:\.\d+)?{_CONVERSION}",  # %(name)s
        rf"%(?:\d+\$)?[-+#0]*(?:\*|\d+)?(?:\.(?:\*|\d+))?{_CONVERSION}",  # %s, %1$s, %.2f, %ld, %@
        r"%L?\d(?!\d)",  # %1 of Qt
        r"\$[A-Z][A-Z0-9_]*\$",  # $NAME$ of browser extensions
        r"&(?:[A-Za-z]{2,8}|#\d{1,7}|#x[\dA-Fa-f]{1,6});",  # &nbsp;
    )
)
_TAG = r"<(?P<end>/)?(?P<name>[A-Za-z][\w:-]*|\d+)(?P<rest>\s[^<>\n]*|)(?P<alone>/)?>"
_SPECIAL = re.compile(rf"(?P<placeholder>{_PLACEHOLDER})|(?P<tag>{_TAG})")
_ALONE = frozenset(["br", "hr", "img", "wbr", "input"])
"""Elements of HTML that are never closed."""


def with_placeholders(text: str) -> Marked:
    """A string with its placeholders as words and its tags as inline tags.

    >>> [tag.raw for tag in with_placeholders("<b>%s</b> has {count} files").tags]
    ['<b>', '%s', '</b>', '{count}']
    """
    found = InlineText()
    add_with_placeholders(found, text)
    return found.marked


def add_with_placeholders(found: InlineText, text: str, escape: Callable[[str], str] = str) -> None:
    """Append a string, with placeholders and tags; `escape` makes them part of the format."""
    place = 0
    for match in _SPECIAL.finditer(text):
        found.add_text(text[place : match.start()])
        place = match.end()
        raw, name = escape(match[0]), (match["name"] or "").lower()
        if match["placeholder"]:
            found.add_tag(raw, is_word=True)
        elif match["alone"] or match["rest"].endswith("/") or (name in _ALONE and not match["end"]):
            found.add_tag(raw)
        elif match["end"]:
            found.add_tag(raw, closes=name)
        else:
            found.add_tag(raw, opens=name)
    found.add_text(text[place:])


def is_complete(source: Marked, translation: Marked) -> bool:
    """Whether a translation has every tag and placeholder as often as its source."""
    return Counter(tag.raw for tag in source.tags) == Counter(tag.raw for tag in translation.tags)


# --- accelerators -------------------------------------------------------------------------------------------

_AFTER = re.compile(r"\s?\((?P<mark>[&_])(?P<key>\w)\)")
"""Behind the text, as in East Asian menus: 文件(&F)."""
_WITHIN = re.compile(r"(?P<mark>[&_])(?P<key>[^\W_])")
_EAST_ASIAN = frozenset(["zh", "ja", "ko"])


def without_accelerator(text: str) -> tuple[str, str]:
    """A menu text without its accelerator, and the accelerator; empty if it has none.

    >>> without_accelerator("Save &As…"), without_accelerator("文件(_F)")
    (('Save As…', '&A'), ('文件', '_F'))
    >>> without_accelerator("Q&A, AT&T"), without_accelerator("file_name")
    (('Q&A, AT&T', ''), ('file_name', ''))
    """
    if (after := _AFTER.search(text)) and len(_AFTER.findall(text)) == 1:
        return text[: after.start()] + text[after.end() :], after["mark"] + after["key"]
    found = list(_WITHIN.finditer(text))
    if len(found) != 1 or text.count(found[0]["mark"]) != 1:
        return text, ""
    (match,) = found
    # A menu has few words; an underscore may begin a name, as in: Use the _name of it.
    longest = 6 if match["mark"] == "&" or match["key"].isupper() else 3
    if len(text.split()) > longest or re.match(r"&\w+;", text[match.start() :]):
        return text, ""
    before = re.search(r"\w*\Z", text[: match.start()])
    word = before[0] if before else ""
    # In a word it is an accelerator only if the word begins like one of a menu: E_xit, not file_name or Q&A.
    if word and not (word[0].isupper() and match["key"].islower()):
        return text, ""
    if not word and not re.search(r"(?:^|[\s(\[\"'])\Z", text[: match.start()]):
        return text, ""
    return text[: match.start()] + text[match.start() + 1 :], match[0]


def with_accelerator(text: str, accelerator: str, language: str) -> str:
    """A menu text with an accelerator: before the same letter, or in brackets at its end.

    >>> with_accelerator("文件...", "&F", "zh"), with_accelerator("Speichern unter", "&A", "de")
    ('文件(&F)...', 'Speichern unter(&A)')
    >>> with_accelerator("File", "&F", "en")
    '&File'
    """
    mark, key = accelerator[0], accelerator[1]
    east_asian = language.split("-")[0].split("_")[0] in _EAST_ASIAN or not text.isascii()
    if not east_asian:
        places = [i for i, letter in enumerate(text) if letter.lower() == key.lower()]
        first = [i for i in places if i == 0 or not text[i - 1].isalnum()]
        if places:
            i = (first or places)[0]
            return text[:i] + mark + text[i:]
    end = len(text.rstrip(" .…:：。")) or len(text)
    return f"{text[:end]}({mark}{key.upper()}){text[end:]}"


# --- strings that are not language --------------------------------------------------------------------------

_NOT_LANGUAGE = re.compile(
    "|".join(
        (
            r"[a-z][a-z\d+.-]*://\S+|www\.\S+|(?:mailto|tel|data|javascript):\S*",
            r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+",
            r"(?:[A-Za-z]:|\.{0,2})?(?:[\\/][\w.@*~+%-]+)+[\\/]?",  # /usr/lib, ./a.png, C:\x
            r"(?:[\w@.~-]+/)+[\w.@*~+-]*\.[A-Za-z\d]{1,5}|[\w-]+\.[a-z\d]{2,4}",  # img/a.png, a.png
            r"(?:text|image|audio|video|font|application|multipart)/[a-z\d.+*-]+",
            r"#[\dA-Fa-f]{3,8}|(?:rgb|hsl|hwb|lab|lch)a?\([^()]*\)|var\(--[^()]*\)",
            r"\d{4}-\d{2}(?:-\d{2})?(?:[T ]\d{2}:\d{2}.*)?",
            r"[\d\s:.,/+-]*(?:Z|UTC|GMT|am|pm|px|em|rem|vh|vw|ms|s)?",
            r"[\dA-Fa-f]{8}(?:-[\dA-Fa-f]{4}){3}-[\dA-Fa-f]{12}|(?=\w*\d)[\dA-Fa-f]{12,}",
            r"[A-Za-z\d+/_-]{40,}={0,2}",  # base64
            r"v?\d+(?:\.\w+)+(?:[-+][\w.]+)?",  # 1.2.0-beta
            r"[A-Za-z_$]\w*(?:[.:][A-Za-z_$][\w-]*)+",  # a.b.c
            r"(?=\w*_)\w+|(?:--?)?[a-z\d]+(?:-[a-z\d]+)*-(?=[a-z-]*\d)[a-z\d-]+",  # snake_case, h-24
            r"[a-z]+(?:[A-Z][a-z\d]*)+|(?:[A-Z][a-z\d]+){2,}",  # camelCase, PascalCase
            r"[a-z]{2,3}(?:-[A-Z][a-z]{3})?-[A-Z]{2}|--[\w-]+",  # zh-CN, --option
        )
    ),
    re.ASCII,
)
LONGEST_NAME = 200
"""Characters; a longer word of ASCII is data, and a longer text is no name."""
_TECHNICAL = frozenset(
    """
    align class classname color colour component encoding event format href icon id ids kind lang language
    layout locale method mime model module namespace node path pattern ref role route schema selector size
    slug sort src state status style tag target theme type uri url variant version
    """.split()  # noqa: SIM905
)
"""Keys whose values are names for programs, if they are one word."""


def is_language(text: str, key: str = "") -> bool:
    """Whether a value is text for people, and not a name, an address, a date or a number.

    >>> [is_language(text) for text in ("Save", "保存", "https://a.org", "#ff0000", "user_name", "2 px")]
    [True, True, False, False, False, False]
    >>> is_language("button", key="type"), is_language("button", key="label")
    (False, True)
    """
    bare = text.strip()
    is_one_word = bare.isascii() and not re.search(r"\s", bare)
    if not has_words(bare) or (is_one_word and len(bare) > LONGEST_NAME):
        return False
    if len(bare) <= LONGEST_NAME and _NOT_LANGUAGE.fullmatch(bare):
        return False
    last = re.split(r"[^A-Za-z]", key)[-1].lower()
    if last in _TECHNICAL and is_one_word:
        return False
    return has_words(with_placeholders(bare).text)
