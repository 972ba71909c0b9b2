"""What is no language, and comes out as it went in: addresses, fields to be filled in, code, paths, smileys.

A model that has never seen such signs makes up others for them, and in an address a digit may get lost. Where
a translation lacks one, the text is translated once more with stand-ins for them, X1 and X2, which models
take for names and copy, and what they stand for is put back.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_ADDRESS = r"https?://[^\s<>\"'`{}\u2018-\u201f\u3000-\u303f\uff00-\uffef]*[\w/]"
_MAIL = r"(?<![\w.+-])[\w.+-]+@[A-Za-z\d-]+(?:\.[A-Za-z\d-]+)+"
_CODE = r"`[^`\n]+`"
_FIELD = r"\$?\{\{[^{}\n]+\}\}|\$?\{[^{}\n]*\}|%\(\w+\)[a-z]|%(?:\d+\$)?[sd](?!\w)"
_PATH = r"(?<![\w.$~-])(?:[A-Za-z]:)?[\w.$~-]*(?:\\[\w.$~-]+)+\\?"
_TAG = r"</?[A-Za-z][^<>\n]*>"
_NUMBER = r"\b(?:0x[\dA-Fa-f]+|\d{9,}|\d+(?:\.\d+){3})\b"
"""Of digits alone, only those that are too long to be anything but a name: 10000000 may become 1000万."""
_SMILEY = r"[\u2600-\u27bf\U0001f000-\U0001faff][\u200d\u2600-\u27bf\ufe0f\U0001f000-\U0001faff]*"
_SIGN = r"(?<![-=])[-=]*[<>]+[-=]*|[{}\\`]+"
_VERBATIM = re.compile(
    "|".join((_ADDRESS, _MAIL, _CODE, _FIELD, _PATH, _TAG, _NUMBER, _SMILEY, _SIGN)), re.ASCII
)
_LETTERS = "XZQ"
"""Stand-ins begin with the first that the text does not use so."""


def verbatim(text: str) -> list[str]:
    """What the translation of a text must have as it stands, in its order.

    >>> verbatim("See https://a.org/b. Press {key}, or run `x -y`.")
    ['https://a.org/b', '{key}', '`x -y`']
    """
    return [match[0] for match in _VERBATIM.finditer(text)]


@dataclass(frozen=True, slots=True)
class Hidden:
    """A text with stand-ins for what is no language."""

    text: str
    letter: str
    """What stand-ins begin with."""
    meant: tuple[str, ...]
    """What the first stands for, and the second, and so on."""

    def restored(self, output: str) -> str | None:
        """An output with what the stand-ins stand for; None where one is missing, or is there twice."""
        pattern = re.compile(rf"(?<![A-Za-z]){self.letter}(\d+)", re.ASCII)
        if sorted(map(int, pattern.findall(output))) != [*range(1, len(self.meant) + 1)]:
            return None
        return pattern.sub(lambda match: self.meant[int(match[1]) - 1], output)


def hidden(text: str) -> Hidden | None:
    """The text with stand-ins; None where every name for one is taken."""
    letter = next((each for each in _LETTERS if not re.search(rf"{each}\d", text)), None)
    if letter is None:
        return None
    meant: list[str] = []

    def stand_in(match: re.Match[str]) -> str:
        """The next, with a space where it would become a part of a word."""
        meant.append(match[0])
        before, after = text[max(0, match.start() - 1) : match.start()], text[match.end() : match.end() + 1]
        spaces = [" " if side.isascii() and side.isalnum() else "" for side in (before, after)]
        return f"{spaces[0]}{letter}{len(meant)}{spaces[1]}"

    return Hidden(_VERBATIM.sub(stand_in, text), letter, tuple(meant))
