"""Speed of decoding on a GPU: our torch engine and Hugging Face `generate`, in one run, on the same weights.

    python benchmarks/gpu/decode.py TEXT.xz [--model FOLDER] [--beam 4] [--rounds 3]

Without a model: the base shape with made-up weights that never end an output, 32,768 subwords, sentences as
long as those of the text (1.3 made-up tokens a word), and outputs as long as their sentences. FOLDER is a
model that Marian can express: post-norm, with biases, else as in the paper. Both run in bf16, with no length
penalty, on sentences sorted by length. Hugging Face gets the batch size that is fastest for it, found on a
part of the sentences; ours packs batches itself. The two take turns. They are compared by the tokens that
each writes: without an end, Hugging Face writes every sentence of a batch as long as its longest. A part of
the sentences is decoded in float32, too, where both should find the same.
"""

from __future__ import annotations

import argparse
import lzma
import random
import statistics
import sys
import time
from itertools import islice
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))
CACHE = ROOT / ".cache"

from benchmarks.peers.corpus import BOS, EOS  # noqa: E402
from benchmarks.peers.decode_models import endless  # noqa: E402
from benchmarks.peers.decoders import HuggingFace  # noqa: E402
from benchmarks.result import Result, write_results  # noqa: E402
from regard.bundle import load_bundle  # noqa: E402
from regard.engine.engines.protocol import Request, Search  # noqa: E402
from regard.engine.engines.torch_engine import TorchEngine  # noqa: E402
from regard.text.vocabularies.subwords import Subwords  # noqa: E402

EXTRA_LENGTH = 50
TOKENS_PER_WORD, VOCABULARY = 1.3, 32_768
BATCHES = (64, 128, 256, 512)
SAMPLE = 512
"""Sentences, of all lengths, on which the peer's batch size is chosen."""


class Ours:
    """`TorchEngine` as `regard.load(…, device="cuda")` makes it."""

    def __init__(self, folder: Path, beam: int, extra_length: int, dtype: torch.dtype) -> None:
        model = load_bundle(folder, "cuda").model
        model.compute_dtype = dtype
        self.engine = TorchEngine([model], bos=BOS, eos=EOS, device="cuda")
        self.search = Search(beam_size=beam, length_penalty=0.0, extra_length=extra_length)

    @torch.inference_mode()
    def decode(self, sources: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
        # Before the second try that outputs in a loop are given: the peer gives them none.
        found = self.engine._decode([Request(ids=ids) for ids in sources], self.search)
        return [best.ids for best, *_ in found]


def timed(decode, *arguments) -> tuple[float, list[tuple[int, ...]]]:
    torch.cuda.synchronize()
    start = time.perf_counter()
    outputs = decode(*arguments)
    torch.cuda.synchronize()
    return time.perf_counter() - start, outputs


def made_up(text: Path, n_sentences: int) -> tuple[Path, list[tuple[int, ...]]]:
    """A model that needs no training, and sentences for it."""
    rng = random.Random(1)
    with lzma.open(text, "rt", encoding="utf-8") as lines:
        lengths = [round(TOKENS_PER_WORD * len(line.split())) for line in islice(lines, n_sentences)]
    CACHE.mkdir(exist_ok=True)
    sources = [tuple(rng.randrange(3, VOCABULARY) for _ in range(n)) for n in lengths if n]
    return endless("base", CACHE, VOCABULARY), sources


def real(folder: Path, text: Path, n_sentences: int) -> tuple[Path, list[tuple[int, ...]]]:
    """A trained model, and sentences in its subwords."""
    subwords = Subwords((folder / "subwords.model").read_bytes())
    with lzma.open(text, "rt", encoding="utf-8") as lines:
        encoded = subwords.encode([line.strip() for line in islice(lines, n_sentences)])
    return folder, [tuple(int(i) for i in ids) for ids in encoded if len(ids)]


def best_batch(peer: HuggingFace, sources: list[tuple[int, ...]], beam: int) -> int:
    """Sentences together with which the peer is fastest."""
    sample = sources[:: max(1, len(sources) // SAMPLE)]
    peer.decode(sample[:64], beam, 64)
    speeds = {batch: len(sample) / timed(peer.decode, sample, beam, batch)[0] for batch in BATCHES}
    told = ", ".join(f"{batch}: {speed:.0f}" for batch, speed in speeds.items())
    best = max(speeds, key=speeds.__getitem__)
    print(f"Hugging Face, sentences/s by batch size: {told}; takes {best}", flush=True)
    return best


def same_in_float32(folder: Path, sources: list[tuple[int, ...]], beam: int, extra_length: int) -> None:
    """Both roads on a few sentences, where rounding does not hide a mistake."""
    few = sources[:: max(1, len(sources) // 64)]
    ours = Ours(folder, beam, extra_length, torch.float32).decode(few)
    theirs = HuggingFace(folder, "float32", 8, extra_length, device="cuda").decode(few, beam, 1)
    print(f"in float32 {sum(map(tuple.__eq__, ours, theirs))} of {len(few)} outputs are the same", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("text", type=Path)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sentences", type=int, default=3000)
    parser.add_argument("--results", type=Path, help="where comparisons are kept for benchmarks/table.py")
    options = parser.parse_args()
    extra_length = EXTRA_LENGTH if options.model else 0
    found = real(options.model, options.text, options.sentences) if options.model else None
    folder, sources = found or made_up(options.text, options.sentences)
    sources.sort(key=len)
    device = torch.cuda.get_device_name()
    print(f"{device}, torch {torch.__version__}, bf16, beam {options.beam}, {len(sources):,} sentences")
    same_in_float32(folder, sources, options.beam, extra_length)

    ours = Ours(folder, options.beam, extra_length, torch.bfloat16)
    cold, _ = timed(ours.decode, sources)
    print(f"regard, the first time: {cold:.2f} s (steps are captured on the way)", flush=True)
    peer = HuggingFace(folder, "bfloat16", 8, extra_length, device="cuda")
    batch = best_batch(peer, sources, options.beam)
    decoders = {"regard": (ours.decode,), "hugging face": (peer.decode, options.beam, batch)}
    turns: dict[str, list[float]] = {name: [] for name in decoders}
    outputs: dict[str, list[tuple[int, ...]]] = {}
    for _ in range(options.rounds):
        for name, (decode, *how) in decoders.items():
            seconds, outputs[name] = timed(decode, sources, *how)
            turns[name].append(seconds)
    for name, seconds in turns.items():
        tokens, median = sum(map(len, outputs[name])), statistics.median(seconds)
        print(
            f"{name:<14}{median:8.2f} s ({min(seconds):.2f} to {max(seconds):.2f})"
            f"{len(sources) / median:10,.0f} sentences/s{tokens / median:12,.0f} target tokens/s"
        )
    written = {name: sum(map(len, found)) for name, found in outputs.items()}
    rates = {name: [written[name] / each for each in seconds] for name, seconds in turns.items()}
    pairs = zip(rates["regard"], rates["hugging face"], strict=True)
    ratio = statistics.median(our / theirs for our, theirs in pairs)
    same = sum(map(tuple.__eq__, outputs["regard"], outputs["hugging face"])) / len(sources)
    print(f"regard is {ratio:.1f}x Hugging Face; {same:.1%} of the outputs are the same")
    print(f"at most {torch.cuda.max_memory_allocated() / 1e9:.1f} GB for both")
    peer = f"Hugging Face bf16, batches of {batch}, its fastest"
    what = f"decode, beam {options.beam}, bf16"
    write_results(
        options.results,
        [Result.of_rates(what, "target tokens/s", rates["regard"], peer, rates["hugging face"])],
    )


if __name__ == "__main__":
    main()
