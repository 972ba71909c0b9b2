"""Speed of decoding on a GPU: our torch engine and Hugging Face `generate`, in one run, on the same weights.

    python benchmarks/gpu/decode.py MODEL TEXT.xz [--beam 4] [--rounds 3]

MODEL is a folder that Marian can express: post-norm, with biases, else as in the paper. Both run in bf16,
with no length penalty, on sentences sorted by length. Hugging Face gets the batch size that is fastest for
it, found on a part of the sentences; ours packs batches itself. The two take turns. Tokens are those of the
outputs, the one that ends each counted.
"""

from __future__ import annotations

import argparse
import json
import lzma
import statistics
import sys
import time
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.peers.corpus import BOS, EOS  # noqa: E402
from benchmarks.peers.decoders import HuggingFace  # noqa: E402
from regard.bundle import load_bundle  # noqa: E402
from regard.engine.engine import Request, Search  # noqa: E402
from regard.engine.torch_engine import TorchEngine  # noqa: E402
from regard.text.subwords import Subwords  # noqa: E402

EXTRA_LENGTH = 50
BATCHES = (64, 128, 256, 512)
SAMPLE = 512
"""Sentences, of all lengths, on which the peer's batch size is chosen."""


class Ours:
    """`TorchEngine` as `regard.load(…, device="cuda")` makes it."""

    def __init__(self, folder: Path, beam: int) -> None:
        model = load_bundle(folder, "cuda").model
        model.compute_dtype = torch.bfloat16
        self.engine = TorchEngine([model], bos=BOS, eos=EOS, device="cuda")
        self.search = Search(beam_size=beam, length_penalty=0.0, extra_length=EXTRA_LENGTH)

    def decode(self, sources: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
        found = self.engine.decode([Request(ids=ids) for ids in sources], self.search)
        return [best.ids for best, *_ in found]


def timed(decode, *arguments) -> tuple[float, list[tuple[int, ...]]]:
    torch.cuda.synchronize()
    start = time.perf_counter()
    outputs = decode(*arguments)
    torch.cuda.synchronize()
    return time.perf_counter() - start, outputs


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path)
    parser.add_argument("text", type=Path)
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sentences", type=int, default=3000)
    parser.add_argument("--without-peer", action="store_true")
    options = parser.parse_args()
    subwords = Subwords((options.model / "subwords.model").read_bytes())
    with lzma.open(options.text, "rt", encoding="utf-8") as lines:
        encoded = subwords.encode([line.strip() for line in lines][: options.sentences])
    sources = sorted((tuple(int(i) for i in ids) for ids in encoded if len(ids)), key=len)
    device = torch.cuda.get_device_name()
    print(f"{device}, torch {torch.__version__}, bf16, beam {options.beam}, {len(sources):,} sentences")

    ours = Ours(options.model, options.beam)
    cold, _ = timed(ours.decode, sources)
    print(f"regard, the first time: {cold:.2f} s (steps are captured on the way)", flush=True)
    turns: dict[str, list[float]] = {"regard": []}
    outputs: dict[str, list[tuple[int, ...]]] = {}
    if not options.without_peer:
        peer = HuggingFace(options.model, "bfloat16", 8, EXTRA_LENGTH, device="cuda")
        sample = sources[:: max(1, len(sources) // SAMPLE)]
        peer.decode(sample[:64], options.beam, 64)
        speeds = {
            batch: len(sample) / timed(peer.decode, sample, options.beam, batch)[0] for batch in BATCHES
        }
        best = max(speeds, key=speeds.__getitem__)
        told = ", ".join(f"{batch}: {speed:.0f}" for batch, speed in speeds.items())
        print(f"Hugging Face, sentences/s by batch size: {told}; takes {best}", flush=True)
        turns["hugging face"] = []
    for _ in range(options.rounds):
        seconds, outputs["regard"] = timed(ours.decode, sources)
        turns["regard"].append(seconds)
        if not options.without_peer:
            seconds, outputs["hugging face"] = timed(peer.decode, sources, options.beam, best)
            turns["hugging face"].append(seconds)
    for name, seconds in turns.items():
        tokens = sum(len(ids) + 1 for ids in outputs[name])
        median = statistics.median(seconds)
        print(
            f"{name:<14}{median:8.2f} s ({min(seconds):.2f} to {max(seconds):.2f})"
            f"{len(sources) / median:10,.0f} sentences/s{tokens / median:12,.0f} target tokens/s"
        )
    if "hugging face" in turns:
        pairs = zip(turns["regard"], turns["hugging face"], strict=True)
        ratio = statistics.median(theirs / our for our, theirs in pairs)
        same = sum(map(tuple.__eq__, outputs["regard"], outputs["hugging face"])) / len(sources)
        print(f"regard is {ratio:.1f}x Hugging Face; {same:.1%} of the outputs are the same")
    print(json.dumps({"turns": turns, "peak_gb": torch.cuda.max_memory_allocated() / 1e9}))


if __name__ == "__main__":
    main()
