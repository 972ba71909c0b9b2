"""Which of a few languages a text is in: by its script, and among languages of one script by common words.

It is asked to choose among the languages of a server's models; where the text gives too little to go by, or
is clearly in another language, it says nothing.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from typing import NamedTuple

FLOOR = 0.5
"""Confidence below which nothing is said."""
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
_DENSE = ("CJK", "HANGUL", *_KANA)

# Words that are common in a language, and letters that few others of its script have.
# code|words|letters
_COMMON = """
en|the a of and to in is that for it was on are with as be this from at by not have or an you|
de|der die das und ist nicht ein eine den von zu mit sich auf für im dem auch es an als ich|äöüß
fr|le la les de des et est un une dans que qui pour sur pas au du il elle je vous tout avec ce|àéèêçœ
es|el la los las de que y en un una es por con para no se del al como su más está|áíóúñ¿¡
it|il lo la gli di che e un una è per con non del della sono si come più nel alla questo|àìòù
pt|o a os as de que e em um uma é não para com por do da no na se mais|ãõáçê
nl|de het een van en is dat op te zijn niet met voor er aan ook als maar bij uit|
sv|och att det som en är på av för med den inte har till ett om han jag vi|åäö
da|og at det er en af på til for med den ikke har de som et der jeg vi|æøå
nb|og at det er en av på til for med den ikke har som et jeg vi|åæø
fi|ja on ei se että hän oli mutta kun niin kuin myös mikä tämä ovat ole joka|äö
pl|i w na z się nie to że do jest jak o po co ale za od przez|łąężźśćń
cs|a se v na je že to s z do i o ale jak jako pro po ve|řěůščžý
sk|a sa v na je že to s z do aj o ale ako pre po vo|ľĺŕôäščžý
hu|a az és hogy nem egy is van ez volt csak de meg mint még el|őűöüáé
ro|și în de la cu un o pe nu este că din mai pentru care sunt|ăâîșț
tr|ve bir bu da de için ile çok ne var daha gibi olan kadar ama değil|ışğçöü
vi|và là của có không một được cho trong người các với những này đã để|ươđạế
id|yang dan di itu dengan untuk tidak ini dari dalam akan pada juga saya ke bisa ada|
ms|yang dan di itu dengan untuk tidak ini dari dalam akan pada juga saya ke boleh ada|
ru|и в не на что он с как это по но из у за от так же для|ыэёъ
uk|і в не на що він з як це до та але за від так для у й|їєґ
be|і ў не на што ён з як гэта да але за ад так для|ўыэё
bg|и в не на че той с като това по но от за се да е си|ъщ
sr|и у не на што он с као је да се за од али су|ћђјљњ
mk|и во не на што тој со како ова да се за од но се|ќѓѕј
zh||的是不了在有我他这个们中来上大为和国地到以说时要就
yue||嘅係唔咗喺有我佢呢個哋嚟上大同冇啲嘢咁話
ar|في من على إلى أن هذا التي الذي كان لا ما مع عن هو|ةىأإ
fa|در از به که این را است با برای آن یک می های شده|پچژگیک
ur|کے میں کی ہے اور سے کا کو نے پر یہ ہیں|ٹڈڑےہ
hi|के में की है और से का को ने पर यह हैं एक|
mr|आहे आणि च्या ला ने हे या तर होते मध्ये ते|ळ
"""

_WORD = re.compile(r"[^\W\d_]+")


class Detected(NamedTuple):
    """A guess."""

    language: str
    confidence: float
    """From 0 to 1."""


def detect(text: str, languages: Sequence[str]) -> Detected | None:
    """The language of a text among some; None where it does not tell."""
    text = text[:MOST].lower()
    scripts = _scripts(text)
    shares = {code: _share(code, scripts) for code in languages}
    best = max(shares.values(), default=0.0)
    if best < FLOOR * scripts.total() or not best:
        return None
    alike = [code for code, share in shares.items() if share > 0.98 * best]
    # Others of the same script are known too, so that what is none of ours is not taken for one of them.
    others = [code for code in _tables() if _share(code, scripts) > 0.98 * best]
    hits = _hits(text, {*alike, *others})
    first, second, *_ = [*sorted((hits[code] for code in alike), reverse=True), 0]
    # A few hits of others may be chance: Rio de Janeiro.
    confidence = best / scripts.total() * (first + 3) / (max(hits.values()) + 3)
    if len(alike) > 1:
        confidence *= (first - second) / (first + 2)
    return Detected(max(alike, key=hits.__getitem__), round(confidence, 3)) if confidence >= FLOOR else None


def _scripts(text: str) -> Counter[str]:
    """Letters of each script; one that is a syllable or a word counts as three."""
    found = Counter(_script(letter) for letter in text if letter.isalpha())
    return Counter({script: n * (3 if script in _DENSE else 1) for script, n in found.items()})


def _share(code: str, scripts: Counter[str]) -> float:
    """How much of a text may be in this language."""
    code = code.split("-")[0]
    found = sum(count for script, count in scripts.items() if code in _CODES.get(script, ()))
    if code == "ja" and not any(scripts[kana] for kana in _KANA):
        return 0.9 * found  # Chinese characters alone are Chinese, as long as that is in question
    return found if code in _NOT_LATIN else scripts["LATIN"]


def _hits(text: str, languages: Iterable[str]) -> dict[str, int]:
    """How often each language's common words and own letters are met; a word counts twice."""
    words, letters = Counter(_WORD.findall(text)), Counter(text)
    found = {}
    for code in languages:
        common, own = _tables().get(code.split("-")[0], ((), ""))
        found[code] = 2 * sum(words[word] for word in common) + sum(letters[letter] for letter in own)
    return found


@cache
def _tables() -> dict[str, tuple[tuple[str, ...], str]]:
    lines = (line.split("|") for line in _COMMON.strip().splitlines())
    return {code: (tuple(dict.fromkeys(words.split())), letters) for code, words, letters in lines}


@cache
def _script(letter: str) -> str:
    return unicodedata.name(letter, "?").split()[0]
