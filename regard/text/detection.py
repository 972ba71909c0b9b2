"""Which of several languages a text is in, or that it is in none of them: by its script and common words.

In a text that mixes two scripts, words are counted, and words of grammar count twice: a sentence borrows
names and terms from another language, but rarely its grammar. 我喜欢 machine learning 和 deep learning is
Chinese, although most of its words are English. Markup, titles in 《》 and addresses are ignored, unless
there is nothing else.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from itertools import groupby
from typing import NamedTuple

from regard.text.languages import LANGUAGES

# Scripts, named by the first word of the Unicode names of their letters, and the languages written in them,
# the most likely first.
_SCRIPTS = """
CJK zh yue ja|HIRAGANA ja|KATAKANA ja|HANGUL ko|CYRILLIC ru uk be bg kk ky mk mn sr tg tt|GREEK el
ARABIC ar fa ku ps sd ug ur|HEBREW he yi|DEVANAGARI hi mr ne sa|BENGALI bn as|GURMUKHI pa|GUJARATI gu
ORIYA or|TAMIL ta|TELUGU te|KANNADA kn|MALAYALAM ml|SINHALA si|THAI th|LAO lo|KHMER km|MYANMAR my|TIBETAN bo
ETHIOPIC am ti|GEORGIAN ka|ARMENIAN hy
"""
_LANGUAGES = {
    script: tuple(codes)
    for script, *codes in (entry.split(" ") for entry in _SCRIPTS.replace("\n", "|").split("|") if entry)
}
_KNOWN = frozenset(code.split("-")[0] for code in LANGUAGES)
# Kurdish is written in both.
_LANGUAGES["LATIN"] = (*sorted(_KNOWN - frozenset[str]().union(*_LANGUAGES.values())), "ku")

# Average letters per word in scripts without spaces; in other scripts a run of letters is one word.
_LETTERS_PER_WORD = dict.fromkeys(("CJK", "HIRAGANA", "KATAKANA"), 1.5) | dict.fromkeys(
    ("THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN"), 4.0
)

LATIN_WEIGHT = 0.8
"""Weight of a Latin word beside another script: texts of any language contain names in Latin letters."""
THRESHOLD = 0.5
"""Least share of a text in the scripts of a language, and least certainty within the script, for `detect`."""
MOST_CHARACTERS = 4000
"""Characters at the beginning of a text that a detection reads."""
EVIDENCE = 1.5
"""Least evidence of another language, where a word of more than three letters counts 1; of one word, 1."""
RATIO = 1.5
"""Least evidence of another language, as a multiple of that of an expected one."""
EVIDENCE_PER_WORD = 0.15
"""Least evidence of another language per word."""
_KANA = ("HIRAGANA", "KATAKANA")
_EAST_ASIAN = ("CJK", *_KANA)
# Characters that only Japanese uses; that are frequent in Chinese; and that only Cantonese uses.
_JAPANESE = frozenset(
    "気駅円図読売広庁営経済産発対関県働込畑様験実検続総録訳鉄銭戦単厳拡択沢渋涙満焼犠獣猟畳歩毎拝挙掲抜払仏仮価倹剣剤勧労勲収団囲圏圧塁塩"
    "増壊壱変姫嬢寛専峠巣帯帰廃弐弾従徳応恵悪悩懐戯戻拠揺摂撃斎暁暦曽枠栄桜桟楽権歓歯歳殻渓渉滝瀬稲穂穏竜粋粛継緑縁縄縦繊聴脳臓荘蔵薬"
    "処蛍覇覚覧観謡譲賛転軽辺逓遅郷酔醸釈鉱錬闘陥険隠隷雑霊頬頼顔顕駆騒髄鶏麺黒黙齢辻匂栃凪喰噛雫笹榊樫塀枡噺杢"
)
_CHINESE = frozenset("你是了我他她们們这這吗嗎呢吧么麼个说說")
_CANTONESE, _ALSO_CANTONESE = frozenset("嘅咗喺佢哋嚟冇啲嘢嗰喎攞瞓嘥"), frozenset("唔咁囉揾咩乜係")
_WORD = re.compile(r"[^\W\d_]+")
_WORD_OF_TWO = re.compile(r"[^\W\d_]{2}")
# Every alternative begins where no other match of it can, or is bounded: a text is read in linear time.
_MARKUP = "|".join(
    (
        r"<!--.{0,999}?-->|<(script|style|code|pre)\b[^<>]*>.{0,999}?</\1\s*>",
        r"</?[a-z][^<>]*>|<[!?][^<>]*>|&(?:[a-z]+\d*|#\d+|#x[\da-f]+);",
        r"`[^`\n]*`|\]\([^()\s]*\)",
        r"\\[a-z]+|\$?\{\{?[\w.:-]*\}?\}|%\(\w+\)[a-z]",
    )
)
"""Comments, code, tags and entities of HTML and XML, code and targets of links in Markdown, commands of
LaTeX, placeholders."""
_QUOTED = re.compile(
    rf"{_MARKUP}|《[^《》]*》|(?<![a-z])[a-z]+://[!-~]+|(?<![\w.+-])[\w.+-]+@[!-~]+",
    re.ASCII | re.IGNORECASE | re.DOTALL,
)
"""Markup, titles, web addresses and e-mail addresses."""


class Detected(NamedTuple):
    """A guess of a text's language."""

    language: str
    confidence: float
    """From 0 to 1."""


def detect(text: str, languages: Sequence[str]) -> Detected | None:
    """The language of a text among several; None where the text says too little or is in another language."""
    if other_language(text, languages) is not None:
        return None
    text = _unquoted(text[:MOST_CHARACTERS])
    scripts = _words_and_grammar(text, languages)
    weights = {code: _weight(code, scripts) for code in languages}
    best, total = max(weights.values(), default=0.0), sum(scripts.values())
    if best < THRESHOLD * total or not best:
        return None
    alike = [code for code, weight in weights.items() if weight > 0.98 * best]
    # All known languages of the script compete, so that the confidence is low where another one is likelier.
    others = [code for code in _vocabularies() if _weight(code, scripts) > 0.98 * best]
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


def other_language(text: str, languages: Sequence[str]) -> Detected | None:
    """The language of a text that is in none of several languages; None in doubt.

    Names, numbers, formulas and words that two languages share leave it in doubt. A language whose words are
    not known here is excluded only by script.
    """
    text, expected = _unquoted(text[:MOST_CHARACTERS]), [code.split("-")[0] for code in languages]
    scripts = words_by_script(text)
    if not scripts or not expected or not _KNOWN.issuperset(expected):
        return None
    total = sum(scripts.values())
    east = sum(scripts.get(script, 0.0) for script in _EAST_ASIAN) / total
    if east > THRESHOLD:
        return _other_east_asian(text, expected, east)
    script = max(scripts, key=scripts.__getitem__)
    own = sum(n for each, n in scripts.items() if _written_in(each, expected)) / total
    rivals = _written_in(script, expected)
    if rivals and scripts[script] > THRESHOLD * total:
        return _other_by_words(text, script, rivals)
    if rivals or own >= THRESHOLD or script not in _LANGUAGES or not _WORD_OF_TWO.search(text):
        return None
    if script == "LATIN":
        return _other_by_words(text, script, [])
    counts, known = _WordCounts(text), _LANGUAGES[script]
    return Detected(max(known, key=counts.hits), round(1.0 - own, 3))


def is_written_like(text: str, language: str) -> bool:
    """Whether most of a text is in the scripts of a language."""
    scripts = words_by_script(_unquoted(text[:MOST_CHARACTERS]))
    return _weight(language, scripts) >= THRESHOLD * sum(scripts.values())


def _other_by_words(text: str, script: str, expected: Sequence[str]) -> Detected | None:
    """The language that the words of a text in one script show, if they speak against the expected ones."""
    known = _vocabularies()
    if not all(code in known for code in expected):
        return None
    # A word counts once: la la la is no French.
    words = [word for word in dict.fromkeys(_WORD.findall(text.lower())) if _script(word[0]) == script]
    speaks_for: dict[str, float] = {}
    expected_words = []
    for word in words:
        shown = _evidence(word)
        if any(code in shown for code in expected):
            expected_words.append(shown)
        elif len(word) > 1 or not word.isascii():
            short = len(word) <= 3 and word.isascii()
            for code, weight in shown.items():
                speaks_for[code] = speaks_for.get(code, 0.0) + (0.5 if short else weight)
    least = max(1.0 if len(words) == 1 else EVIDENCE, EVIDENCE_PER_WORD * len(words))
    against: dict[str, float] = {}
    for code, ours in speaks_for.items():
        if ours >= least and code in _LANGUAGES[script]:
            # Words that both languages have show nothing.
            against[code] = sum(
                max(shown.get(each, 0.0) for each in expected)
                for shown in expected_words
                if code not in shown
            )
    if not against:
        return None
    best = max(against, key=lambda code: (speaks_for[code] - against[code], code))
    ours, own = speaks_for[best], against[best]
    return Detected(best, round(ours / (ours + own + 0.5), 3)) if ours >= RATIO * own else None


@lru_cache(maxsize=1 << 14)
def _evidence(word: str) -> Mapping[str, float]:
    """How much a word, in lower case, speaks for each language: 1, or 1/2 by its letters or its ending."""
    accents = frozenset(letter for letter in word if not letter.isascii())
    found = {}
    for code, known in _vocabularies().items():
        if word in known.words:
            found[code] = 1.0 if len(word) > 1 else 0.5
        elif (accents and accents <= known.accents) or (len(word) > 5 and word.endswith(known.endings)):
            found[code] = 0.5
    return found


def _other_east_asian(text: str, expected: Sequence[str], share: float) -> Detected | None:
    """Japanese, Chinese or Cantonese, if it is not expected and the characters show it."""
    kana = japanese = chinese = cantonese = 0.0
    n = 0
    for letter in text:
        script = _script(letter)
        if script not in _EAST_ASIAN:
            continue
        n += 1
        if script in _KANA and letter not in "ヾヽノー":  # used for faces
            kana += 0.5 if letter == "の" else 1.0  # Chinese brands and signs use this one
        japanese += letter in _JAPANESE
        chinese += letter in _CHINESE
        cantonese += 1.0 if letter in _CANTONESE else 0.5 * (letter in _ALSO_CANTONESE)
    by_japanese = kana + 2 * japanese
    likely = ""
    if by_japanese >= EVIDENCE and by_japanese >= 0.12 * n and by_japanese > 2 * chinese:
        likely = "ja"
    elif cantonese >= 1.0 and cantonese >= 0.1 * n:
        likely = "yue"
    elif chinese >= 0.1 * n and not kana and chinese:
        likely = "zh"
    written = [code for code in ("zh", "yue", "ja") if code in expected]
    if not written:
        likely = likely or "zh"
    elif likely in written or (likely == "zh" and "yue" in written):
        likely = ""
    return Detected(likely, round(share, 3)) if likely else None


def language_among(text: str, languages: Sequence[str], most: int = MOST_CHARACTERS) -> str | None:
    """The language that most of a text is written in, by script alone; None where the script is ambiguous.

    Words of a script that several of the languages share do not count, nor does what follows the first `most`
    characters.
    """
    weights: dict[str, float] = {}
    for script, weight in _words_and_grammar(_unquoted(text[:most]), languages).items():
        written = _written_in(script, languages)
        if len(written) == 1:
            weights[written[0]] = weights.get(written[0], 0.0) + weight
    return max(weights, key=weights.__getitem__) if weights else None


def is_in(text: str, language: str, languages: Sequence[str]) -> bool:
    """Whether the script of a text shows that it is in this one of several languages.

    Three fifths of the words are enough, since texts of any language contain names in Latin letters. For a
    language in Latin letters, every word must be.
    """
    scripts = words_by_script(_unquoted(text[:MOST_CHARACTERS]))
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
    """The words of each script; where there are several scripts, words of grammar count twice."""
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
    """A text without its markup, titles and addresses; the whole text where nothing else has letters."""
    rest = _QUOTED.sub(" ", text)
    return rest if any(letter.isalpha() for letter in rest) else text


@lru_cache(maxsize=1 << 14)
def _script(letter: str) -> str:
    """The script of a letter; empty for anything else."""
    name = unicodedata.name(letter, "") if letter.isalpha() else ""
    return name.removeprefix("FULLWIDTH ").removeprefix("HALFWIDTH ").partition(" ")[0]


class _Vocabulary(NamedTuple):
    """What shows a language: common words, typical letters, endings."""

    grammar: tuple[str, ...] = ()
    words: frozenset[str] = frozenset()
    """Words of grammar, and others."""
    letters: str = ""
    accents: frozenset[str] = frozenset()
    """The letters that are not ASCII."""
    endings: tuple[str, ...] = ()


@cache
def _vocabularies() -> dict[str, _Vocabulary]:
    tables: dict[str, dict[str, list[str]]] = {}
    for line in files(__package__).joinpath("common_words.txt").read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            code, kind, *items = line.split(" ")
            tables.setdefault(code, {}).setdefault(kind, []).extend(items)
    return {code: _vocabulary(**table) for code, table in tables.items()}


def _vocabulary(
    *,
    grammar: Sequence[str] = (),
    words: Sequence[str] = (),
    letters: Sequence[str] = (),
    endings: Sequence[str] = (),
) -> _Vocabulary:
    joined = "".join(letters)
    accents = frozenset(letter for letter in joined if not letter.isascii())
    return _Vocabulary(tuple(grammar), frozenset((*grammar, *words)), joined, accents, tuple(endings))


def _vocabulary_of(language: str) -> _Vocabulary:
    return _vocabularies().get(language.split("-")[0], _Vocabulary())


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
        return words if _vocabulary_of(language).grammar else letters

    def _counts(self, language: str) -> tuple[int, int]:
        known = _vocabulary_of(language)
        words = sum(self._words[word] for word in known.grammar)
        return words, sum(self._letters[letter] for letter in known.letters)
