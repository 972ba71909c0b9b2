"""What is decoded with, and what: a model folder and sentences as token ids."""

from __future__ import annotations

import json
import lzma
from dataclasses import dataclass
from pathlib import Path

from benchmarks.peers import corpus
from benchmarks.peers.corpus import BOS, EOS, VOCABULARY

LENGTH = 12
"""Tokens of each made-up sentence, and of what is made of it."""
EXTRA_LENGTH = 20
"""How many tokens longer than its input an output of a trained model may grow."""
SHAPES = {
    "small": {"d_model": 256, "n_heads": 4, "d_ff": 1024, "encoder_layers": 3, "decoder_layers": 3},
    "base": {"d_model": 512, "n_heads": 8, "d_ff": 2048, "encoder_layers": 6, "decoder_layers": 6},
}


@dataclass(frozen=True)
class Task:
    """A model and its sentences, the shortest first."""

    name: str
    folder: Path
    sources_file: Path
    n_sources: int
    extra_length: int
    origin: str

    def spread(self, count: int) -> list[int]:
        """Places of so many sentences of all lengths, the shortest first."""
        count = min(count, self.n_sources)
        return [i * self.n_sources // count for i in range(count)]


def trained(folder: Path, text: Path, cache: Path) -> Task:
    """A model of ours, and a test set in its subwords."""
    from regard.bundle.manifest import SUBWORDS
    from regard.text.vocabularies.subwords import Subwords

    subwords = Subwords((folder / SUBWORDS).read_bytes())
    with lzma.open(text, "rt", encoding="utf-8") as lines:
        encoded = subwords.encode([line.strip() for line in lines])
    every = sorted(([int(i) for i in ids] for ids in encoded if len(ids)), key=len)
    sources = _that_end(folder, every)
    told = f"{len(sources):,} of {len(every):,} sentences of {text.name}, whose outputs end by themselves"
    return _task("trained", folder, sources, cache, EXTRA_LENGTH, f"{folder}, trained; {told}")


def _that_end(folder: Path, sources: list[list[int]]) -> list[list[int]]:
    """What is answered without a loop, and before its limit: elsewhere contenders differ by their rules."""
    from regard.bundle import load_bundle
    from regard.decode.hypothesis import loops
    from regard.engine.engines.protocol import Request, Search
    from regard.engine.engines.torch_engine import TorchEngine

    engine = TorchEngine([load_bundle(folder).model], bos=BOS, eos=EOS)
    search = Search(beam_size=1, length_penalty=0.0, extra_length=EXTRA_LENGTH)
    # Before the second try that outputs in a loop are given: peers give them none.
    found = engine._decode([Request(ids=tuple(ids)) for ids in sources], search)
    return [
        ids for ids, (best, *_) in zip(sources, found, strict=True) if best.finished and not loops(best.ids)
    ]


def made_up(shape: str, cache: Path) -> Task:
    """Random weights, and sentences with the frequencies of words, all of one length."""
    sources = [(source * LENGTH)[:LENGTH] for source, _ in corpus.synthetic(1000).pairs]
    origin = f"random weights that never end an output; sentences and outputs of {LENGTH} tokens"
    return _task(f"random {shape}", endless(shape, cache), sources, cache, 0, origin)


def _task(
    name: str, folder: Path, sources: list[list[int]], cache: Path, extra_length: int, origin: str
) -> Task:
    file = cache / f"decode-{name.replace(' ', '-')}.json"
    file.write_text(json.dumps(sources))
    return Task(name, folder, file, len(sources), extra_length, origin)


def endless(shape: str, cache: Path, vocab_size: int = VOCABULARY) -> Path:
    """A model that never writes the token that ends an output, however it is computed."""
    import torch

    from regard.bundle import save_bundle
    from regard.config import ModelConfig
    from regard.model.transformer import Transformer

    torch.manual_seed(1)
    sizes = SHAPES[shape]
    model = Transformer(ModelConfig(vocab_size=vocab_size, attention_bias=True, **sizes))
    with torch.no_grad():
        # The last norm pushes every state one way, and the token that ends an output lies the other way.
        away_D = torch.nn.functional.normalize(torch.randn(sizes["d_model"]), dim=0) * 4
        model.decoder.layers[-1].add_and_norm[-1].norm.bias.copy_(away_D)
        model.output_embedding.weight[EOS] = -away_D
    return save_bundle(cache / f"decode-random-{shape}-{vocab_size}", model, overwrite=True)
