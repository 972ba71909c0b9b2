"""A test set through a model folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from regard.bundle import Description, describe_bundle
from regard.bundle.manifest import SUBWORDS
from regard.engine.engine import Engine, Request, Search
from regard.errors import BundleError, RequestError
from regard.exchange.ctranslate2 import inexpressible
from regard.text.subwords import Subwords

EngineName = Literal["auto", "torch", "ctranslate2"]
PRECISION = {"torch": "float32", "ctranslate2": "int8"}
"""What each engine computes in: scores differ a little with it, so reports say it."""


@dataclass(frozen=True, slots=True)
class Translations:
    """What a model made of some lines, and how."""

    lines: list[str]
    how: str
    """The engine and its search, for a report."""


def translations(
    folder: Path, lines: Sequence[str], *, beam_size: int | None = None, engine: EngineName = "auto"
) -> Translations:
    """Translate lines with a model folder, searching as it says unless told otherwise.

    `auto` takes CTranslate2 where that can express the model, and else torch.

    Raises:
        BundleError: the folder is no model, damaged, or has no subword model.
        ConfigError: CTranslate2 was asked for, and cannot express the model.
        RequestError: the model does not translate, or a line is too long for it.
    """
    model = describe_bundle(folder)
    if model.config.architecture != "encoder-decoder":
        raise RequestError(
            f"{folder}: is a model of the {model.config.architecture} alone; an encoder-decoder translates"
        )
    if SUBWORDS not in model.files:
        raise BundleError("has no subword model, so it reads no text", str(folder))
    subwords = Subwords((folder / SUBWORDS).read_bytes())
    requests = [Request(ids=tuple(ids.tolist())) for ids in subwords.encode(list(lines))]
    for number, request in enumerate(requests, start=1):
        if len(request.ids) >= model.config.max_length:
            most = f"the model reads at most {model.config.max_length - 1:,}; split the line"
            raise RequestError(f"line {number}: {len(request.ids):,} tokens; {most}")
    search = Search(
        beam_size=model.decoding.beam_size,
        length_penalty=model.decoding.length_penalty,
        extra_length=model.decoding.extra_length,
    )
    if beam_size is not None:
        search = replace(search, beam_size=beam_size)
    runner = _engine(folder, model, subwords, engine)
    found = runner.decode(requests, search)
    searched = f"beam {search.beam_size}, length penalty {search.length_penalty:g}"
    how = f"{runner.name}, {PRECISION[runner.name]}, {searched}"
    return Translations([subwords.decode(best.ids) for best, *_ in found], how)


def _engine(folder: Path, model: Description, subwords: Subwords, name: EngineName) -> Engine:
    if name == "auto":
        name = "torch" if inexpressible(model.config) else "ctranslate2"
    bos, eos = subwords.bos_id, subwords.eos_id
    if name == "ctranslate2":
        from regard.engine.ctranslate2_engine import CTranslate2Engine

        return CTranslate2Engine(folder, bos=bos, eos=eos)

    from regard.bundle import load_bundle
    from regard.engine.torch_engine import TorchEngine
    from regard.model.transformer import Transformer

    loaded = load_bundle(folder).model
    assert isinstance(loaded, Transformer), "an encoder-decoder is a Transformer"
    return TorchEngine([loaded], bos=bos, eos=eos)
