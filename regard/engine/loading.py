"""Model folders, and the engines that can run one. torch and CTranslate2 are imported when they load."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, get_args

from regard.bundle.bundle import Bundle, Description, describe_bundle
from regard.bundle.manifest import MANIFEST, SHORTLIST, SUBWORDS, named_folder
from regard.config.checking import did_you_mean
from regard.decode.shortlist import Shortlist, read_shortlist
from regard.durable import leftovers
from regard.engine.engines.protocol import EngineLoader, Engines
from regard.errors import BundleError, ConfigError
from regard.exchange.ctranslate2.convert import inexpressible
from regard.exchange.ctranslate2.weights_file import Quantisation
from regard.host import limit_torch_threads, missing_mps
from regard.text.vocabularies.vocabulary import Vocabulary

EngineName = Literal["auto", "torch", "ctranslate2"]
ORDER: tuple[EngineName, ...] = ("ctranslate2", "torch")
"""The engines that `auto` tries, the preferred one first."""
MODULES: dict[str, str] = {name: f"regard.engine.engines.{name}_engine" for name in ORDER}
"""The module of each engine, with its function `open_engine`; imported when the engine is needed."""
TORCH_DTYPES = ("float32", "bfloat16")
BEST = "best"
"""Name of a run's model folder that is used when the run is named."""
LAST = "last"
"""Name of the folder of its last model; before the first validation, of its newest checkpoint."""


def model_folder(path: Path | str) -> Path:
    """The model folder for a path: itself, the best model of a run, or a bundled model by its name.

    For a run without a validated model, it is that of the newest checkpoint, with a warning.
    """
    path = named_folder(path)
    best, last = path / BEST, path / LAST
    if (path / MANIFEST).exists():
        return path
    if (best / MANIFEST).exists() or leftovers(best, ".old"):
        return best
    if (last / MANIFEST).exists() or leftovers(last, ".old"):
        step = describe_bundle(last).metrics.get("step")
        # Always from this line, so that Python shows it once.
        warnings.warn(f"{path} has no validated model yet: using the model of step {step}", stacklevel=1)
        return last
    return path


def engine_name(word: str) -> EngineName:
    """A word as the name of an engine.

    Raises:
        ConfigError: there is no such engine.
    """
    names: tuple[EngineName, ...] = get_args(EngineName)
    for name in names:
        if word == name:
            return name
    known = f"there are {', '.join(names)}{did_you_mean(word, names)}"
    raise ConfigError(f"there is no engine {word!r}; {known}", code="unknown_engine")


def subword_model(described: Description) -> bytes:
    """The content of a model folder's vocabulary.

    Raises:
        BundleError: the folder has none.
    """
    if SUBWORDS not in described.files:
        raise BundleError(
            f"has no {SUBWORDS}, without which it cannot read text",
            str(described.folder),
            code="no_vocabulary",
        )
    return (described.folder / SUBWORDS).read_bytes()


def shortlist_of(described: Description) -> Shortlist | None:
    """The shortlist of a model folder; None if it has none.

    Raises:
        BundleError: the file is damaged.
    """
    if SHORTLIST not in described.files:
        return None
    content = (described.folder / SHORTLIST).read_bytes()
    return read_shortlist(content, described.config.vocab_size, described.folder)


def load_onto(folder: Path, device: str) -> Bundle:
    """A model folder with its weights on a device; `auto` is an NVIDIA GPU if there is one, else the CPU.

    Raises:
        BundleError: the folder is missing or damaged.
        ConfigError: the device cannot be used.
    """
    import torch

    from regard.bundle.bundle import load_bundle

    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "mps" and (problem := missing_mps()):
        raise ConfigError(problem, code="unusable_device")
    limit_torch_threads()
    try:
        return load_bundle(folder, device)
    except (RuntimeError, AssertionError) as error:  # what torch raises for a device that it lacks
        advice = "cpu always works, and auto chooses"
        raise ConfigError(
            f"`device={device!r}` cannot be used; {advice} (torch: {error})", code="unusable_device"
        ) from error


class LazyBundle:
    """A model folder whose weights are read on first use, once for all who share it."""

    def __init__(self, folder: Path, device: str) -> None:
        self._folder, self._device = folder, device
        self._loaded: Bundle | None = None
        self._loading = threading.Lock()

    def __call__(self) -> Bundle:
        """The loaded folder.

        Raises:
            BundleError: the folder is missing or damaged.
            ConfigError: the device cannot be used.
        """
        with self._loading:
            if self._loaded is None:
                self._loaded = load_onto(self._folder, self._device)
            return self._loaded

    def is_recorded(self) -> bool:
        """Whether activations of the model are being recorded, which needs its weights."""
        if self._loaded is None:
            return False
        from regard.model.taps import is_recording

        return is_recording(self._loaded.model)


def engines_of(
    described: Sequence[Description],
    subwords: Vocabulary,
    *,
    bundle: LazyBundle | None = None,
    engine: EngineName = "auto",
    device: str = "auto",
    threads: int | None = None,
    quantisation: Quantisation | None = None,
) -> Engines:
    """The engines that can run an encoder-decoder model, or an ensemble; `regard.load` has the arguments.

    torch runs a copy of the model in `bundle`, if one is given, that shares its weights.

    Raises:
        ConfigError: the engine does not exist, or cannot run the model.
    """
    names = _runnable(described, engine, device)
    if quantisation not in (None, *TORCH_DTYPES) and "ctranslate2" not in names:
        raise ConfigError(
            f"`quantisation={quantisation!r}` needs CTranslate2, but torch is to run here",
            code="unusable_quantisation",
        )
    opened: dict[str, Any] = {
        "threads": threads,
        "quantisation": quantisation,
        "device": device,
        "bundle": bundle,
    }
    loaders = [EngineLoader(MODULES[name], (described, subwords), opened, name == "torch") for name in names]
    return Engines(loaders) if bundle is None else Engines(loaders, bundle.is_recorded)


def _runnable(described: Sequence[Description], engine: str, device: str) -> list[str]:
    """The names of the engines that may run, the preferred one first."""
    engine = engine_name(engine)
    obstacles = inexpressible(described[0].config)
    if len(described) > 1:
        obstacles.append("CTranslate2 runs one model, not an ensemble")
    if device not in ("auto", "cpu"):
        obstacles.append(f"CTranslate2 runs on CPUs here, not on `device={device!r}`")
    if engine == "auto":
        return ["torch"] if obstacles else [*ORDER]
    if engine == "ctranslate2" and obstacles:
        problems = [*obstacles, "the engine torch can run it"]
        raise ConfigError(problems, str(described[0].folder), code="unusable_engine")
    return [engine]
