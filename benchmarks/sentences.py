"""Sentence boundaries: our rules against sentencex and pysbd, where these are installed.

    python benchmarks/sentences.py DATA [--half held-out] [--show FILE]

DATA has files NAME.LANGUAGE.xz of one sentence per line, in any folders; those in CORPORA are read, in en,
zh and de. Five consecutive lines of a file are one text: with a space between sentences, in Chinese without.
The end of a text is not counted. Odd texts are the held-out half.

A line is left out, and counted, if it
- has no end mark: a heading, a fragment;
- begins in lower case: the rest of a broken sentence (not in the lower-cased corpora);
- has several sentences, so that its inner boundaries are unknown: in Chinese, an end mark inside the line and
  not before a closing mark; in other languages, one that a capital, a digit or an opening quote follows.
  A full stop counts here only after a word that ends lines of this language, or has more than four letters,
  and is not followed by a full stop and a lower-case word inside lines. So abbreviations are kept, without a
  list of them.
What remains inside the lines (abbreviations, initials, decimals, quotations, addresses) are places where a
splitter must not split. Some lines of several sentences remain, too; all splitters pay for them.

Hard cases are our own (tests/engine/sentence_cases.txt), and are reported separately: our rules were
developed on them.
"""

from __future__ import annotations

import argparse
import importlib.util
import lzma
import random
import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from html import unescape
from itertools import accumulate
from pathlib import Path

from regard.engine.document.sentences import sentences

CORPORA = {
    "news": ("newstest2013", "newstest2014", "newstest2017", "newstest2018"),
    "medicine": ("tico19-test",),
    "captions": ("test2016",),
    "mixed": ("zh-en/test", "zh-en/valid", "en-de/test", "en-de/valid"),
    "train": ("zh-en/train", "en-de/train"),
    "lower-cased speech": ("iwslt14-de-en/valid", "iwslt14-de-en/test_first_half"),
}
"""Kinds of text and the files of each: FOLDER/NAME or NAME."""
LOWER = "lower-cased speech"
"""The kind whose lines are tokenised and without capitals; the spaces before marks are removed."""
EVERY = {"train": 40}
"""One run of lines of so many is used; ten times as many show which words end sentences."""
SIZE = 5
"""Sentences in a text."""
CASES = Path(__file__).parents[1] / "tests" / "engine" / "sentence_cases.txt"
PEERS = ("ours", "sentencex", "pysbd")

_CLOSING = "\"'”’»›)\\]}」』）》】〉〕“‘"
_FINAL = re.compile(rf"[.!?…。！？｡؟।][{_CLOSING}]*\Z")
_WIDE_INSIDE = re.compile(rf"[。！？｡?!]+(?=\s*[^\s。！？｡?!…，、；：,;:{_CLOSING}])")
_SPACED_MARK = re.compile(r" ([.,!?;:])(?=\s|\Z)")
_INSIDE = re.compile(rf"(\S*?)([.!?…]+)([{_CLOSING}]*)\s+[\"'“„‘«»(\[–—-]*[^\W_a-zäöüß]")
_INSIDE_LOWER = re.compile(rf"(\S*?)([.!?]+)([{_CLOSING}]*)\s+\w")
_BEFORE_LOWER = re.compile(r"(\w+)\.\s+(?=[a-zäöüß])")
_LAST_WORD = re.compile(r"(\w+)\.\Z")

Splitter = Callable[[str], list[str]]


@dataclass
class Score:
    """Counts of one splitter on texts of one kind."""

    right: int = 0
    false: int = 0
    missed: int = 0
    texts: int = 0
    perfect: int = 0
    sentences: int = 0
    seconds: float = 0.0
    size: int = 0
    wrong: list[tuple[str, frozenset[int], frozenset[int]]] = field(default_factory=list)

    def add(self, text: str, expected: frozenset[int], found: frozenset[int]) -> None:
        """Count one text; boundaries are numbers of characters before them, without spaces."""
        false, missed = found - expected, expected - found
        self.right += len(expected & found)
        self.false += len(false)
        self.missed += len(missed)
        self.texts += 1
        self.perfect += not false and not missed
        self.sentences += len(expected) + 1
        if false or missed:
            self.wrong.append((text, false, missed))

    def row(self, name: str) -> str:
        precision = self.right / max(1, self.right + self.false)
        recall = self.right / max(1, self.right + self.missed)
        f1 = 2 * precision * recall / max(1e-9, precision + recall)
        return (
            f"{name} | {precision:.1%} | {recall:.1%} | {f1:.1%} | {self.perfect / max(1, self.texts):.1%} | "
            f"{1000 * self.false / max(1, self.sentences):.1f} | {1e6 * self.seconds / max(1, self.size):.2f}"
        )


HEAD = " | precision | recall | F1 | texts all right | false per 1,000 sentences | s per MB"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--half", choices=("held-out", "development"), default="held-out")
    parser.add_argument("--show", type=Path, help="Write a sample of what each splitter has wrong to FILE.")
    options = parser.parse_args()
    names = [name for name in PEERS if name == "ours" or importlib.util.find_spec(name)]
    for name in sorted({*PEERS} - {*names}):
        print(f"{name} is not installed: pip install {name}")
    shown = []
    for language in ("en", "zh", "de"):
        kinds = corpora(options.data, language)
        for kind, texts in kinds.items():
            half = texts[options.half == "held-out" :: 2]
            print(f"\n{language}, {kind}: {len(half)} texts\n{HEAD}")
            for name, score in compared(names, language, half).items():
                print(score.row(name), flush=True)
                shown.append((f"{language} {kind}", name, score))
    print("\nOur own hard cases")
    for language, cases in hard_cases().items():
        scores = {name: scored(splitter(name, language), cases) for name in names}
        found = ", ".join(f"{name} {each.perfect} ({each.false})" for name, each in scores.items() if each)
        print(f"{language}: {len(cases)} cases; all right (false splits): {found}")
        shown += [(f"{language} cases", name, score) for name, score in scores.items() if score]
    if options.show:
        write_sample(options.show, shown)


# --- texts with known boundaries ----------------------------------------------------------------------------


def corpora(data: Path, language: str) -> dict[str, list[list[str]]]:
    """Texts, as lists of sentences, of each kind; prints what was left out."""
    files = {
        kind: [path for name in names for path in sorted(data.rglob(f"*{name.split('/')[-1]}.{language}.xz"))
               if str(path.with_name(path.name.split(".")[0])).endswith(name)]
        for kind, names in CORPORA.items()
    }  # fmt: skip
    lines = {
        kind: [list(sampled(path, kind, EVERY.get(kind, 1))) for path in paths]
        for kind, paths in files.items()
    }
    shown = (
        line
        for kind, paths in files.items()
        if kind != LOWER
        for path in paths
        for line in sampled(path, kind, EVERY.get(kind, 1) // 10 or 1)
    )
    words = Words(shown)
    found = {}
    for kind, some in lines.items():
        judged = [[(line, why_left_out(line, kind, language, words)) for line in each] for each in some]
        blocks = list(texts_of(judged))
        why = Counter(reason for each in judged for _, reason in each)
        if blocks:
            print(f"{language}, {kind}: {why.pop('', 0)} lines used, left out {dict(why)}", flush=True)
            found[kind] = blocks
    return found


def sampled(path: Path, kind: str, every: int) -> Iterator[str]:
    """One run of 100 lines of `every` runs of a file."""
    with lzma.open(path, "rt", encoding="utf-8") as file:
        for i, line in enumerate(file):
            if i // 100 % every == 0 and line.strip():
                line = " ".join(line.split())
                yield _SPACED_MARK.sub(r"\1", unescape(line)) if kind == LOWER else line


class Words:
    """Words of a language: which of them end sentences, as the corpora show."""

    def __init__(self, lines: Iterator[str]) -> None:
        self.last: Counter[str] = Counter()
        self.abbreviated: Counter[str] = Counter()
        for line in lines:
            self.last.update(_LAST_WORD.findall(line))
            self.abbreviated.update(_BEFORE_LOWER.findall(line))

    def end(self, word: str) -> bool:
        """Whether a full stop after this word ends a sentence for sure."""
        if not word or not word[-1].isalnum():
            return True
        word = re.split(r"\W", word)[-1]
        if word.isdigit():
            return len(word) > 2
        often = self.last[word] > 2 and self.last[word] > 2 * self.abbreviated[word]
        return len(word) > 1 and (often or (len(word) > 4 and not self.abbreviated[word]))


def why_left_out(line: str, kind: str, language: str, words: Words) -> str:
    """The reason why a line is not one sentence for sure, or an empty text."""
    if not _FINAL.search(line):
        return "no end mark"
    if language == "zh":
        return "several" if _WIDE_INSIDE.search(line) else ""
    if kind != LOWER and line[0].islower():
        return "lower-case start"
    for match in (_INSIDE_LOWER if kind == LOWER else _INSIDE).finditer(line):
        if match[2] != "." or match[3] or words.end(match[1]):
            return "several"
    return ""


def texts_of(files: list[list[tuple[str, str]]]) -> Iterator[list[str]]:
    for file in files:
        kept = [line for line, reason in file if not reason]
        yield from (kept[i : i + SIZE] for i in range(0, len(kept) - SIZE + 1, SIZE))


def hard_cases() -> dict[str, list[tuple[str, frozenset[int]]]]:
    """Cases by language: the text and its boundaries."""
    found: defaultdict[str, list[tuple[str, frozenset[int]]]] = defaultdict(list)
    for line in CASES.read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            language = line[2:].split(",")[0]
        elif line:
            plain = line.replace("|", "")
            found[language].append((plain, boundaries(line.split("|"))))
    return found


# --- splitters ----------------------------------------------------------------------------------------------


def splitter(name: str, language: str) -> Splitter | None:
    """A splitter for one language, or None if the library has none."""
    if name == "ours":
        return sentences
    if name == "sentencex":
        import sentencex

        return partial(sentencex.segment, language)
    import pysbd

    if language not in pysbd.languages.LANGUAGE_CODES:
        return None
    return pysbd.Segmenter(language=language, clean=False).segment


def boundaries(pieces: list[str]) -> frozenset[int]:
    """Boundaries between pieces, as the numbers of characters before them, without spaces."""
    sizes = [sum(map(len, piece.split())) for piece in pieces]
    ends = list(accumulate(sizes))
    return frozenset(end for end in ends[:-1] if 0 < end < ends[-1])


def scored(split: Splitter | None, cases: list[tuple[str, frozenset[int]]]) -> Score | None:
    if split is None:
        return None
    score = Score(size=sum(len(text.encode()) for text, _ in cases))
    began = time.perf_counter()
    found = [split(text) for text, _ in cases]
    score.seconds = time.perf_counter() - began
    for (text, expected), pieces in zip(cases, found, strict=True):
        score.add(text, expected, boundaries(pieces))
    return score


def compared(names: list[str], language: str, texts: list[list[str]]) -> dict[str, Score]:
    joint = "" if language == "zh" else " "
    cases = [(joint.join(text), boundaries(text)) for text in texts]
    scores = {name: scored(splitter(name, language), cases) for name in names}
    return {name: score for name, score in scores.items() if score}


# --- what to read -------------------------------------------------------------------------------------------


def write_sample(path: Path, shown: list[tuple[str, str, Score]], most: int = 100) -> None:
    draw = random.Random(1)
    with path.open("w", encoding="utf-8") as file:
        for kind, name, score in shown:
            for text, false, missed in draw.sample(score.wrong, min(most, len(score.wrong))):
                file.write(f"{kind}\t{name}\t{marked(text, false, missed)}\n")


def marked(text: str, false: frozenset[int], missed: frozenset[int]) -> str:
    """A text with ⟦+⟧ where it was split wrongly and ⟦-⟧ where a split is missing."""
    marks = dict.fromkeys(false, "⟦+⟧") | dict.fromkeys(missed, "⟦-⟧")
    pieces, n = [], 0
    for letter in text:
        pieces.append(letter)
        if not letter.isspace():
            n += 1
            pieces.append(marks.pop(n, ""))
    return "".join(pieces)


if __name__ == "__main__":
    main()
