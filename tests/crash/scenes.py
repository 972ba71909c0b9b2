"""The commands that are interrupted: saving, adding, averaging, converting, keys, stores, and whole runs."""

from __future__ import annotations

import hashlib
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from io import BytesIO, TextIOWrapper
from pathlib import Path
from unittest import mock

import numpy as np
import torch
from safetensors.torch import load

import regard
from regard.bundle import describe_bundle, load_bundle, save_bundle, weights_hash
from regard.bundle.bundle import add_file
from regard.data.store import find_store
from regard.data.store.writing import write_store
from regard.engine.loading import model_folder
from regard.errors import BundleError
from regard.exchange.ctranslate2.cache import cache_folder, conversion_problem, converted
from regard.exchange.ctranslate2.weights_file import Quantisation
from regard.model.build import build
from regard.serve.http.keys import new_key, read_keys, revoke_key
from regard.training.checkpoints.averaging import average_models
from regard.training.checkpoints.checkpoint import MOMENTS, checkpoints, read_weights
from regard.training.checkpoints.run_folder import JOURNAL, Journal
from tests.bundle.folders import SMALL
from tests.crash.file_layer import read_state
from tests.crash.interruptions import Scene
from tests.exchange.folders import BOS, EOS, small_folder

NOTHING, OLD, NEW = "nothing", "old", "new"


@cache
def _model(name: str) -> torch.nn.Module:
    torch.manual_seed({OLD: 5, NEW: 7}[name])
    return build(SMALL)


def _save(name: str, place: str = "model") -> Callable[[Path], object]:
    return lambda folder: save_bundle(folder / place, _model(name), subwords=b"x", overwrite=True)


def _saved(place: str) -> Callable[[Path], str]:
    def found(folder: Path) -> str:
        if not (folder / place).exists() and not [*(folder / place).parent.glob(".*.old")]:
            return NOTHING
        weights = weights_hash(load_bundle(folder / place).model)
        return next(name for name in (OLD, NEW) if weights_hash(_model(name)) == weights)

    return found


def _with_file(folder: Path) -> str:
    load_bundle(folder / "model")
    added = folder / "model" / "labels.json"
    return NEW if added.exists() and added.read_bytes() == b'["a"]' else OLD


def _averaged(folder: Path) -> str:
    if not (place := folder / "runs" / "mean").exists():
        return NOTHING
    one, two = (_model(name).input_embedding.weight for name in (OLD, NEW))
    torch.testing.assert_close(load_bundle(place).model.input_embedding.weight, (one + two) / 2)
    return NEW


@contextmanager
def _cache(folder: Path) -> Iterator[None]:
    with mock.patch.dict(os.environ, REGARD_CACHE=str(folder / "cache")):
        yield


def _convert(folder: Path, quantisation: Quantisation = "int8") -> object:
    with _cache(folder), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the cached conversion .* is made again")
        return converted(folder / "model", quantisation, bos=BOS, eos=EOS)


def _conversion(folder: Path) -> str:
    with _cache(folder):
        places = [*cache_folder().glob("*-int8")]
    return NEW if places and all(conversion_problem(each, deep=True) is None for each in places) else NOTHING


def _damaged_conversion(folder: Path) -> None:
    small_folder(folder)
    _convert(folder)
    (file,) = folder.glob("cache/*/*/model.bin")
    os.truncate(file, 7)


def _add_key(name: str) -> Callable[[Path], object]:
    return lambda folder: new_key(folder / "keys", name)


def _keys(folder: Path) -> str:
    return f"{len(read_keys(folder / 'keys')) if (folder / 'keys').exists() else 0} keys"


def _write_store(key: str) -> Callable[[Path], object]:
    pair = np.arange(3, dtype=np.uint16), np.arange(5, dtype=np.uint16)
    return lambda folder: write_store(
        folder / "store", [pair] * 7, sides=("inputs", "outputs"), key=key, vocab_size=11
    )


def _stored(folder: Path) -> str:
    return next((key for key in (OLD, NEW) if find_store(folder / "store", key)), NOTHING)


COMMANDS = {
    "save a model": Scene(command=_save(NEW, "a/b/model"), found=_saved("a/b/model")),
    "replace a model": Scene(
        prepare=_save(OLD), command=_save(NEW), found=_saved("model"), refusals=("missing_model",)
    ),
    "add a file to a model": Scene(
        prepare=_save(OLD),
        command=lambda folder: add_file(folder / "model", "labels.json", b'["a"]'),
        found=_with_file,
        refusals=("missing_model",),
    ),
    "average models": Scene(
        prepare=lambda folder: [_save(OLD, "one")(folder), _save(NEW, "two")(folder)],
        command=lambda folder: average_models([folder / "one", folder / "two"], folder / "runs" / "mean"),
        found=_averaged,
        repeated=("folder_exists",),
        later=_save(NEW, "runs/mean"),
    ),
    "convert a model": Scene(
        prepare=small_folder,
        command=_convert,
        found=_conversion,
        does_without=True,
        later=lambda folder: _convert(folder, "float32"),
    ),
    "replace a damaged conversion": Scene(
        prepare=_damaged_conversion,
        command=_convert,
        found=_conversion,
        does_without=True,
        later=lambda folder: _convert(folder, "float32"),
    ),
    "make a key file": Scene(
        command=_add_key("one"), found=_keys, repeated=("bad_key_name",), later=_add_key("two")
    ),
    "add a key": Scene(
        prepare=_add_key("one"),
        command=_add_key("two"),
        found=_keys,
        repeated=("bad_key_name",),
        later=_add_key("three"),
    ),
    "revoke a key": Scene(
        prepare=lambda folder: [_add_key(name)(folder) for name in ("one", "two")],
        command=lambda folder: revoke_key(folder / "keys", "one"),
        found=_keys,
        repeated=("bad_key_name",),
        later=_add_key("three"),
    ),
    "write a store": Scene(command=_write_store(NEW), found=_stored),
    "replace a store": Scene(prepare=_write_store(OLD), command=_write_store(NEW), found=_stored),
}


# --- whole runs --------------------------------------------------------------------------------------------

SETTINGS = {
    "model.vocab_size": 300,
    "model.d_model": 12,
    "model.n_heads": 3,
    "model.d_ff": 17,
    "model.encoder_layers": 1,
    "model.decoder_layers": 1,
    "data.valid_lines": 7,
    "training.batch_tokens": 300,
    "training.max_steps": 5,
    "training.max_epochs": None,
    "training.pretrain_steps": 2,
    "training.validate_every": 3,
    "training.checkpoint_every": 1,
    "training.average_checkpoints": 2,
    "training.probe_sentences": 1,
    "training.warmup_steps": 1,
    "training.compile": False,
    "decoding.beam_size": 1,
    "decoding.extra_length": 2,
}
ADVICE = ("rename it back", "`regard train`", "it is empty")
"""What to do about a run whose model cannot be opened."""
_WORDS = [f"{a}{b}{c}" for a in "abcd" for b in "efgh" for c in "ijklm"]
_PAIRS = [(f"{a} {b}", f"{a} {b}".upper()) for a, b in zip(_WORDS, _WORDS[::-1], strict=True)]


def _train(folder: Path, data: object, settings: dict[str, object] | None = None, **options: object) -> None:
    own = SETTINGS | (settings or {})
    regard.train(data, out=folder / "run", preset="tiny", settings=own, device="cpu", threads=1, **options)


def _train_on_pipe(folder: Path) -> None:
    piped = "".join(f"{first}\t{second}\n" for first, second in _PAIRS).encode()
    # Every validation saves the model, and the mean of the last checkpoints is kept.
    settings = {"training.selection": "last"}
    with mock.patch.object(sys, "stdin", TextIOWrapper(BytesIO(piped))):
        _train(folder, "-", settings, columns=(1, 2), source="xx", target="yy")


def _texts(folder: Path) -> None:
    (folder / "texts").write_text("".join(f"{first} {second}\n" for first, second in _PAIRS))


def _train_pretrained(folder: Path) -> None:
    rows = [(str(i % 2), f"{first} {second}") for i, (first, second) in enumerate(_PAIRS)]
    _train(folder, rows, task="classify", pretrain=[folder / "texts"])


def progress(folder: Path) -> str:
    """How far the run is. Everything there can be read; of a run that has ended, all files count."""
    run = folder / "run"
    runs = [run / "pretraining", run]
    places = [place for each in runs for place in checkpoints(each / "checkpoints")]
    for place in places:
        assert read_weights(place)
        assert load((place / MOMENTS).read_bytes())
    models = [each / name for each in runs for name in ("best", "last")]
    hashes = [weights_hash(load_bundle(model).model)[:7] for model in models if model.exists()]
    if run.exists():
        refusal = _refusal(run)
        assert refusal is None or any(advice in refusal for advice in ADVICE), refusal
    if (run / "scores.json").exists():
        return f"ended with {' '.join(hashes)}, {_digest(run, runs)}"
    if places or hashes:
        return f"{len(places)} checkpoints, {len(hashes)} models"
    return "data" if (run / "data" / "key").exists() else NOTHING


def _refusal(run: Path) -> str | None:
    """Why the model of a run cannot be opened; None if it can."""
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".* has no validated model yet")
            describe_bundle(model_folder(run))
    except BundleError as error:
        return str(error)
    return None


def _digest(run: Path, runs: list[Path]) -> str:
    """A hash of the names of all files, of the journals and of the scores."""
    # Checkpoints are deleted without waiting for the disk; leftovers stay until the run is started again.
    passing = ("checkpoints/", "/.")
    names = [f"/{name}" for name, _ in read_state(run)]
    lasting = sorted(name for name in names if not any(part in name for part in passing))
    journals = [list(Journal(each / JOURNAL)) for each in runs if each.exists()]
    facts = [[{**entry, "seconds": 0} for entry in journal] for journal in journals]
    scores = (run / "scores.json").read_text()
    return hashlib.sha256(repr([lasting, facts, scores]).encode()).hexdigest()[:7]


def _run(command: Callable[[Path], object], prepare: Callable[[Path], object] = lambda _: None) -> Scene:
    """A run removes leftovers when it is started again."""
    return Scene(prepare=prepare, command=command, found=progress, later=lambda _: None)


RUNS = {
    "train a translator": _run(lambda folder: _train(folder, _PAIRS, source="xx", target="yy")),
    "train on a pipe": _run(_train_on_pipe),
    "train a classifier": _run(_train_pretrained, _texts),
}
