"""Speed of the server, over real HTTP on loopback, beside the engine alone and a plain handler.

    python benchmarks/serve.py                     the bundled translator, on numbers, dates and prices
    python benchmarks/serve.py --model RUN --texts FILE
    python benchmarks/serve.py --soak 10           ten minutes of good, bad, broken and cancelled requests

Texts are lines of the file, most of them alone and some several together. Offline, all of them are translated
in one call. Answers of the server must be what the offline call gave. At int8 a search can tip over where
sums are rounded otherwise in a batch of another shape, offline as well; how many did is told.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import socket
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.peers.http_client import ask_all  # noqa: E402
from benchmarks.result import Result, write_results  # noqa: E402
from benchmarks.soak import soak  # noqa: E402
from regard import bundled  # noqa: E402
from regard.loaded import load  # noqa: E402
from regard.tasks.loaded import LoadedModel  # noqa: E402

CLIENTS = 64
TIPPED = 0.05
"""Share of answers that rounding may change: 1 to 2% were seen, of texts that have up to eight lines."""
SIZES, SHARES = (1, 3, 8), (0.8, 0.15, 0.05)
"""Lines of a text, and how many texts have so many."""


def main() -> None:
    asked = arguments()
    model, lines = asked.model or bundled.folder(), read_lines(asked.texts)
    texts = mixed(lines, asked.requests)
    loaded = load(model, engine="ctranslate2")
    loaded.translate(texts[:CLIENTS])
    expected = [each.text for each in loaded.translate(texts)]
    if asked.soak:
        with serving(["-m", "regard", "serve", str(model), "--port"]) as port:
            sys.exit(asyncio.run(soak(port, texts, expected, 60 * asked.soak)))
    rates = race(model, loaded, texts, expected, asked.rounds)
    write_results(asked.results, results(rates))


def race(
    model: Path, loaded: LoadedModel, texts: list[str], expected: list[str], rounds: int
) -> dict[str, list[float]]:
    ours = ["-m", "regard", "serve", str(model), "--engine", "ctranslate2", "--port"]
    plain = ["-m", "benchmarks.peers.plain_server", str(model)]
    rates: dict[str, list[float]] = {"offline": [], "regard serve": [], "plain handler": []}
    late: dict[str, list[float]] = {"engine": [], "regard serve": []}
    with serving(ours) as our_port, serving(plain) as plain_port:
        for port in (our_port, plain_port):
            asyncio.run(ask_all(port, texts[:CLIENTS], CLIENTS, outputs))
        for _ in range(rounds):
            rates["offline"].append(offline(loaded, texts))
            rates["regard serve"].append(served(our_port, texts, expected))
            rates["plain handler"].append(served(plain_port, texts, None))
            late["engine"].append(p95(alone(loaded, texts[:100])))
            late["regard serve"].append(p95(asyncio.run(ask_all(our_port, texts[:100], 1, outputs))[1]))
    report(rates, late)
    return rates


def results(rates: dict[str, list[float]]) -> list[Result]:
    names = {"offline": "its own engine, offline", "plain handler": "CTranslate2 in a plain handler"}
    what = f"serve, {CLIENTS} clients"
    ours = rates["regard serve"]
    return [Result.of_rates(what, "texts/s", ours, name, rates[other]) for other, name in names.items()]


def offline(loaded: LoadedModel, texts: list[str]) -> float:
    started = time.perf_counter()
    loaded.translate(texts)
    return len(texts) / (time.perf_counter() - started)


def served(port: int, texts: list[str], expected: list[str] | None) -> float:
    started = time.perf_counter()
    found, _ = asyncio.run(ask_all(port, texts, CLIENTS, outputs))
    seconds = time.perf_counter() - started
    if expected is not None:
        other = sum(a != b for a, b in zip(found, expected, strict=True))
        print(f"{other} of {len(texts)} answers are not what the offline call gave")
        assert other <= TIPPED * len(texts), "more than rounding explains"
    return len(texts) / seconds


def alone(loaded: LoadedModel, texts: list[str]) -> list[float]:
    seconds = []
    for text in texts:
        started = time.perf_counter()
        loaded.translate(text)
        seconds.append(time.perf_counter() - started)
    return seconds


def outputs(answer: dict) -> list[str]:
    return [answer["text"]] if "text" in answer else [item["text"] for item in answer["items"]]


def p95(seconds: list[float]) -> float:
    return statistics.quantiles(seconds, n=20)[-1]


def report(rates: dict[str, list[float]], late: dict[str, list[float]]) -> None:
    for name, found in rates.items():
        print(f"{name:14} {statistics.median(found):8.1f} texts/s   ({min(found):.1f} to {max(found):.1f})")
    for other, bar in (("offline", 0.8), ("plain handler", 3.0)):
        ratio = statistics.median(
            ours / theirs for ours, theirs in zip(rates["regard serve"], rates[other], strict=True)
        )
        print(f"at {CLIENTS} clients, regard serve / {other}: {ratio:.2f} (bar {bar})")
    more = statistics.median(
        ours - engine for ours, engine in zip(late["regard serve"], late["engine"], strict=True)
    )
    engine = statistics.median(late["engine"])
    print(f"p95 at 1 client: engine {1000 * engine:.1f} ms, served {1000 * more:+.1f} ms (bar +10 ms)")


# --- what is served -----------------------------------------------------------------------------------------


def mixed(lines: list[str], n_texts: int) -> list[str]:
    """Texts of one line, and of several, in no order."""
    chance = random.Random(1)
    return ["\n".join(chance.choices(lines, k=size)) for size in chance.choices(SIZES, SHARES, k=n_texts)]


def read_lines(path: Path | None) -> list[str]:
    if path is not None:
        return [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    from regard.data.numerals import sample

    return [pair.chinese for pair in sample("test", 1000, 1)]


@contextmanager
def serving(command: list[str]) -> Iterator[int]:
    """A server in a process of its own; its command ends in the port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = subprocess.Popen([sys.executable, *command, str(port)], cwd=ROOT, stderr=subprocess.DEVNULL)
    try:
        wait_for(port, process)
        yield port
    finally:
        process.terminate()
        process.wait(60)


def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    for _ in range(600):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/openapi.json", timeout=5).read()
        except OSError:
            assert process.poll() is None, "the server ended before it served"
            time.sleep(0.1)
        else:
            return
    raise AssertionError("the server did not start")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", type=Path, help="a model folder, or a run's; else the bundled one")
    parser.add_argument("--texts", type=Path, help="a file of sentences in its source language, one a line")
    parser.add_argument("--requests", type=int, default=1000, help="requests of a turn")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--results", type=Path, help="where comparisons are kept for benchmarks/table.py")
    parser.add_argument(
        "--soak", type=float, metavar="MINUTES", help="mixed load for so long instead of a race"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
