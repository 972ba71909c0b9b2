"""How fast the bundled translator is on this machine's CPU.

    python benchmarks/bundled.py [--texts FILE] [--rounds 5]

Target tokens a second, in batches, greedy and with a beam of 4; one sentence of 15 tokens; and a process that
starts, translates once and ends. FILE has sentences, one a line; without it they are those that the package
makes itself, numbers and dates among them, which are short.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import regard  # noqa: E402
from regard.data.numerals import sample  # noqa: E402
from regard.tasks.loaded.translator import LoadedTranslator  # noqa: E402

SENTENCES, LONG = 640, 15
ONCE = "我昨天在图书馆丢了我的钥匙。"


def seconds(work: Callable[[], object]) -> float:
    """How long something takes."""
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def tokens_a_second(model: LoadedTranslator, texts: list[str], beam_size: int, rounds: int) -> list[float]:
    """Of outputs, round by round."""
    rates = []
    for _ in range(rounds):
        begun = time.perf_counter()
        results = model.translate(texts, beam_size=beam_size)
        n_tokens = sum(len(result.tokens) for result in results)
        rates.append(n_tokens / (time.perf_counter() - begun))
    return rates


def one_of_15(model: LoadedTranslator, texts: list[str]) -> str:
    """The first text whose translation has 15 tokens, or the most below."""
    results = model.translate(texts, beam_size=1)
    lengths = [len(result.tokens) if len(result.tokens) <= LONG else 0 for result in results]
    return texts[max(range(len(texts)), key=lengths.__getitem__)]


def told(what: str, unit: str, values: list[float]) -> None:
    """A line: the median, the least and the most."""
    print(f"{what:40} {statistics.median(values):8,.1f} {unit} ({min(values):,.1f} to {max(values):,.1f})")


def main() -> None:
    """Measure, one after another."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--texts", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    if asked.texts is None:
        texts = [pair.chinese for pair in sample("test", SENTENCES, 1)]
    else:
        texts = asked.texts.read_text(encoding="utf-8").splitlines()[:SENTENCES]
    model = regard.load()
    model.translate(texts[:64])  # everything is loaded
    for beam_size in (1, 4):
        told(f"beam {beam_size}", "target tokens/s", tokens_a_second(model, texts, beam_size, asked.rounds))
    text = one_of_15(model, texts)
    for beam_size in (1, 4):
        alone = partial(model.translate, text, beam_size=beam_size)
        times = [1000 * seconds(alone) for _ in range(10 * asked.rounds)]
        told(f"one sentence of {LONG} tokens, beam {beam_size}", "ms", times)
    command = [sys.executable, "-m", "regard", "translate", ONCE]
    process = partial(subprocess.run, command, check=True, stdout=subprocess.PIPE)
    told("a process, from start to end", "s", [seconds(process) for _ in range(asked.rounds)])


if __name__ == "__main__":
    main()
