"""Which of several languages a text is in: by its script, and among languages of one script by common words.

In a text that mixes two scripts, words are counted, and words of grammar count twice: a sentence borrows
names and terms from another language, but rarely its grammar. 我喜欢 machine learning 和 deep learning is
Chinese, although most of its words are English. Titles in 《》 and addresses are ignored, unless there is
nothing else.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from itertools import groupby
from typing import NamedTuple

from regard.text.languages import LANGUAGES

# Language code | common words | letters that few other languages of the script use.
# Languages without spaces between words list words of one letter as letters.
_COMMON = """
en|the a of and to in is that for it was on are with as be this at not have or you i he we do does what how|
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
zh||的是不了在有我你他她这那个们和就也都还把被给让请很吗呢吧么谁来为到以说要
yue||嘅係唔咗喺有我佢呢個哋嚟上大同冇啲嘢咁話
ar|في من على إلى أن هذا التي الذي كان لا ما مع عن هو|ةىأإ
fa|در از به که این را است با برای آن یک می های شده|پچژگیک
ur|کے میں کی ہے اور سے کا کو نے پر یہ ہیں|ٹڈڑےہ
hi|के में की है और से का को ने पर यह हैं एक|
mr|आहे आणि च्या ला ने हे या तर होते मध्ये ते|ळ
"""

# Scripts, named by the first word of the Unicode names of their letters, and the languages written in them.
_SCRIPTS = """
CJK zh yue ja|HIRAGANA ja|KATAKANA ja|HANGUL ko|CYRILLIC be bg kk ky mk mn ru sr tg tt uk|GREEK el
ARABIC ar fa ku ps sd ug ur|HEBREW he yi|DEVANAGARI hi mr ne sa|BENGALI as bn|GURMUKHI pa|GUJARATI gu
ORIYA or|TAMIL ta|TELUGU te|KANNADA kn|MALAYALAM ml|SINHALA si|THAI th|LAO lo|KHMER km|MYANMAR my|TIBETAN bo
ETHIOPIC am ti|GEORGIAN ka|ARMENIAN hy
"""
_LANGUAGES = {
    script: frozenset(codes)
    for script, *codes in (entry.split(" ") for entry in _SCRIPTS.replace("\n", "|").split("|") if entry)
}
_KNOWN = frozenset(code.split("-")[0] for code in LANGUAGES)
# Kurdish is written in both.
_LANGUAGES["LATIN"] = _KNOWN - frozenset[str]().union(*_LANGUAGES.values()) | {"ku"}

# Average letters per word in scripts without spaces; in other scripts a run of letters is one word.
_LETTERS_PER_WORD = dict.fromkeys(("CJK", "HIRAGANA", "KATAKANA"), 1.5) | dict.fromkeys(
    ("THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN"), 4.0
)

LATIN_WEIGHT = 0.8
"""Weight of a Latin word beside another script: texts of any language contain names in Latin letters."""
THRESHOLD = 0.5
"""Least share of a text in the scripts of a language, and least certainty within the script, for `detect`."""
MOST_CHARACTERS = 4000
"""Characters that `detect` reads."""
_KANA = ("HIRAGANA", "KATAKANA")
_WORD = re.compile(r"[^\W\d_]+")
_QUOTED = re.compile(r"《[^》]*》|[a-z]+://[!-~]+|[\w.+-]+@[!-~]+", re.ASCII | re.IGNORECASE)
"""Titles, web addresses and e-mail addresses."""


class Detected(NamedTuple):
    """A guess of a text's language."""

    language: str
    confidence: float
    """From 0 to 1."""


def detect(text: str, languages: Sequence[str]) -> Detected | None:
    """The language of a text among several; None where the text says too little or is in another language."""
    text = _unquoted(text[:MOST_CHARACTERS])
    scripts = _words_and_grammar(text, languages)
    weights = {code: _weight(code, scripts) for code in languages}
    best, total = max(weights.values(), default=0.0), sum(scripts.values())
    if best < THRESHOLD * total or not best:
        return None
    alike = [code for code, weight in weights.items() if weight > 0.98 * best]
    # All known languages of the script compete, so that another language is not taken for one of ours.
    others = [code for code in _common_words() if _weight(code, scripts) > 0.98 * best]
    counts = _WordCounts(text)
    hits = {code: counts.hits(code) for code in (*alike, *others)}
    first, second, *_ = [*sorted((hits[code] for code in alike), reverse=True), 0]
    # Smoothed by 3, since a few hits of other languages may be chance: Rio de Janeiro.
    certainty = (first + 3) / (max(hits.values()) + 3)
    if len(alike) > 1:
        certainty *= (first - second) / (first + 2)
    if certainty < THRESHOLD:
        return None
    return Detected(max(alike, key=hits.__getitem__), round(best / total * certainty, 3))


def language_among(text: str, languages: Sequence[str]) -> str | None:
    """The language that most of a text is written in, by script alone; None where the script is ambiguous.

    Words of a script that several of the languages share do not count.
    """
    weights: dict[str, float] = {}
    for script, weight in _words_and_grammar(_unquoted(text), languages).items():
        written = _written_in(script, languages)
        if len(written) == 1:
            weights[written[0]] = weights.get(written[0], 0.0) + weight
    return max(weights, key=weights.__getitem__) if weights else None


def is_in(text: str, language: str, languages: Sequence[str]) -> bool:
    """Whether the script of a text shows that it is in this one of several languages.

    Three fifths of the words are enough, since texts of any language contain names in Latin letters. For a
    language in Latin letters, every word must be.
    """
    scripts = words_by_script(text)
    own = sum(words for script, words in scripts.items() if _written_in(script, languages) == [language])
    share = 1.0 if language in _written_in("LATIN", languages) else 0.6
    return bool(scripts) and own >= share * sum(scripts.values())


def words_by_script(text: str) -> dict[str, float]:
    """The approximate number of words of each script in a text; empty where it has no letters."""
    words: dict[str, float] = {}
    for script, run in groupby(text, _script):
        if script:
            size = len([*run]) / _LETTERS_PER_WORD[script] if script in _LETTERS_PER_WORD else 1.0
            words[script] = words.get(script, 0.0) + size
    return words


def _words_and_grammar(text: str, languages: Sequence[str]) -> dict[str, float]:
    """The words of each script; where there are several scripts, common words count twice."""
    words = words_by_script(text)
    if len(words) < 2:
        return words
    counts = _WordCounts(text)
    return {
        script: n * (LATIN_WEIGHT if script == "LATIN" else 1.0)
        + max(map(counts.grammar, _written_in(script, languages)), default=0)
        for script, n in words.items()
    }


def _weight(language: str, scripts: Mapping[str, float]) -> float:
    """How much of a text may be in this language; an unknown language is taken to be written in Latin."""
    code = language.split("-")[0]
    if code not in _KNOWN:
        return scripts.get("LATIN", 0.0)
    weight = sum(n for script, n in scripts.items() if code in _LANGUAGES.get(script, ()))
    if code == "ja" and not any(kana in scripts for kana in _KANA):
        return 0.9 * weight  # prefer Chinese where there are Chinese characters only
    return weight


def _written_in(script: str, languages: Sequence[str]) -> list[str]:
    """The languages that are written in this script."""
    return [code for code in languages if code.split("-")[0] in _LANGUAGES.get(script, ())]


def _unquoted(text: str) -> str:
    """A text without its titles and addresses; the whole text where nothing else has letters."""
    rest = _QUOTED.sub(" ", text)
    return rest if any(letter.isalpha() for letter in rest) else text


@lru_cache(maxsize=1 << 14)
def _script(letter: str) -> str:
    """The script of a letter; empty for anything else."""
    name = unicodedata.name(letter, "") if letter.isalpha() else ""
    return name.removeprefix("FULLWIDTH ").removeprefix("HALFWIDTH ").partition(" ")[0]


class _Common(NamedTuple):
    """The common words and typical letters of a language."""

    words: tuple[str, ...]
    letters: str


@cache
def _common_words() -> dict[str, _Common]:
    lines = (line.split("|") for line in _COMMON.strip().splitlines())
    return {code: _Common(tuple(dict.fromkeys(words.split())), letters) for code, words, letters in lines}


def _common(language: str) -> _Common:
    return _common_words().get(language.split("-")[0], _Common((), ""))


class _WordCounts:
    """Counts of a language's common words and letters in one text."""

    def __init__(self, text: str) -> None:
        text = text.lower()
        self._words, self._letters = Counter(_WORD.findall(text)), Counter(text)

    def hits(self, language: str) -> int:
        """Common words, which count twice, and typical letters."""
        words, letters = self._counts(language)
        return 2 * words + letters

    def grammar(self, language: str) -> int:
        """Common words; of a language without spaces, common letters."""
        words, letters = self._counts(language)
        return words if _common(language).words else letters

    def _counts(self, language: str) -> tuple[int, int]:
        common = _common(language)
        words = sum(self._words[word] for word in common.words)
        return words, sum(self._letters[letter] for letter in common.letters)
