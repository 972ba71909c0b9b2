"""The test set, translated and scored."""

from __future__ import annotations

from collections.abc import Sequence

from regard.config import DecodingConfig
from regard.engine.engine import Request, Search
from regard.engine.torch_engine import TorchEngine
from regard.model.transformer import Transformer
from regard.text.subwords import Subwords


def translate(
    model: Transformer, subwords: Subwords, texts: Sequence[str], decoding: DecodingConfig
) -> list[str]:
    """Translations, greedily, in the order of the texts; an empty text gives an empty one."""
    engine = TorchEngine([model], bos=subwords.bos_id, eos=subwords.eos_id)
    encoded = [tuple(ids.tolist()) for ids in subwords.encode(list(texts))]
    search = Search(beam_size=1, length_penalty=decoding.length_penalty, extra_length=decoding.extra_length)
    found = engine.decode([Request(ids=ids) for ids in encoded if ids], search)
    outputs = iter(subwords.decode(best.ids) for best, *_ in found)
    return [next(outputs) if ids else "" for ids in encoded]
