"""The contenders that decode, and who each is measured against. Importing this imports no engine.

A contender is a class with `__init__(folder, setting, threads, extra_length)` and
`decode(sources, beam_size, batch) -> outputs`: token ids without the one that ends them. `batch` is the most
sentences that are computed together; all are handed over at once, sorted by length. No length penalty.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from benchmarks.peers.corpus import BOS, EOS, UNK

Ids = tuple[int, ...]
DIRECT_BATCH = 32
"""Sentences that CTranslate2, called directly, takes together where it may take more: 16, 64 and 128 were
slower."""


@dataclass(frozen=True)
class Entry:
    """A contender's class, its setting, and the peer that it is measured against."""

    class_name: str
    setting: str
    peer: str


DECODERS = {
    "regard ctranslate2 int8": Entry("OursOnCTranslate2", "int8", "ctranslate2 int8"),
    "ctranslate2 int8": Entry("CTranslate2", "int8", "ctranslate2 int8"),
    "regard ctranslate2 fp32": Entry("OursOnCTranslate2", "float32", "ctranslate2 fp32"),
    "ctranslate2 fp32": Entry("CTranslate2", "float32", "ctranslate2 fp32"),
    "regard torch fp32": Entry("OursOnTorch", "float32", "hugging face fp32"),
    "hugging face fp32": Entry("HuggingFace", "float32", "hugging face fp32"),
    "regard torch bf16": Entry("OursOnTorch", "bfloat16", "hugging face bf16"),
    "hugging face bf16": Entry("HuggingFace", "bfloat16", "hugging face bf16"),
}
REFERENCE = "hugging face fp32"
"""Whose outputs the others are held to, and whose speed all are also measured against."""


class OursOnCTranslate2:
    """`CTranslate2Engine`, a replica a thread."""

    def __init__(self, folder: Path, setting: str, threads: int, extra_length: int) -> None:
        from regard.engine.engines.ctranslate2_engine import CTranslate2Engine

        @lru_cache(maxsize=1)
        def engine(batch_tokens: int) -> CTranslate2Engine:
            return CTranslate2Engine(
                folder, bos=BOS, eos=EOS, quantisation=setting, threads=threads, batch_tokens=batch_tokens
            )

        self._engine, self._extra_length = engine, extra_length

    def decode(self, sources: list[Ids], beam_size: int, batch: int) -> list[Ids]:
        from regard.engine.engines.ctranslate2_engine import BATCH_TOKENS

        engine = self._engine(1 if batch == 1 else BATCH_TOKENS)
        return _by_ours(engine, sources, beam_size, self._extra_length)


class CTranslate2:
    """`ctranslate2.Translator` itself, on the folder that we converted, a replica a thread."""

    def __init__(self, folder: Path, setting: str, threads: int, extra_length: int) -> None:
        import ctranslate2

        from regard.exchange.ctranslate2.cache import converted
        from regard.exchange.ctranslate2.convert import VOCABULARY

        path = converted(folder, setting, bos=BOS, eos=EOS)
        self._tokens = json.loads((path / VOCABULARY).read_bytes())
        self._ids = {token: i for i, token in enumerate(self._tokens)}
        self._extra_length = extra_length
        self._translator = ctranslate2.Translator(
            str(path), compute_type=setting, inter_threads=threads, intra_threads=1
        )

    def decode(self, sources: list[Ids], beam_size: int, batch: int) -> list[Ids]:
        results = self._translator.translate_batch(
            [[self._tokens[i] for i in source] for source in sources],
            max_batch_size=min(batch, DIRECT_BATCH),
            beam_size=beam_size,
            length_penalty=1e-3,  # at 0 it would stop at the first that ends
            max_decoding_length=max(map(len, sources)) + self._extra_length,
            max_input_length=0,
        )
        return [tuple(self._ids[token] for token in result.hypotheses[0]) for result in results]


class OursOnTorch:
    """`TorchEngine`."""

    def __init__(self, folder: Path, setting: str, threads: int, extra_length: int) -> None:
        import torch

        from regard.bundle import load_bundle
        from regard.engine.engines.torch_engine import TorchEngine

        torch.set_num_threads(threads)
        model = load_bundle(folder).model
        model.compute_dtype = getattr(torch, setting)

        @lru_cache(maxsize=1)
        def engine(batch_tokens: int) -> TorchEngine:
            return TorchEngine([model], bos=BOS, eos=EOS, batch_tokens=batch_tokens)

        self._engine, self._extra_length = engine, extra_length

    def decode(self, sources: list[Ids], beam_size: int, batch: int) -> list[Ids]:
        import torch

        # The engine counts tokens, and rows of beams: so many are `batch` sentences of mean length.
        tokens = sum(len(source) + 1 for source in sources) / len(sources)
        engine = self._engine(1 if batch == 1 else round(batch * beam_size * tokens))
        with torch.inference_mode():
            return _by_ours(engine, sources, beam_size, self._extra_length)


class HuggingFace:
    """`MarianMTModel.generate` of transformers, on the same weights."""

    def __init__(
        self, folder: Path, setting: str, threads: int, extra_length: int, device: str = "cpu"
    ) -> None:
        import torch

        from benchmarks.peers.marian_weights import as_marian

        torch.set_num_threads(threads)
        self._model = as_marian(folder, getattr(torch, setting)).to(device)
        self._device, self._extra_length = device, extra_length

    def decode(self, sources: list[Ids], beam_size: int, batch: int) -> list[Ids]:
        slices = (sources[i : i + batch] for i in range(0, len(sources), batch))
        return [ids for together in slices for ids in self._generate(together, beam_size)]

    def _generate(self, sources: list[Ids], beam_size: int) -> list[Ids]:
        import torch

        longest = max(map(len, sources)) + 1
        padded_BS = torch.tensor([[*ids, EOS] + [UNK] * (longest - len(ids) - 1) for ids in sources])
        is_real_BS = torch.tensor([[1] * (len(ids) + 1) + [0] * (longest - len(ids) - 1) for ids in sources])
        beams = {"num_beams": beam_size, "length_penalty": 0.0} if beam_size > 1 else {}
        with torch.inference_mode():
            outputs_BT = self._model.generate(
                input_ids=padded_BS.to(self._device),
                attention_mask=is_real_BS.to(self._device),
                do_sample=False,
                max_new_tokens=longest - 1 + self._extra_length,
                **beams,
            )
        return [_until_the_end(row[1:]) for row in outputs_BT.tolist()]


def _by_ours(engine, sources: list[Ids], beam_size: int, extra_length: int) -> list[Ids]:
    from regard.engine.engines.protocol import Request, Search

    search = Search(beam_size=beam_size, length_penalty=0.0, extra_length=extra_length)
    # Before the second try that outputs in a loop are given: peers give them none.
    return [best.ids for best, *_ in engine._decode([Request(ids=ids) for ids in sources], search)]


def _until_the_end(ids: list[int]) -> Ids:
    return tuple(ids[: ids.index(EOS)] if EOS in ids else ids)
