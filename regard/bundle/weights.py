"""The weights of a model folder: a safetensors file as torch tensors, or as numpy arrays without torch.

A matrix may be saved as 8-bit integers with a scale per row (`NAME.int8_scale`): the largest absolute value
of a row is 127 times its scale. Vectors keep their dtype. On loading, such a matrix becomes float32.
CTranslate2's int8 rounds rows in the same way, so it gets exactly the integers that were saved.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import safetensors
from numpy.typing import NDArray
from safetensors.numpy import save as save_arrays

from regard.bundle.manifest import DAMAGED, FORMAT, WEIGHTS
from regard.config import ModelConfig
from regard.errors import BundleError

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

    from regard.model.classifier import Classifier
    from regard.model.language_model import LanguageModel
    from regard.model.transformer import Transformer

    Model = Transformer | LanguageModel | Classifier


DTYPES = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16"}
"""The dtypes of weights: safetensors' names and torch's."""
_NUMPY_DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "I8": "<i1"}
"""How numpy, which has no bfloat16, reads each dtype."""
_SCALE = ".int8_scale"
"""Suffix of the name of a matrix's scales."""


def weights_hash(source: nn.Module | Path | str) -> str:
    """sha256 of the names, dtypes, shapes and bytes of all weights of a model or model folder.

    Equal weights have equal hashes, on every device and in every version.
    """
    if not isinstance(source, Path | str):
        return hash_of(to_bytes(source))
    try:
        return hash_of((Path(source) / WEIGHTS).read_bytes())
    except (OSError, safetensors.SafetensorError) as error:
        raise BundleError(f"{WEIGHTS} cannot be read: {error}", str(source), code=DAMAGED) from error


def hash_of(content: bytes) -> str:
    """The hash of the weights in a safetensors file; its layout and metadata do not count."""
    total = sha256()
    for name, tensor in sorted(safetensors.deserialize(content)):
        total.update(json.dumps([name, tensor["dtype"], tensor["shape"]]).encode())
        total.update(tensor["data"])
    return total.hexdigest()


def to_bytes(model: nn.Module) -> bytes:
    """The weights as a safetensors file; a shared weight is saved once, under its first name."""
    from safetensors.torch import save

    tensors = {name: weight.detach().cpu().contiguous() for name, weight in model.named_parameters()}
    return save(tensors, metadata={"regard_format": str(FORMAT)})


def count_parameters(file: Path, problems: list[str]) -> tuple[int, str]:
    """The number of parameters in a safetensors file and their dtypes, from its header, without torch."""
    try:
        with safetensors.safe_open(file, framework="numpy") as opened:
            names = [name for name in opened.keys() if not name.endswith(_SCALE)]  # noqa: SIM118 - no mapping
            slices = [opened.get_slice(name) for name in names]
    except (OSError, safetensors.SafetensorError) as error:
        problems.append(f"{WEIGHTS} is not a safetensors file: {error}")
        return 0, ""
    dtypes = {(DTYPES | {"I8": "int8"}).get(part.get_dtype(), part.get_dtype()) for part in slices}
    return sum(prod(part.get_shape()) for part in slices), ", ".join(sorted(dtypes))


def read_tensors(content: bytes, problems: list[str]) -> dict[str, Tensor] | None:
    """The weights in a safetensors file, by name; 8-bit matrices become float32.

    None, with a problem added, where it is not a safetensors file.
    """
    from safetensors.torch import load

    try:
        tensors = load(content)
        for scale in [
            name for name in tensors if name.endswith(_SCALE) and name.removesuffix(_SCALE) in tensors
        ]:
            name = scale.removesuffix(_SCALE)
            tensors[name] = tensors[name].float() * tensors.pop(scale)[:, None]
        return tensors
    except safetensors.SafetensorError as error:
        problems.append(f"{WEIGHTS} is not a safetensors file: {error}")
    except KeyError as error:
        problems.append(f"{WEIGHTS} holds weights of an unknown dtype: {error}")
    return None


def load_tensors(model: Model, tensors: dict[str, Tensor], device: torch.device | str) -> Model:
    """Give a model these weights, which must fit; the dictionary is emptied to save memory."""
    for name, parameter in model.named_parameters():
        # Copied into memory that torch aligns for its kernels.
        parameter.data = tensors.pop(name).to(device, copy=True)
    return model.to(device).eval()


def weight_problems(model: nn.Module, tensors: Mapping[str, Tensor]) -> list[str]:
    """Every weight that is missing, unexpected, or of another shape or dtype than in the model."""
    expected = dict(model.named_parameters())
    missing = [f"weight {name} is missing" for name in expected if name not in tensors]
    unexpected = [f"weight {name} is unexpected" for name in sorted(tensors) if name not in expected]
    both = [(name, tensors[name], weight) for name, weight in expected.items() if name in tensors]
    shapes = [
        f"weight {name} has the shape {tuple(tensor.shape)}; the configuration requires {tuple(weight.shape)}"
        for name, tensor, weight in both
        if tensor.shape != weight.shape
    ]
    dtypes = [
        f"weight {name} is {tensor.dtype}; weights are {', '.join(DTYPES.values())}"
        for name, tensor, _ in both
        if str(tensor.dtype).removeprefix("torch.") not in DTYPES.values()
    ]
    return [*missing, *unexpected, *shapes, *dtypes]


def structure_problems(model: nn.Module, expected: nn.Module) -> list[str]:
    """Every module that is not the one expected: another class, another setting, a replaced method or buffer.

    A model folder holds a configuration and weights, so such a model would be loaded as another one. Dropout
    is excepted, since it has no effect on a model that is used; so are forward hooks, which also observe.
    """
    import torch
    from torch import nn

    def differs(one: object, other: object) -> bool:
        if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
            wide = one.detach().cpu().float(), other.detach().cpu().float()
            return one.shape != other.shape or not torch.allclose(*wide, rtol=1e-2, atol=1e-2)
        plain = isinstance(one, bool | int | float | str | tuple | None) or callable(one)
        return plain and not isinstance(one, nn.Module) and one != other

    problems = []
    modules, expected_modules = dict(model.named_modules()), dict(expected.named_modules())
    for path, wanted in expected_modules.items():
        name, module = path or "the model", modules.get(path)
        if module is None:
            problems.append(f"{name} is missing; the configuration describes a {type(wanted).__name__}")
            continue
        if type(module) is not type(wanted):
            kinds = f"a {type(module).__name__}; the configuration describes a {type(wanted).__name__}"
            problems.append(f"{name} is {kinds}")
            continue
        if type(wanted).__name__ == "Dropout":
            continue
        public = {key: value for key, value in vars(wanted).items() if key[0] != "_" and key != "training"}
        public |= dict(wanted.named_buffers(recurse=False))
        for key, value in public.items():
            if differs(value, getattr(module, key, None)):
                shown = "another one" if isinstance(value, torch.Tensor) else repr(getattr(module, key, None))
                problems.append(f"{name}.{key} is {shown}, which the configuration does not describe")
        methods = (key for key in vars(module) if key not in public and callable(getattr(wanted, key, None)))
        problems += [f"{name}.{key} was replaced" for key in methods if key not in wanted._modules]
    extra = [path for path in modules if path not in expected_modules]
    return problems + [f"{path} is not in the model that the configuration describes" for path in extra]


def empty_model(config: ModelConfig) -> Model:
    """A model with uninitialised weights: initialising them takes longer than reading them.

    The "meta" device would do, but its first use imports parts of torch that take a second to load.
    """
    import torch
    from torch.overrides import TorchFunctionMode

    from regard.model.build import build

    class NoInitialisation(TorchFunctionMode):
        def __torch_function__(
            self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
        ) -> Any:
            if func in (torch.Tensor.uniform_, torch.Tensor.normal_):
                return args[0]
            return (torch.empty if func is torch.randn else func)(*args, **kwargs or {})

    with NoInitialisation():
        return build(config)


def float32_weights(content: bytes) -> dict[str, NDArray[np.float32]]:
    """Every weight of a safetensors file, by name, as float32."""
    arrays = {
        name: _float32(tensor["data"], tensor["dtype"]).reshape(tensor["shape"])
        for name, tensor in safetensors.deserialize(content)
    }
    for name in [name for name in arrays if name.endswith(_SCALE)]:
        arrays[name.removesuffix(_SCALE)] *= arrays.pop(name)[:, None]
    return arrays


def int8_weights(content: bytes, metadata: dict[str, str]) -> bytes:
    """A safetensors file with every matrix in 8 bits."""
    arrays: dict[str, np.ndarray] = {}
    for name, array in float32_weights(content).items():
        if array.ndim != 2:
            arrays[name] = array
            continue
        scale_rows = np.abs(array).max(axis=1) / np.float32(127)
        scale_rows[scale_rows == 0] = 1  # rows of zeros
        arrays[name] = np.rint(array / scale_rows[:, None]).astype(np.int8)
        arrays[f"{name}{_SCALE}"] = scale_rows
    return save_arrays(arrays, metadata)


def _float32(data: Any, dtype: str) -> NDArray[np.float32]:
    numbers = np.frombuffer(data, _NUMPY_DTYPES[dtype])
    if dtype == "BF16":  # the upper half of a float32
        return (numbers.astype(np.uint32) << 16).view(np.float32)
    return numbers.astype(np.float32)
