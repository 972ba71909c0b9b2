"""Which of two languages a text is in, told by its letters, where the languages are written differently.

In a text that mixes two, words are counted, and words of grammar once more: a sentence borrows names and
terms of another language, and seldom its grammar. What stands in it as a name of its own, a title in 《》 or
an address, tells nothing.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from itertools import groupby

from regard.text.common_words import Found
from regard.text.languages import LANGUAGES

# Scripts, by the first word of the Unicode names of their letters, and the languages written in them.
_TABLE = """
CJK zh yue ja|HIRAGANA ja|KATAKANA ja|HANGUL ko|CYRILLIC be bg kk ky mk mn ru sr tg tt uk|GREEK el
ARABIC ar fa ps sd ug ur|HEBREW he yi|DEVANAGARI hi mr ne sa|BENGALI as bn|GURMUKHI pa|GUJARATI gu|ORIYA or
TAMIL ta|TELUGU te|KANNADA kn|MALAYALAM ml|SINHALA si|THAI th|LAO lo|KHMER km|MYANMAR my|TIBETAN bo
ETHIOPIC am ti|GEORGIAN ka|ARMENIAN hy
"""
_WRITTEN_IN = {
    script: frozenset(languages)
    for script, *languages in (entry.split(" ") for entry in _TABLE.replace("\n", "|").split("|") if entry)
}
_LATIN = frozenset(code.split("-")[0] for code in LANGUAGES) - frozenset[str]().union(*_WRITTEN_IN.values())

# Letters of scripts without spaces that make up a word, about; in others a run of letters is one.
_LETTERS_A_WORD = dict.fromkeys(("CJK", "HIRAGANA", "KATAKANA"), 1.5) | dict.fromkeys(
    ("THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN"), 4.0
)

NO_NAMES = 0.8
"""The share of words in Latin letters, beside another script, that are taken for more than names."""
_NAMES = re.compile(r"《[^》]*》|[a-z]+://[!-~]+|[\w.+-]+@[!-~]+", re.ASCII | re.IGNORECASE)
"""Titles, and addresses of pages and people."""


def language_among(text: str, languages: Sequence[str]) -> str | None:
    """The language that most of a text is written in; None where its letters do not tell.

    Words of a script that several of the languages share tell nothing.
    """
    found: dict[str, float] = {}
    for script, words in words_and_grammar(unquoted(text), languages).items():
        ours = _written_in(script, languages)
        if len(ours) == 1:
            found[ours[0]] = found.get(ours[0], 0.0) + words
    return max(found, key=found.__getitem__) if found else None


def is_in(text: str, language: str, languages: Sequence[str]) -> bool:
    """Whether the letters of a text tell that it is in this one of some languages.

    Three words of five tell it, since names in Latin letters stand in texts of any language. In one of Latin
    letters all words must.
    """
    scripts = words_by_script(text)
    own = sum(words for script, words in scripts.items() if _written_in(script, languages) == [language])
    share = 1.0 if language in _written_in("LATIN", languages) else 0.6
    return bool(scripts) and own >= share * sum(scripts.values())


def _written_in(script: str, languages: Sequence[str]) -> list[str]:
    """Those of some languages that are written so."""
    written = _LATIN if script == "LATIN" else _WRITTEN_IN.get(script, frozenset())
    return [language for language in languages if language.split("-")[0] in written]


def unquoted(text: str) -> str:
    """A text without what stands in it as a name of its own; all of it where it is nothing else."""
    rest = _NAMES.sub(" ", text)
    return rest if any(letter.isalpha() for letter in rest) else text


def words_and_grammar(text: str, languages: Sequence[str]) -> dict[str, float]:
    """How much of a text is in each script: words, and those of a language's grammar once more.

    Beside another script, Latin letters count less: names in them stand in texts of any language.
    """
    words = words_by_script(text)
    if len(words) < 2:
        return words
    found = Found(text)
    return {
        script: n * (NO_NAMES if script == "LATIN" else 1.0)
        + max(map(found.grammar, _written_in(script, languages)), default=0)
        for script, n in words.items()
    }


def words_by_script(text: str) -> dict[str, float]:
    """How many words of each script a text has, about; empty where it has no letters."""
    words: dict[str, float] = {}
    for script, run in groupby(text, _script):
        if script:
            size = len([*run]) / _LETTERS_A_WORD[script] if script in _LETTERS_A_WORD else 1.0
            words[script] = words.get(script, 0.0) + size
    return words


@lru_cache(maxsize=1 << 14)
def _script(letter: str) -> str:
    """The script of a letter; empty for anything else."""
    name = unicodedata.name(letter, "") if letter.isalpha() else ""
    return name.removeprefix("FULLWIDTH ").removeprefix("HALFWIDTH ").partition(" ")[0]
