"""A file of short lines through `regard translate`, against a plain CTranslate2 script: fresh processes.

    python benchmarks/door.py --zh test.zh.xz --en test.en.xz

Both get the same Chinese lines on their standard input and run the bundled model, from nothing to the last
line: starting, reading, splitting into subwords, searching, writing. They take turns. The script does what a
CTranslate2 user would write: SentencePiece, two replicas (one a core), batches of 64, and nothing that checks
the texts. With references, the BLEU of both is printed.
"""

from __future__ import annotations

import argparse
import lzma
import os
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.result import Result, write_results  # noqa: E402
from benchmarks.train_step import with_spread  # noqa: E402

SCRIPT = """
import sys, ctranslate2, sentencepiece
folder, subwords, beam, replicas = sys.argv[1:]
pieces = sentencepiece.SentencePieceProcessor(model_file=subwords)
translator = ctranslate2.Translator(folder, compute_type="int8", inter_threads=int(replicas), intra_threads=1)
lines = [line.strip() for line in sys.stdin]
sources = [["<2en>", *each] for each in pieces.encode(lines, out_type=str)]
found = translator.translate_batch(
    sources, beam_size=int(beam), max_batch_size=64, length_penalty=0.75, max_decoding_length=255
)
for each in found:
    print(pieces.decode(each.hypotheses[0]))
"""
OURS, WITHOUT, PEER = "regard translate", "regard translate, no shortlist", "a plain CTranslate2 script"


LONGEST = 60
"""Characters of a short line."""


@dataclass
class Contender:
    """A command, and what it took in each turn."""

    name: str
    command: list[str]
    seconds: list[float] = field(default_factory=list)
    processor_seconds: list[float] = field(default_factory=list)
    output: list[str] = field(default_factory=list)

    def run(self, text: bytes) -> None:
        """Translate the text in a new process."""
        before, start = _children(), time.perf_counter()
        done = subprocess.run(
            self.command, input=text, stdout=subprocess.PIPE, check=True, env=_environment()
        )
        self.seconds.append(time.perf_counter() - start)
        self.processor_seconds.append(_children() - before)
        self.output = done.stdout.decode().removesuffix("\n").split("\n")


def main() -> None:
    """Race with each beam, and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--zh", type=Path, help="a file of Chinese lines; by default the built-in corpus of numerals")
    add("--en", type=Path, help="their translations, for BLEU")
    add("--lines", type=int, default=800, help="short ones: of at most 60 characters, without inline markup")
    add("--beams", nargs="+", type=int, default=[4, 1])
    add("--rounds", type=int, default=5)
    add("--threads", type=int, help="replicas of both; by default one a core")
    add("--results", type=Path, help="where comparisons are kept for benchmarks/table.py")
    options = parser.parse_args()
    pairs = [pair for pair in texts(options.zh, options.en) if is_short(pair[0])][: options.lines]
    lines = [source for source, _ in pairs]
    references = [target for _, target in pairs] if options.en else None
    results = []
    for beam in options.beams:
        contenders = race(lines, beam, options.threads, options.rounds)
        report(contenders, beam, len(lines), references)
        results.append(result(contenders, beam, len(lines)))
    write_results(options.results, results)


def race(lines: Sequence[str], beam: int, threads: int | None, rounds: int) -> list[Contender]:
    """Each contender once without counting, then in turn."""
    from regard.bundled import folder
    from regard.exchange.ctranslate2.cache import converted
    from regard.host import usable_cores

    model = folder("zh-en")
    n_threads = str(threads or usable_cores())
    ours = [sys.executable, "-m", "regard", "translate", "--beam", str(beam), "--threads", n_threads]
    peer = [str(converted(model, "int8", bos=1, eos=2)), str(model / "subwords.model"), str(beam), n_threads]
    contenders = [
        Contender(OURS, ours),
        Contender(WITHOUT, [*ours, "--no-shortlist"]),
        Contender(PEER, [sys.executable, "-c", SCRIPT, *peer]),
    ]
    text = "".join(f"{line}\n" for line in lines).encode()
    for turn in range(rounds + 1):
        for each in contenders:
            each.run(text)
            if turn == 0:
                each.seconds.clear()
                each.processor_seconds.clear()
    return contenders


def report(contenders: Sequence[Contender], beam: int, n_lines: int, references: list[str] | None) -> None:
    """A row for each contender."""
    peer = contenders[-1]
    print(f"\n{n_lines} lines, {'greedy' if beam == 1 else f'beam {beam}'}")
    print(f"{'':32}{'lines/s':>22}{'x the script':>20}{'cpu s':>8}{'x its cpu':>11}{'BLEU':>8}{'same':>7}")
    for each in contenders:
        assert len(each.output) == n_lines, f"{each.name}: {len(each.output)} lines, not {n_lines}"
        ratios = [theirs / ours for theirs, ours in zip(peer.seconds, each.seconds, strict=True)]
        cpu = sorted(each.processor_seconds)[len(each.processor_seconds) // 2]
        of_peer = sorted(peer.processor_seconds)[len(peer.processor_seconds) // 2] / cpu
        same = sum(a == b for a, b in zip(each.output, peer.output, strict=True)) / n_lines
        print(
            f"{each.name:32}{with_spread([n_lines / s for s in each.seconds], '.0f'):>22}"
            f"{with_spread(ratios, '.2f'):>20}{cpu:>8.2f}{of_peer:>11.2f}"
            f"{bleu(each.output, references):>8}{same:>7.0%}",
            flush=True,
        )


def bleu(output: list[str], references: list[str] | None) -> str:
    """BLEU in two digits."""
    if references is None:
        return "-"
    import sacrebleu

    return f"{sacrebleu.corpus_bleu(output, [references]).score:.2f}"


def result(contenders: Sequence[Contender], beam: int, n_lines: int) -> Result:
    """The comparison for the table."""
    ours, peer = ([n_lines / seconds for seconds in each.seconds] for each in (contenders[0], contenders[-1]))
    what = f"{n_lines} lines through `regard translate`, {'greedy' if beam == 1 else f'beam {beam}'}"
    return Result.of_rates(what, "lines/s", ours, "CTranslate2 script", peer)


def texts(zh: Path | None, en: Path | None) -> list[tuple[str, str]]:
    """The lines to translate, with their translations if there are any."""
    if zh is None:
        from regard.data.numerals import sample

        return [(pair.chinese, "") for pair in sample("test", 2000, 1)]
    sources = read(zh)
    return list(zip(sources, read(en) if en else [""] * len(sources), strict=True))


def is_short(line: str) -> bool:
    """Whether a line is short, and has no inline markup, for which torch starts to align words."""
    from regard.engine.markup.plain_text import may_have_markup

    return len(line) <= LONGEST and not may_have_markup(line)


def read(path: Path) -> list[str]:
    """The lines of a file, which may be compressed."""
    content = path.read_bytes()
    text = (lzma.decompress(content) if path.suffix == ".xz" else content).decode()
    return [line.strip() for line in text.removesuffix("\n").split("\n")]


def _children() -> float:
    """Processor seconds of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _environment() -> dict[str, str]:
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return os.environ | {"PYTHONPATH": path, "PYTHONWARNINGS": "ignore"}


if __name__ == "__main__":
    main()
