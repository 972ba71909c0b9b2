"""What is mended in a pair of the corpus, and what a pair is dropped for: each rule with its reason.

A rule takes the Chinese and the English side and answers whether the pair is to go. They were written while
looking at random lines of every source; `data.py` counts what each drops, source by source.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

Rule = Callable[[str, str], bool]

HAN = "\u3400-\u9fff\uf900-\ufaff"
_HAN = re.compile(f"[{HAN}]")
_WORD = re.compile(r"[A-Za-z][A-Za-z'’]*|\d+")
_LATIN = re.compile(r"[A-Za-z]{3,}")
_OTHER_SCRIPT = re.compile(
    "[\u0370-\u03ff\u0400-\u052f\u0590-\u06ff\u0900-\u0dff\u0e00-\u0e7f\u3040-\u30ff\uac00-\ud7af]"
)

# --- what is mended -----------------------------------------------------------------------------------------

_EMPHASIS = re.compile(r"(\*{1,2}|`{1,2})(?=\S)([^*`]+?)(?<=\S)\1")
_SPACE_INSIDE = re.compile(rf"(?<=[{HAN}，。；：、！？）》”]) +(?=[，。；：、！？）》”])")
_TOKENISED = re.compile(r" (?=n't\b|'(?:s|re|ve|ll|d|m)\b|[.,;:!?](?:\s|$))")


def mended(zh: str, en: str, *, tokenised: bool = False) -> tuple[str, str]:
    """A pair without marks of emphasis and, where a source was tokenised, without the spaces from that.

    Elsewhere a space before a full stop is the edge of a hole, and stays to be found.
    """
    zh, en = (_EMPHASIS.sub(r"\2", text).strip() for text in (zh, en))
    return (_SPACE_INSIDE.sub("", zh), _TOKENISED.sub("", en)) if tokenised else (zh, en)


# --- what a pair is dropped for -----------------------------------------------------------------------------

_HOLE_ZH = re.compile(
    r"（\s*）|(?<![\w)])\(\s*\)|「\s*」|“\s*”|《\s*》|^[，。、；：！？）]|[，、] *[，、。；]|的 +的"
    r"|(?:在|从|由|将|把|向|对) +(?:[，。；：）]|中|上的|下的|时)"
    r"|(?:请参阅|参阅|参见|请查看|称为|名为) *[。；）]"
)
_HOLE_EN = re.compile(
    r"(?<![\w)])\(\s*[,.;]?\s*\)|“\s*”|^[,;:)!?](?!\w)|,\s*[,.;](?!\w)"
    r"|\b(?:the|a|an) ?[,;:)](?=\s|$)|\b(?:the|an)\.$"
    r"|\b(?:of|by|using|see|via|in|to|from|with|for|and|or|is|are|the|a|an) [.,;:)](?=\s|$)"
    r"|\b(?:the|an?) (?:the|an|of|is|are)\b"
)
_MARKUP = re.compile(
    r":marked|(?:^|\s)#{1,6}\s|\ba#\w|\]\(|\{\{|\}\}|\{%|</?[a-zA-Z][^<>]*>|&(?:[a-z]+|#\d+);|``|\*\*|:\w+:`|::|\|\s*\||\\[a-zA-Z_]"
    r"|^[|>]|\|$|!\[|@@|\^\[|\{#|~~"
)
_PLACEHOLDER = re.compile(r"%\(\w+\)[a-z]|%[-+0-9.]*[a-z]\b|\$?\{\w*\}|%\d\$[a-z]")
_IDENTIFIER = re.compile(r"\b(?:[a-z]+[A-Z]\w+|\w+_\w+|[A-Z][a-z]+[A-Z]\w+|\w+\.\w+\.\w+)", re.ASCII)
_MONTH = re.compile(r"\b(?:Oct|Nov|Dec)[a-z]*\b")
_NUMBER = re.compile(r"\d[\d,]*\d")
_NUMBER_WORDS_ZH = re.compile("[万亿千百]")
_NUMBER_WORDS_EN = re.compile(
    r"\b(?:hundred|thousand|million|billion|trillion|dozen|century|[Bb]\.?[Cc])", re.I
)


def no_chinese(zh: str, _: str) -> bool:
    """The Chinese side is not Chinese: it has no character of it, or a sixth of its letters at most."""
    han, latin = len(_HAN.findall(zh)), sum(map(len, _LATIN.findall(zh)))
    return han == 0 or 5 * han < latin


def no_english(_: str, en: str) -> bool:
    """The English side has no letter, or Chinese in it: something was left untranslated."""
    return not re.search("[A-Za-z]", en) or bool(_HAN.search(en)) or bool(re.search("[，。；：、「」]", en))


def another_script(zh: str, en: str) -> bool:
    """Kana, Cyrillic, Greek and other letters on one side alone: the pair is of another language."""
    return bool(_OTHER_SCRIPT.search(zh)) or bool(_OTHER_SCRIPT.search(en))


def hole(zh: str, en: str) -> bool:
    """Something is missing where markup was stripped: empty brackets, "see .", a comma after a comma."""
    return bool(_HOLE_ZH.search(zh) or _HOLE_EN.search(en))


def markup(zh: str, en: str) -> bool:
    """Markup is left over: tags, links, headings, macros."""
    return bool(_MARKUP.search(zh) or _MARKUP.search(en))


def signs(zh: str, en: str) -> bool:
    """A sign of code stands on one side alone, or a placeholder does: one of the two was stripped."""
    marks = (Counter(c for c in text if c in "*`#|{}<>\\^~") for text in (zh, en))
    first, second = marks
    return first != second or Counter(_PLACEHOLDER.findall(zh)) != Counter(_PLACEHOLDER.findall(en))


def identifiers(zh: str, en: str) -> bool:
    """A name out of code is on one side alone: the other says something else."""
    there, here = zh.lower(), en.lower()
    return any(_stem(name) not in here for name in _IDENTIFIER.findall(zh)) or any(
        _stem(name) not in there for name in _IDENTIFIER.findall(en)
    )


def latin_words(zh: str, en: str) -> bool:
    """Most words of the Chinese side in Latin letters are not in the English one: lines out of step."""
    words, text = _LATIN.findall(zh), en.lower()
    missing = sum(_stem(word) not in text for word in words)
    return len(words) >= 1 and 2 * missing > len(words)


def numbers(zh: str, en: str) -> bool:
    """A number of two digits and more is on one side alone, and no word for one on the other."""
    first, second = ({n.replace(",", "") for n in _NUMBER.findall(text)} for text in (zh, en))
    if _MONTH.search(en):
        first -= {"10", "11", "12"}
    if first - second and not _NUMBER_WORDS_EN.search(en) and not _spelt(first - second, en):
        return True
    return bool(second - first) and not _NUMBER_WORDS_ZH.search(zh) and len(second - first) > _spelt_zh(zh)


def lengths(zh: str, en: str) -> bool:
    """One side is much longer than the other: a clause more, or another sentence.

    Counted in words, of which a Chinese one has 1.6 characters, about; a few more on both sides let short
    ones differ.
    """
    chinese = len(_HAN.findall(zh)) / 1.6 + len(_WORD.findall(zh))
    english = len(_WORD.findall(en))
    ratio = (english + 4) / (chinese + 4)
    return not 0.5 < ratio < 2.2


def same(zh: str, en: str) -> bool:
    """Both sides are the same: nothing was translated."""
    return zh.casefold() == en.casefold()


def fragment(_: str, en: str) -> bool:
    """A subtitle that starts or breaks off in the middle of a sentence, where the other may go on."""
    return not (en[:1].isupper() or en[:1] in "\"'“‘-" or en[:1].isdigit()) or en[-1:] not in ".!?\"'”’…"


RULES: dict[str, Rule] = {
    rule.__name__.replace("_", " "): rule
    for rule in (same, no_chinese, no_english, another_script, markup, signs, hole, identifiers, latin_words)
} | {"numbers": numbers, "lengths": lengths}
"""For every source, in the order in which they are asked."""


def _stem(word: str) -> str:
    """A name without case and without the s of a plural."""
    return word.lower().rstrip("s")


def _spelt(missing: set[str], en: str) -> bool:
    """Whether English spells numbers out, as in "twenty-one"."""
    tens = (
        r"\b(?:ten|eleven|twelve|\w+teen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|noon|midnight)"
    )
    return bool(re.search(tens, en, re.I)) and all(len(number) <= 2 for number in missing)


def _spelt_zh(zh: str) -> int:
    """How many numbers Chinese may spell out: each has a 十 or a row of digits in it."""
    return len(re.findall("[十〇零]|[一二三四五六七八九]{2,}", zh))
