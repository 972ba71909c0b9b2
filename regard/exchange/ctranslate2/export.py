"""A model folder as a CTranslate2 folder, run before anybody relies on it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast, get_args

import ctranslate2
import numpy as np

from regard.bundle.bundle import load_bundle
from regard.errors import ConfigError
from regard.exchange.ctranslate2.convert import VOCABULARY, export_ctranslate2
from regard.exchange.ctranslate2.weights_file import Quantisation
from regard.exchange.verification import Probe, Verified, compared, log_probs, probe
from regard.text.vocabularies import read_vocabulary


def write_ctranslate2(model: Path, out: Path, quantisation: str) -> Verified:
    """Write a model folder as a CTranslate2 folder, and compare the two.

    Raises:
        BundleError: the model folder is damaged; something is in the way of the new one; or the new one
            computes something else.
        ConfigError: with every setting that CTranslate2 cannot express.
    """
    if quantisation not in get_args(Quantisation):
        known = ", ".join(get_args(Quantisation))
        raise ConfigError(f"there is no quantisation {quantisation!r}; there are {known}")
    bundle = load_bundle(model)
    bos, eos = _ends(bundle.subwords)
    folder = export_ctranslate2(model, out, bos=bos, eos=eos, quantisation=cast(Quantisation, quantisation))
    given = probe(bundle.config)
    ours = [
        rows[np.arange(len(rows)), [*ids, eos]][:, None]
        for rows, ids in zip(log_probs(bundle.model, given, bos=bos, eos=eos), given.outputs, strict=True)
    ]
    theirs = _scores(folder, given)
    return compared("CTranslate2", given, ours, theirs, exact=quantisation == "float32")


def _ends(subwords: bytes | None) -> tuple[int, int]:
    """What begins and ends outputs; without a vocabulary, what it is in ours."""
    if subwords is None:
        return 1, 2
    vocabulary = read_vocabulary(subwords)
    return vocabulary.bos_id, vocabulary.eos_id


def _scores(folder: Path, given: Probe) -> list[np.ndarray]:
    """What CTranslate2 says of each token of the outputs, and of the one that ends them, (tokens, 1)."""
    translator = ctranslate2.Translator(str(folder), intra_threads=1)
    tokens = json.loads((folder / VOCABULARY).read_bytes())
    spelt = [[[tokens[i] for i in ids] for ids in side] for side in (given.inputs, given.outputs)]
    scored = translator.score_batch(*spelt, max_input_length=0)
    return [np.array(each.log_probs)[:, None] for each in scored]
