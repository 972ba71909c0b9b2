"""Which of a few languages a text is in: by its script, and among languages of one script by common words.

A text that mixes two scripts is in the language that most of it is written in, by words, and of whose grammar
it has more (`regard/text/scripts.py`).

It is asked to choose among the languages of a server's models; where the text gives too little to go by, or
is clearly in another language, it says nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from regard.text.common_words import Found, common_words
from regard.text.scripts import unquoted, words_and_grammar

FLOOR = 0.5
"""The share of a text that must be in a script of ours; and how sure the language of that script must be."""
MOST = 4000
"""Characters that are looked at."""

_SCRIPTS = {
    "CJK": "zh yue ja",
    "HIRAGANA": "ja",
    "KATAKANA": "ja",
    "HANGUL": "ko",
    "CYRILLIC": "ru uk be bg sr mk kk ky mn tg tt",
    "GREEK": "el",
    "ARABIC": "ar fa ur ps ug ku sd",
    "HEBREW": "he yi",
    "DEVANAGARI": "hi mr ne sa",
    "BENGALI": "bn as",
    "GURMUKHI": "pa",
    "GUJARATI": "gu",
    "ORIYA": "or",
    "TAMIL": "ta",
    "TELUGU": "te",
    "KANNADA": "kn",
    "MALAYALAM": "ml",
    "SINHALA": "si",
    "THAI": "th",
    "LAO": "lo",
    "TIBETAN": "bo",
    "MYANMAR": "my",
    "GEORGIAN": "ka",
    "ARMENIAN": "hy",
    "ETHIOPIC": "am ti",
    "KHMER": "km",
}
_CODES = {script: frozenset(codes.split()) for script, codes in _SCRIPTS.items()}
_NOT_LATIN = frozenset().union(*_CODES.values())
_KANA = ("HIRAGANA", "KATAKANA")


class Detected(NamedTuple):
    """A guess."""

    language: str
    confidence: float
    """From 0 to 1."""


def detect(text: str, languages: Sequence[str]) -> Detected | None:
    """The language of a text among some; None where it does not tell."""
    text = unquoted(text[:MOST])
    scripts = words_and_grammar(text, languages)
    shares = {code: _share(code, scripts) for code in languages}
    best, total = max(shares.values(), default=0.0), sum(scripts.values())
    if best < FLOOR * total or not best:
        return None
    alike = [code for code, share in shares.items() if share > 0.98 * best]
    # Others of the same script are known too, so that what is none of ours is not taken for one of them.
    others = [code for code in common_words() if _share(code, scripts) > 0.98 * best]
    found = Found(text)
    hits = {code: found.hits(code) for code in (*alike, *others)}
    first, second, *_ = [*sorted((hits[code] for code in alike), reverse=True), 0]
    # A few hits of others may be chance: Rio de Janeiro.
    certainty = (first + 3) / (max(hits.values()) + 3)
    if len(alike) > 1:
        certainty *= (first - second) / (first + 2)
    if certainty < FLOOR:
        return None
    return Detected(max(alike, key=hits.__getitem__), round(best / total * certainty, 3))


def _share(code: str, scripts: Mapping[str, float]) -> float:
    """How much of a text may be in this language."""
    code = code.split("-")[0]
    found = sum(count for script, count in scripts.items() if code in _CODES.get(script, ()))
    if code == "ja" and not any(kana in scripts for kana in _KANA):
        return 0.9 * found  # Chinese characters alone are Chinese, as long as that is in question
    return found if code in _NOT_LATIN else scripts.get("LATIN", 0.0)
