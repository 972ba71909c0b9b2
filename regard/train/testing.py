"""The test set, translated and scored."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from regard.config import DecodingConfig
from regard.decode.greedy import greedy
from regard.model.cache import Cache
from regard.model.transformer import Transformer
from regard.packing import pack
from regard.text.subwords import Subwords

BATCH_TOKENS = 4096


def translate(
    model: Transformer, subwords: Subwords, texts: Sequence[str], decoding: DecodingConfig
) -> list[str]:
    """Translations, greedily, in the order of the texts; an empty text gives an empty one."""
    encoded = subwords.encode(list(texts))
    found = [""] * len(encoded)
    for batch in _batches([len(ids) for ids in encoded]):
        sources = [[*encoded[i].tolist(), subwords.eos_id] for i in batch]
        for i, output in zip(batch, _decode(model, sources, subwords, decoding), strict=True):
            found[i] = subwords.decode(output)
    return found


@torch.no_grad()
def _decode(
    model: Transformer, sources: list[list[int]], subwords: Subwords, decoding: DecodingConfig
) -> list[tuple[int, ...]]:
    longest = model.config.max_length - 1  # one place is for the token that starts the output
    limits = [min(len(source) + decoding.extra_length, longest) for source in sources]
    memory = model.encode(pack(sources))
    cache = model.start(memory, capacity=max(limits) + 1)

    def keep(state: Cache, rows: Tensor) -> Cache:
        return state.keep(rows)

    found = greedy(
        model.step, cache, len(sources), bos=subwords.bos_id, eos=subwords.eos_id, limits=limits, keep=keep
    )
    return [hypothesis.ids for hypothesis in found]


def _batches(lengths: list[int]) -> Iterator[list[int]]:
    """Texts of like length together, as many as the budget of tokens holds; empty ones are left out."""
    order = [int(i) for i in np.argsort(lengths, kind="stable") if lengths[i]]
    batch: list[int] = []
    for i in order:
        if batch and (len(batch) + 1) * lengths[i] > BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch
