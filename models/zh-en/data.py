"""The corpus of the bundled translator: from the folders `zh-en` and `zh-en-more` to files to train on.

    pip install opencc-python-reimplemented
    python models/zh-en/data.py DATA/zh-en DATA/zh-en-more OUT --unseen DATA/wmt-zh-en

    OUT/train.{zh,en}.xz             to train on, shuffled; each source as often as `sources.py` says
    OUT/valid.{zh,en}                to validate with: both of the next
    OUT/valid-everyday.{zh,en}       sentences, from the data's own validation set and held out here
    OUT/valid-documents.{zh,en}
    OUT/test.{zh,en}                 the data's own test set
    OUT/report.tsv                   what became of the pairs of every source

Nothing that is trained on has a side in common with a set to validate or to test with, compared without case,
width, spaces and punctuation. The sets under --unseen are kept apart in the same way.
"""

from __future__ import annotations

import argparse
import lzma
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from rules import HAN, RULES, fragment, mended
from sources import MIXED, NUMERALS, SOURCES, SUBTITLES, TOKENISED, TRADITIONAL

from regard.data.numerals import sample
from regard.text.normalisation import comparison_forms

Pair = tuple[str, str]
SEED = 1
SKELETONS = 3
"""Pairs that may differ in nothing but their numbers and their words in Latin letters."""
LONG_SKELETON = 8
"""Chinese characters from which on that is no chance."""
_NOT_HAN = re.compile(f"[^{HAN}]+")
_ZHE = re.compile("(?<![显土编名原巨专论合所卓])著(?![名作称书者述])")


def main() -> None:
    """Read, mend, drop, hold out, weigh and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("zh_en", type=Path)
    parser.add_argument("more", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--unseen", type=Path, action="append", default=[], help="a folder of test sets")
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)

    counts = {source: Counter[str]() for source in SOURCES}
    pairs = {
        source: [*judged(source, found, counts[source])] for source, found in read(asked.zh_en, asked.more)
    }
    pairs["simplified"] = simplified(pairs)
    counts["simplified"]["read"] = len(pairs["simplified"])
    pairs["numerals"] = [(pair.chinese, pair.english) for pair in sample("train", NUMERALS, SEED)]
    counts["numerals"]["read"] = NUMERALS

    valid = own_validation(asked.zh_en)
    test = [*lines_in_step(asked.zh_en / "test")]
    unseen = [
        pair for folder in asked.unseen for name in sets_in(folder) for pair in lines_in_step(folder / name)
    ]
    own = [*lines_in_step(asked.zh_en / "valid")]  # also of sources that are not used
    known = forms([*own, *valid["everyday"], *valid["documents"], *test, *unseen])
    unique(pairs, known, counts)
    for source, held in hold_out(pairs, counts).items():
        valid[SOURCES[source].kind] += held
    unique(pairs, forms([*valid["everyday"], *valid["documents"]]), counts)

    everything = weighed(pairs, counts)
    write(asked.out / "train", everything, packed=True)
    write(asked.out / "valid", [*valid["everyday"], *valid["documents"]])
    for kind, held in valid.items():
        write(asked.out / f"valid-{kind}", held)
    write(asked.out / "test", test)
    (asked.out / "report.tsv").write_text(report(counts), encoding="utf-8")


# --- reading ------------------------------------------------------------------------------------------------


def read(*folders: Path) -> Iterator[tuple[str, list[Pair]]]:
    """The pairs of every source that is used, found by the line numbers in `sources.tsv`."""
    for folder in folders:
        lines = [*lines_in_step(folder / "train")]
        for row in (folder / "sources.tsv").read_text(encoding="utf-8").splitlines()[1:]:
            source, first, last, _ = row.split("\t")
            if source in SOURCES:
                yield source, lines[int(first) - 1 : int(last)]


def lines_in_step(path: Path) -> Iterator[Pair]:
    """The pairs of `path.zh.xz` and `path.en.xz`."""
    files = (Path(f"{path}.{language}.xz") for language in ("zh", "en"))
    texts = (lzma.decompress(file.read_bytes()).decode() for file in files)
    zh, en = ([line.strip() for line in text.removesuffix("\n").split("\n")] for text in texts)
    return zip(zh, en, strict=True)


def sets_in(folder: Path) -> list[str]:
    """The names of the sets in a folder."""
    return sorted(path.name.removesuffix(".zh.xz") for path in folder.glob("*.zh.xz"))


def own_validation(folder: Path) -> dict[str, list[Pair]]:
    """The data's own validation set, of sources that are used, by kind."""
    with lzma.open(folder / "valid.source.xz", "rt", encoding="utf-8") as file:
        sources = file.read().split()
    found: dict[str, list[Pair]] = {"everyday": [], "documents": []}
    for source, pair in zip(sources, lines_in_step(folder / "valid"), strict=True):
        if source in SOURCES:
            found[SOURCES[source].kind].append(mended(*pair, tokenised=source in TOKENISED))
    return found


# --- dropping -----------------------------------------------------------------------------------------------


def judged(source: str, pairs: Iterable[Pair], counts: Counter[str]) -> Iterator[Pair]:
    """The pairs that no rule drops, mended; what is dropped counts under the first rule that drops it."""
    rules = RULES | ({"fragment": fragment} if source in SUBTITLES else {})
    for pair in pairs:
        counts["read"] += 1
        zh, en = mended(*pair, tokenised=source in TOKENISED)
        dropped = next((name for name, rule in rules.items() if rule(zh, en)), None)
        if dropped is None:
            yield zh, en
        else:
            counts[dropped] += 1


def simplified(pairs: dict[str, list[Pair]]) -> list[Pair]:
    """Sentences in traditional characters, in simplified ones; as found they all become one source."""
    from opencc import OpenCC

    def convert(text: str) -> str:
        # OpenCC leaves 著 as it is, which in simplified characters is mostly 着.
        return _ZHE.sub("着", to_simplified(text))

    to_simplified = OpenCC("t2s").convert
    characters = {character for source in MIXED for zh, _ in pairs[source] for character in zh}
    traditional = {character for character in characters if convert(character) != character}
    found = []
    for source in MIXED:
        both = [pair for pair in pairs[source] if not traditional.isdisjoint(pair[0])]
        found += both
        if source != TRADITIONAL:
            left = set(both)
            pairs[source] = [pair for pair in pairs[source] if pair not in left]
            pairs[TRADITIONAL] += both
    return [(convert(zh), en) for zh, en in found]


def forms(pairs: list[Pair]) -> tuple[set[str], set[str]]:
    """Both sides of pairs, as texts are compared."""
    zh, en = (set(comparison_forms([pair[side] for pair in pairs])) for side in (0, 1))
    return zh, en


def unique(
    pairs: dict[str, list[Pair]], known: tuple[set[str], set[str]], counts: dict[str, Counter[str]]
) -> None:
    """Drop what is known from other sets, what came before, and what came before but for its numbers."""
    seen, skeletons = set[Pair](), Counter[str]()
    for source, found in pairs.items():
        compared = zip(*(comparison_forms([pair[side] for pair in found]) for side in (0, 1)), strict=True)
        kept = []
        for pair, form in zip(found, compared, strict=True):
            skeleton = _NOT_HAN.sub("", form[0])
            if form[0] in known[0] or form[1] in known[1]:
                counts[source]["held out"] += 1
            elif form in seen:
                counts[source]["duplicate"] += 1
            elif source != "numerals" and len(skeleton) >= LONG_SKELETON and skeletons[skeleton] >= SKELETONS:
                counts[source]["near duplicate"] += 1
            else:
                kept.append(pair)
                seen.add(form)
                skeletons[skeleton] += 1
        pairs[source] = kept


def hold_out(pairs: dict[str, list[Pair]], counts: dict[str, Counter[str]]) -> dict[str, list[Pair]]:
    """Random pairs of some sources, to validate with."""
    held = {}
    for source, (_, _, number) in SOURCES.items():
        if number:
            drawn = set(random.Random(SEED).sample(range(len(pairs[source])), number))
            held[source] = [pairs[source][i] for i in sorted(drawn)]
            pairs[source] = [pair for i, pair in enumerate(pairs[source]) if i not in drawn]
            counts[source]["held out"] += number
    return held


# --- writing ------------------------------------------------------------------------------------------------


def weighed(pairs: dict[str, list[Pair]], counts: dict[str, Counter[str]]) -> list[Pair]:
    """Every pair as often as its source's weight says, in random order."""
    generator, everything = random.Random(SEED), []
    for source, found in pairs.items():
        whole, part = divmod(SOURCES[source].weight, 1)
        often = [*found * int(whole), *generator.sample(found, round(part * len(found)))]
        counts[source].update(kept=len(found), written=len(often))
        everything += often
    generator.shuffle(everything)
    return everything


def write(path: Path, pairs: list[Pair], *, packed: bool = False) -> None:
    """Two files in step."""
    for language, lines in zip(("zh", "en"), zip(*pairs, strict=True), strict=True):
        data = "".join(f"{line}\n" for line in lines).encode()
        name = path.with_name(f"{path.name}.{language}")
        if packed:
            name.with_name(f"{name.name}.xz").write_bytes(lzma.compress(data, preset=6))
        else:
            name.write_bytes(data)


def report(counts: dict[str, Counter[str]]) -> str:
    """A table: a line a source, a column a reason, the sums last."""
    columns = ["read", *RULES, "fragment", "held out", "duplicate", "near duplicate", "kept", "written"]
    total = sum(counts.values(), Counter[str]())
    rows = [
        [source, *(str(of[column]) for column in columns)] for source, of in {**counts, "sum": total}.items()
    ]
    return "".join("\t".join(row) + "\n" for row in [["source", *columns], *rows])


if __name__ == "__main__":
    main()
