"""Opening a model folder, with the engine that is asked for or the fastest that there is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Literal, TypeVar, get_args

from regard import bundled
from regard.bundle.bundle import Bundle, Description, describe_bundle
from regard.bundle.manifest import MANIFEST, SUBWORDS
from regard.config.checking import did_you_mean
from regard.engine.engines.fallback import Engines
from regard.engine.engines.protocol import Engine
from regard.engine.model import Model
from regard.errors import BundleError, ConfigError
from regard.exchange.ctranslate2.convert import inexpressible
from regard.exchange.ctranslate2.weights_file import Quantisation
from regard.text.vocabularies import read_vocabulary
from regard.text.vocabularies.vocabulary import Vocabulary

EngineName = Literal["auto", "torch", "ctranslate2"]
ORDER: tuple[EngineName, ...] = ("ctranslate2", "torch")
"""What `auto` asks, the most wanted first."""
TORCH_KNOWS = ("float32", "bfloat16")
M = TypeVar("M", bound=Model)
BEST = "best"
"""The model folder of a run that is meant when the run is named."""


def load(
    folder: Path | str | Sequence[Path | str],
    *,
    engine: EngineName = "auto",
    device: str = "auto",
    threads: int | None = None,
    quantisation: Quantisation | None = None,
) -> Model:
    """Open a model that translates text; `regard.load` has the same arguments, and says what they mean.

    Raises:
        BundleError: a model folder is missing, damaged or without subwords.
        ConfigError: the engine does not exist, or cannot run the model; the model is for another task.
    """
    return open_as(Model, folder, engine=engine, device=device, threads=threads, quantisation=quantisation)


def open_as(
    kind: type[M],
    folder: Path | str | Sequence[Path | str],
    *,
    engine: EngineName = "auto",
    device: str = "auto",
    threads: int | None = None,
    quantisation: Quantisation | None = None,
) -> M:
    """Open a model as `load` does, as one that can do more."""
    folders = [model_folder(each) for each in ([folder] if isinstance(folder, Path | str) else folder)]
    if not folders:
        raise ConfigError("there is no model to load: name at least one folder")
    described = [describe_bundle(each) for each in folders]
    subwords = _shared_subwords(described)
    names = _names(described, engine, device)
    if quantisation not in (None, *TORCH_KNOWS) and "ctranslate2" not in names:
        raise ConfigError(f"`quantisation={quantisation!r}` is for CTranslate2, and torch is to run here")
    loaders: dict[str, Callable[[], Engine]] = {
        "ctranslate2": partial(_ctranslate2, folders[0], subwords, quantisation, threads),
        "torch": partial(_torch, folders, subwords, quantisation, device, threads),
    }
    return kind(
        Engines([loaders[name] for name in names]),
        subwords,
        max_length=min(each.config.max_length for each in described),
        decoding=described[0].decoding,
        task=described[0].task,
        folders=folders,
        device=device,
    )


def model_folder(path: Path | str) -> Path:
    """The model folder that a path means: itself, the best model of a run, or a bundled one, by name."""
    path = Path(path)
    if not path.exists() and str(path) in (bundled.DEFAULT, *bundled.names()):
        return bundled.folder(str(path))
    return path / BEST if not (path / MANIFEST).exists() and (path / BEST / MANIFEST).exists() else path


def engine_name(word: str) -> EngineName:
    """The engine that a word names.

    Raises:
        ConfigError: there is none of that name.
    """
    names: tuple[EngineName, ...] = get_args(EngineName)
    for name in names:
        if word == name:
            return name
    raise ConfigError(f"there is no engine {word!r}; there are {', '.join(names)}{did_you_mean(word, names)}")


def _names(described: list[Description], engine: str, device: str) -> list[str]:
    """The engines that may run, the most wanted first."""
    engine = engine_name(engine)
    obstacles = inexpressible(described[0].config)
    if len(described) > 1:
        obstacles.append("CTranslate2 runs one model, and not several together")
    if device not in ("auto", "cpu"):
        obstacles.append(f"CTranslate2 runs on CPUs here, and `device={device!r}` was asked for")
    if engine == "auto":
        return ["torch"] if obstacles else [*ORDER]
    if engine == "ctranslate2" and obstacles:
        raise ConfigError([*obstacles, "the engine torch can do it"], str(described[0].folder))
    return [engine]


def _shared_subwords(described: list[Description]) -> Vocabulary:
    for each in described:
        if each.config.architecture != "encoder-decoder":
            raise of_another_task(each)
    models = [subword_model(each) for each in described]
    for each, model in zip(described, models, strict=True):
        if model != models[0]:
            raise BundleError(
                f"has other subwords than {described[0].folder}: models of one ensemble share them",
                str(each.folder),
            )
    return read_vocabulary(models[0])


def of_another_task(described: Description) -> ConfigError:
    """Why a model of one stack alone is not asked for translations."""
    what = f"is a model of the {described.config.architecture} alone, which does not translate"
    return ConfigError(f"{described.folder}: {what}; an encoder-decoder model does")


def subword_model(described: Description) -> bytes:
    """What a model folder reads text with.

    Raises:
        BundleError: it has nothing to.
    """
    if SUBWORDS not in described.files:
        raise BundleError(f"has no {SUBWORDS}, without which it cannot read text", str(described.folder))
    return (described.folder / SUBWORDS).read_bytes()


def _ctranslate2(
    folder: Path, subwords: Vocabulary, quantisation: Quantisation | None, threads: int | None
) -> Engine:
    from ctranslate2 import get_supported_compute_types

    from regard.engine.engines.ctranslate2_engine import CTranslate2Engine

    if quantisation is None:
        quantisation = "int8" if "int8" in get_supported_compute_types("cpu") else "float32"
    return CTranslate2Engine(
        folder, bos=subwords.bos_id, eos=subwords.eos_id, quantisation=quantisation, threads=threads
    )


def _torch(
    folders: list[Path],
    subwords: Vocabulary,
    quantisation: Quantisation | None,
    device: str,
    threads: int | None,
) -> Engine:
    import torch

    from regard.engine.engines.torch_engine import TorchEngine
    from regard.model.transformer import Transformer

    if threads is not None:
        torch.set_num_threads(threads)
    bundles = [load_onto(folder, device) for folder in folders]
    transformers = [bundle.model for bundle in bundles if isinstance(bundle.model, Transformer)]
    device = str(transformers[0].output_probabilities.weight.device)
    if quantisation not in TORCH_KNOWS:
        quantisation = "float32" if torch.device(device).type == "cpu" else "bfloat16"
    for model in transformers:
        model.compute_dtype = getattr(torch, quantisation)
    return TorchEngine(transformers, bos=subwords.bos_id, eos=subwords.eos_id, device=device)


def load_onto(folder: Path, device: str) -> Bundle:
    """A model folder with its weights on a device; `auto` is a GPU if there is one.

    Raises:
        BundleError: it is missing or damaged.
        ConfigError: the device cannot be used.
    """
    import torch

    from regard.bundle.bundle import load_bundle

    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        return load_bundle(folder, device)
    except (RuntimeError, AssertionError) as error:  # torch's own words for a device that it lacks
        way = "cpu always can, and auto chooses"
        raise ConfigError(f"`device={device!r}` cannot be used; {way} (torch: {error})") from error
