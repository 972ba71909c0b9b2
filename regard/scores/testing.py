"""Held-out text, translated by a model that is being trained, or was."""

from __future__ import annotations

from collections.abc import Sequence

from regard.config import DecodingConfig
from regard.engine.engines.protocol import Request, Search
from regard.engine.engines.torch_engine import TorchEngine
from regard.model.transformer import Transformer
from regard.text.vocabularies.vocabulary import Vocabulary

BATCH_TOKENS = {"cpu": 4096, "cuda": 65536}
"""Tokens that are decoded together: a GPU wants many."""


def translate(
    model: Transformer, subwords: Vocabulary, inputs: Sequence[tuple[int, ...]], decoding: DecodingConfig
) -> list[str]:
    """Translations of inputs in tokens, in their order, made where the model is."""
    device = model.output_probabilities.weight.device
    engine = TorchEngine(
        [model],
        bos=subwords.bos_id,
        eos=subwords.eos_id,
        device=device,
        batch_tokens=BATCH_TOKENS.get(device.type, 4096),
    )
    search = Search(
        beam_size=decoding.beam_size,
        length_penalty=decoding.length_penalty,
        extra_length=decoding.extra_length,
    )
    found = engine.decode([Request(ids=ids) for ids in inputs], search)
    return [subwords.decode(best.ids) for best, *_ in found]
