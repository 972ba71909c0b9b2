"""Text that is not language and must be copied as it is: URLs, placeholders, code, formulas, paths, emoji.

A model that has never seen such characters invents others, and may drop a digit of a URL. Where a translation
lacks one, the text is translated once more with placeholders X1, X2, …, which models treat as names and copy;
then the placeholders are replaced.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_ADDRESS = r"https?://[^\s<>\"'`{}\u2018-\u201f\u3000-\u303f\uff00-\uffef]*[\w/]"
_MAIL = r"(?<![\w.+-])[\w.+-]+@[A-Za-z\d-]+(?:\.[A-Za-z\d-]+)+"
_CODE = r"``[^\n]{1,200}?``|`[^`\n]+`"
_BRACES = r"\{(?:[^{}\n]|\{(?:[^{}\n]|\{[^{}\n]{0,99}\}){0,99}\}){0,199}\}"
_SCRIPTS = rf"(?:[_^](?:{_BRACES}|\\[A-Za-z]+|[A-Za-z\d*]))"
_MATH = "|".join(
    (
        r"\\begin\{([A-Za-z]+\*?)\}[^\n]{0,999}?\\end\{\1\}",
        r"\$\$[^$\n]{1,999}\$\$",
        r"\\\([^\n]{1,499}?\\\)|\\\[[^\n]{1,499}?\\\]",
        # But not a price, as in $5 and $10: a formula that begins with a digit has signs.
        r"(?<![\w$\\])\$(?![\s\d${(])[^$\n]{0,299}(?<![\s\\])\$(?!\d)",
        r"(?<![\w$\\])\$(?=[^$\n]{0,299}[\\^_=+*])\d[^$\n]{0,299}(?<![\s\\])\$(?!\d)",
        rf"\\[A-Za-z]+\*?(?:\[[^\[\]\n]{{0,99}}\])?(?:{_BRACES}|{_SCRIPTS})+",
    )
)
_FIELD = r"\$?\{\{[^{}\n]+\}\}|\$?\{[^{}\n]*\}|%\(\w+\)[a-z]|%(?:\d+\$)?[sd](?!\w)"
_PATH = r"(?<![\w.$~-])(?:[A-Za-z]:)?[\w.$~-]*(?:\\[\w.$~-]+)+\\?"
_TAG = r"</?[A-Za-z][^<>\n]*>"
_NUMBER = r"\b(?:0x[\dA-Fa-f]+|\d{9,}|\d+(?:\.\d+){3})\b"
"""Plain digits only if they are too long for an amount: 10000000 may become 1000万."""
_SMILEY = r"[\u2600-\u27bf\U0001f000-\U0001faff][\u200d\u2600-\u27bf\ufe0f\U0001f000-\U0001faff]*"
_SIGN = r"(?<![-=])[-=]*[<>]+[-=]*|[{}\\`]+"
_VERBATIM = re.compile(
    "|".join((_CODE, _MATH, _ADDRESS, _MAIL, _FIELD, _PATH, _TAG, _NUMBER, _SMILEY, _SIGN)), re.ASCII
)
_EXACT = re.compile("|".join((_CODE, _MATH)), re.ASCII)
_LETTERS = "XZQ"
"""Placeholders begin with the first of these letters that does not precede a digit in the text."""


def verbatim(text: str) -> list[str]:
    """The parts of a text that its translation must copy, in order.

    >>> verbatim("See https://a.org/b. Press {key}, or run `x -y`.")
    ['https://a.org/b', '{key}', '`x -y`']
    """
    return [match[0] for match in _VERBATIM.finditer(text)]


def verbatim_spans(text: str) -> list[tuple[int, int]]:
    """Where these parts are."""
    return [match.span() for match in _VERBATIM.finditer(text)]


def exact(text: str) -> list[str]:
    """Code and formulas of a text: a translation without one is an error.

    >>> exact("Set `x` to $a_1$, for $5 or $10")
    ['`x`', '$a_1$']
    """
    return [match[0] for match in _EXACT.finditer(text)]


def around_exact(text: str) -> list[str]:
    """A text in pieces: every second one is code or a formula; concatenated, they are the text."""
    pieces, place = [], 0
    for match in _EXACT.finditer(text):
        pieces += [text[place : match.start()], match[0]]
        place = match.end()
    return [*pieces, text[place:]]


def without_exact(text: str) -> str:
    """A text without its code and formulas."""
    return "".join(around_exact(text)[::2])


@dataclass(frozen=True, slots=True)
class WithPlaceholders:
    """A text with placeholders for its verbatim parts."""

    text: str
    letter: str
    """The first letter of the placeholders."""
    replaced: tuple[str, ...]
    """What the first placeholder stands for, the second, and so on."""

    def restored(self, output: str) -> str | None:
        """An output with its placeholders replaced; None if one is missing or occurs twice."""
        pattern = re.compile(rf"(?<![A-Za-z]){self.letter}(\d+)", re.ASCII)
        if sorted(map(int, pattern.findall(output))) != [*range(1, len(self.replaced) + 1)]:
            return None
        return pattern.sub(lambda match: self.replaced[int(match[1]) - 1], output)


def with_placeholders(text: str) -> WithPlaceholders | None:
    """The text with placeholders; None if it uses all of their letters itself."""
    letter = next((each for each in _LETTERS if not re.search(rf"{each}\d", text)), None)
    if letter is None:
        return None
    replaced: list[str] = []

    def placeholder(match: re.Match[str]) -> str:
        """The next placeholder, with a space where it would join a word."""
        replaced.append(match[0])
        before, after = text[max(0, match.start() - 1) : match.start()], text[match.end() : match.end() + 1]
        spaces = [" " if side.isascii() and side.isalnum() else "" for side in (before, after)]
        return f"{spaces[0]}{letter}{len(replaced)}{spaces[1]}"

    return WithPlaceholders(_VERBATIM.sub(placeholder, text), letter, tuple(replaced))
