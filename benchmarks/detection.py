"""Language detection: ours against py3langid and lingua, where they are installed.

    python benchmarks/detection.py DATA [--sample 5000]

DATA has files NAME.LANGUAGE.xz, such as train.zh.xz, in any folders: texts in zh and en, which must not be
taken for another language, and German ones, which must. Lines of other languages come from tests/text.
Lines, and pieces of 1, 2, 3 and 5 words (in Chinese, of two characters each), are judged.

A library always names a language. To compare at equal harm, it may say "other" only where its probability is
above the threshold of a grid at which at most 0.1% of the zh and en texts of every length are lost.
"""

from __future__ import annotations

import argparse
import importlib.util
import lzma
import random
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

from regard.text.detection import other_language

HOME = ("zh", "en")
LENGTHS = (0, 1, 2, 3, 5)
"""Words of a piece; 0 is the whole line."""
MOST_LOST = 0.001
GRID = (0.0, 0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999, 0.9999)
LINES = Path(__file__).parents[1] / "tests" / "text" / "lines_of_languages.tsv"
START = {
    "ours": "from regard.text.detection import other_language; other_language('Bonjour', ['zh', 'en'])",
    "py3langid": "import py3langid; py3langid.classify('Bonjour')",
    "lingua": "from lingua import LanguageDetectorBuilder as B; "
    "B.from_all_languages().build().detect_language_of('Bonjour')",
}
Detector = Callable[[str], tuple[str, float]]
"""The language of a text and its probability."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--sample", type=int, default=5000, help="Texts of each language and length.")
    parser.add_argument(
        "--every-line", action="store_true", help="Count false refusals of ours on all lines."
    )
    options = parser.parse_args()
    texts = dict(sampled(options.data, options.sample))
    foreign = [line.split("\t") for line in LINES.read_text(encoding="utf-8").splitlines()]
    for name, make in (("ours", ours), ("py3langid", py3langid), ("lingua", lingua)):
        if name == "ours" or importlib.util.find_spec(name):
            start(name)
            judge(name, make(), texts, foreign)
    if options.every_line:
        every_line(options.data)


def files(data: Path) -> Iterator[tuple[str, Path]]:
    for path in sorted(data.rglob("*.xz")):
        parts = path.name.split(".")
        if len(parts) == 3 and parts[1].split("-")[0] in ("zh", "en", "de"):
            yield parts[1].split("-")[0], path


def lines_of(path: Path) -> Iterator[str]:
    with lzma.open(path, "rt", encoding="utf-8") as file:
        yield from (line.strip() for line in file if line.strip())


def sampled(data: Path, size: int) -> Iterator[tuple[tuple[str, int], list[str]]]:
    """Texts by language and length, the same number of every file."""
    draw = random.Random(1)
    found: defaultdict[str, list[str]] = defaultdict(list)
    paths = list(files(data))
    for language, path in paths:
        share = -(-2 * size // sum(language == each for each, _ in paths))
        lines = [line for _, line in zip(range(100_000), lines_of(path), strict=False)]
        found[language] += draw.sample(lines, min(share, len(lines)))
    for language, lines in found.items():
        for length in LENGTHS:
            pieces = [each for line in lines if (each := piece(line, length, language, draw))]
            yield (language, length), draw.sample(pieces, min(size, len(pieces)))


def piece(line: str, length: int, language: str, draw: random.Random) -> str:
    """Some consecutive words of a line; empty if it has fewer."""
    units = list(line.replace(" ", "")) if language == "zh" else line.split(" ")
    size = length * 2 if language == "zh" else length
    if not length:
        return line
    if len(units) < size:
        return ""
    first = draw.randrange(len(units) - size + 1)
    return ("" if language == "zh" else " ").join(units[first : first + size])


def ours() -> Detector:
    def detect(text: str) -> tuple[str, float]:
        other = other_language(text, HOME)
        return (other.language, 1.0) if other else (HOME[0], 1.0)

    return detect


def py3langid() -> Detector:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    return identifier.classify


def lingua() -> Detector:
    from lingua import LanguageDetectorBuilder

    detector = LanguageDetectorBuilder.from_all_languages().build()

    def detect(text: str) -> tuple[str, float]:
        (best, *_) = detector.compute_language_confidence_values(text)
        return best.language.iso_code_639_1.name.lower(), best.value

    return detect


def start(name: str) -> None:
    """Print the processor time and memory of a process that detects one text, above those of an empty one."""
    measured = []
    for code in ("pass", START[name]):
        code += "; import time; print(time.process_time(), open('/proc/self/status').read())"
        done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
        seconds, *status = done.stdout.split()
        measured.append((float(seconds), int(status[status.index("VmHWM:") + 1]) / 1024))
    (empty_s, empty_mib), (full_s, full_mib) = measured
    print(f"\n{name}: first text after {full_s - empty_s:.2f} s, {full_mib - empty_mib:.0f} MiB")


def judge(
    name: str, detect: Detector, texts: dict[tuple[str, int], list[str]], foreign: list[list[str]]
) -> None:
    began = time.perf_counter()
    found = {key: [detect(text) for text in some] for key, some in texts.items()}
    spent = (time.perf_counter() - began) / sum(map(len, texts.values()))
    print(f"{name}: {1e6 * spent:.0f} µs per text")
    thresholds = [0.0] if name == "ours" else [0.0, least_harm(found)]
    for threshold in thresholds:
        print(f"  other only above {threshold}: share called other, for lines and 1, 2, 3, 5 words")
        for language in dict.fromkeys(each for each, _ in found):
            shares = [share_of_others(found[language, length], threshold) for length in LENGTHS]
            print(f"    {language}  " + "  ".join(f"{share:7.2%}" for share in shares))
        named = [(code, *detect(text)) for code, text in foreign]
        others = sum(best not in HOME and sure >= threshold for _, best, sure in named)
        right = sum(code == best and sure >= threshold for code, best, sure in named)
        print(f"    own lines: {others} of {len(named)} called other, {right} by their language")


def share_of_others(found: list[tuple[str, float]], threshold: float) -> float:
    return sum(best not in HOME and sure >= threshold for best, sure in found) / len(found)


def least_harm(found: dict[tuple[str, int], list[tuple[str, float]]]) -> float:
    """The least threshold at which few texts of ours are lost, or 1."""
    home = [some for (language, _), some in found.items() if language in HOME]
    fitting = (each for each in GRID if all(share_of_others(some, each) <= MOST_LOST for some in home))
    return next(fitting, 1.0)


def every_line(data: Path) -> None:
    """Print how many lines of each language ours calls other."""
    counts: dict[str, list[int]] = {}
    for language, path in files(data):
        total, other = counts.setdefault(language, [0, 0])
        for line in lines_of(path):
            total += 1
            other += other_language(line, HOME) is not None
        counts[language] = [total, other]
    for language, (total, other) in counts.items():
        print(f"every line, {language}: {other:,} of {total:,} called other, {other / total:.4%}")


if __name__ == "__main__":
    main()
