"""What looking costs: our trace and page against bertviz's model view, the same weights and text, in one run.

    pip install -e ".[bench]"
    python benchmarks/look.py [--lengths 30 128 512] [--rounds 5]
    python benchmarks/look.py --influence [--rounds 5]

The base shape with made-up weights, which Marian can express, on a CPU. `score` scores the pair, `look`
traces it, `page` traces it and makes the HTML file; bertviz's model view is made from Marian's attentions,
which are computed anew each time, as the trace is. Ours holds every number of the formula, theirs the weights
alone. Contenders take turns. Sizes are those of the HTML. The peak of memory is that of a process of its own.
Beyond 256 tokens bertviz would need gigabytes of JSON, and is left out.

With `--influence`: the seconds of `influences`, all methods on one output token, as the page asks for them,
with the bundled translator, a short and a long text in both directions. Seconds of the processor are those of
all threads; they say more where others use the machine.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.result import Result, write_results  # noqa: E402

CACHE = ROOT / ".cache"
VOCABULARY = 1000
LONGEST = 256
"""Tokens that bertviz is given."""
SENTENCES = {
    ("short", "en"): "天气比我们预想的要好。",
    ("short", "zh"): "The weather was better than we had expected.",
    (
        "long",
        "en",
    ): "昨天下午，来自全国各地的三百多名教师和研究人员在北京参加了为期两天的会议，讨论如何在农村学校推广"
    "新的教学方法，并且就未来五年的经费安排、教师培训计划以及与地方政府之间的合作方式交换了意见，但是双方没有达成最后的协议。",
    (
        "long",
        "zh",
    ): "Yesterday afternoon more than three hundred teachers and researchers from all parts of the "
    "country met in Beijing for a conference of two days, discussed how new methods of teaching could be "
    "introduced in rural schools, and exchanged views on the budget of the next five years, on the training "
    "of teachers and on the cooperation with local governments.",
}
"""Texts whose influences are measured, by the language they are translated to."""


def prepared() -> Path:
    """A folder with made-up weights of the base shape, and real subwords."""
    import torch

    from regard.bundle import save_bundle
    from regard.config import ModelConfig
    from regard.data.numerals import sample
    from regard.model.transformer import Transformer
    from regard.text.vocabularies.subwords import learn_subwords

    lines = [text for pair in sample("train", 2000, 1) for text in pair[:2]]
    torch.manual_seed(1)
    model = Transformer(ModelConfig(vocab_size=VOCABULARY, attention_bias=True))
    CACHE.mkdir(exist_ok=True)
    subwords = learn_subwords(lines, VOCABULARY, threads=1)
    return save_bundle(CACHE / "look-base", model, subwords=subwords, overwrite=True)


class Ours:
    """`look` and its page."""

    def __init__(self, folder: Path, length: int) -> None:
        from regard.bundle import load_bundle
        from regard.engine.engines.torch_engine import TorchEngine
        from regard.text.vocabularies.subwords import Subwords

        bundle = load_bundle(folder)
        self.model, self.subwords = bundle.model, Subwords(bundle.subwords)
        self.ids = [10 + i * 7 % (VOCABULARY - 20) for i in range(length - 1)]
        self.engine = TorchEngine([self.model], bos=self.subwords.bos_id, eos=self.subwords.eos_id)

    def score(self) -> None:
        self.engine.score([self.ids], [self.ids])

    def look(self):
        from regard.look.trace.recorder import look

        return look(self.model, self.subwords, self.ids, self.ids)

    def page(self) -> int:
        from regard.look.export.html import html

        return len(html(self.look()).encode())


class Bertviz:
    """Marian's attentions, as bertviz's model view shows them."""

    def __init__(self, folder: Path, length: int) -> None:
        import torch

        from benchmarks.peers.marian_weights import as_marian

        self.model = as_marian(folder, torch.float32)
        self.model.set_attn_implementation("eager")
        self.ids = torch.tensor([[10 + i * 7 % (VOCABULARY - 20) for i in range(length)]])
        self.names = [f"t{i}" for i in range(length)]

    def page(self) -> int:
        import torch
        from bertviz import model_view

        with torch.inference_mode():
            found = self.model(input_ids=self.ids, decoder_input_ids=self.ids, output_attentions=True)
        shown = model_view(
            encoder_attention=found.encoder_attentions,
            decoder_attention=found.decoder_attentions,
            cross_attention=found.cross_attentions,
            encoder_tokens=self.names,
            decoder_tokens=self.names,
            html_action="return",
        )
        return len(shown.data.encode())


def race(folder: Path, length: int, rounds: int) -> list[Result]:
    """Contenders take turns; medians, and ratios round by round."""
    ours = Ours(folder, length)
    work = {"score": ours.score, "look": ours.look, "page": ours.page}
    if length <= LONGEST:
        work["bertviz"] = Bertviz(folder, length).page
    made = {name: run() for name, run in work.items()}
    turns: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(rounds):
        for name, run in work.items():
            start = time.perf_counter()
            run()
            turns[name].append(time.perf_counter() - start)

    def ratio(one: str, other: str) -> float:
        return statistics.median(a / b for a, b in zip(turns[one], turns[other], strict=True))

    told = ", ".join(f"{name} {statistics.median(seconds):.3f} s" for name, seconds in turns.items())
    print(f"{length} + {length} tokens: {told}")
    print(f"  look is {ratio('look', 'score'):.2f}x scoring; the page has {made['page'] / 1e6:.1f} MB")
    if "bertviz" not in work:
        return []
    size = f"{made['bertviz'] / made['page']:.1f}x the size ({made['bertviz'] / 1e6:.1f} MB)"
    print(f"  bertviz takes {ratio('bertviz', 'page'):.1f}x the time of the page, and has {size}", flush=True)
    text, megabytes = (
        f"{length} + {length} tokens",
        {name: [made[name] / 1e6] for name in ("page", "bertviz")},
    )
    return [
        Result.of_costs(f"look and page, {text}", "s", turns["page"], "bertviz", turns["bertviz"]),
        Result.of_costs(f"page, {text}", "MB", megabytes["page"], "bertviz", megabytes["bertviz"]),
    ]


def peak(name: str, folder: Path, length: int) -> float:
    """Megabytes that a process of its own needs at most, everything counted."""
    command = [sys.executable, __file__, "--alone", name, str(folder), str(length)]
    answer = subprocess.run(command, check=True, capture_output=True, text=True)
    return int(answer.stdout.splitlines()[-1]) / 1000


def influence(rounds: int) -> None:
    """Seconds of all methods of influence, on an output token in the middle and on the last one."""
    import torch

    import regard

    loaded = regard.load()
    for (name, to), text in SENTENCES.items():
        trace = loaded.look(text, to=to)
        rows = {"middle": len(trace.targets) // 2, "last": len(trace.targets) - 1}
        for place, row in rows.items():
            turns, processor = [], []
            for _ in range(rounds):
                start, used = time.perf_counter(), time.process_time()
                found = loaded.influences(trace, row)
                turns.append(time.perf_counter() - start)
                processor.append(time.process_time() - used)
            print(
                f"{name} text to {to}, {len(trace.inputs)} + {len(trace.outputs)} tokens, {place} token, "
                f"{torch.get_num_threads()} threads: {statistics.median(turns):.2f} s, of the processor "
                f"{statistics.median(processor):.2f} s; {found.convergence}",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lengths", nargs="+", type=int, default=[30, 128, 512])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--results", type=Path, help="where comparisons are kept for benchmarks/table.py")
    parser.add_argument("--alone", nargs=3, metavar=("NAME", "FOLDER", "LENGTH"), help=argparse.SUPPRESS)
    parser.add_argument("--influence", action="store_true", help="the seconds of influence instead")
    options = parser.parse_args()
    if options.influence:
        influence(options.rounds)
        return
    if options.alone:
        name, folder, length = options.alone
        {"regard": Ours, "bertviz": Bertviz}[name](Path(folder), int(length)).page()
        status = Path("/proc/self/status").read_text()  # getrusage would tell of the parent's peak, too
        print(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")))
        return
    folder, results = prepared(), []
    for length in options.lengths:
        results += race(folder, length, options.rounds)
        names = ("regard", "bertviz") if length <= LONGEST else ("regard",)
        peaks = {name: peak(name, folder, length) for name in names}
        print(
            "  peak of memory: "
            + ", ".join(f"{name} {megabytes:,.0f} MB" for name, megabytes in peaks.items())
        )
    write_results(options.results, results)


if __name__ == "__main__":
    main()
