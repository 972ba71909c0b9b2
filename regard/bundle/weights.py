"""From a model to the bytes of its weights, and back. The only part of the model folder that needs torch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import safetensors

from regard.bundle.arrays import SCALE
from regard.bundle.manifest import FORMAT, WEIGHTS
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
"""What weights may be: safetensors' name and torch's."""


def weights_hash(source: nn.Module | Path | str) -> str:
    """sha256 over the names, dtypes, shapes and bytes of all weights, of a model or of a model folder.

    Equal for equal weights, whatever wrote them and on whichever device they lie.
    """
    if not isinstance(source, Path | str):
        return hash_of(to_bytes(source))
    try:
        return hash_of((Path(source) / WEIGHTS).read_bytes())
    except (OSError, safetensors.SafetensorError) as error:
        raise BundleError(f"{WEIGHTS} cannot be read: {error}", str(source)) from error


def hash_of(content: bytes) -> str:
    """The hash of the weights in a safetensors file: that file's own layout and notes do not count."""
    total = sha256()
    for name, tensor in sorted(safetensors.deserialize(content)):
        total.update(json.dumps([name, tensor["dtype"], tensor["shape"]]).encode())
        total.update(tensor["data"])
    return total.hexdigest()


def to_bytes(model: nn.Module) -> bytes:
    """The weights as a safetensors file, each once: `named_parameters` gives a shared one its first name."""
    from safetensors.torch import save

    tensors = {name: each.detach().cpu().contiguous() for name, each in model.named_parameters()}
    return save(tensors, metadata={"regard_format": str(FORMAT)})


def count_parameters(file: Path, problems: list[str]) -> tuple[int, str]:
    """The number of parameters in a safetensors file and their dtype, from its header, without torch."""
    try:
        with safetensors.safe_open(file, framework="numpy") as opened:
            names = [name for name in opened.keys() if not name.endswith(SCALE)]  # noqa: SIM118 - no mapping
            slices = [opened.get_slice(name) for name in names]
    except (OSError, safetensors.SafetensorError) as error:
        problems.append(f"{WEIGHTS} is not a safetensors file: {error}")
        return 0, ""
    dtypes = {(DTYPES | {"I8": "int8"}).get(each.get_dtype(), each.get_dtype()) for each in slices}
    return sum(prod(each.get_shape()) for each in slices), ", ".join(sorted(dtypes))


def read_tensors(content: bytes, problems: list[str]) -> dict[str, Tensor] | None:
    """The weights in a safetensors file, by name; None, and why, where it is something else.

    What was saved in 8 bits comes back as float32.
    """
    from safetensors.torch import load

    try:
        found = load(content)
        for scale in [name for name in found if name.endswith(SCALE) and name.removesuffix(SCALE) in found]:
            name = scale.removesuffix(SCALE)
            found[name] = found[name].float() * found.pop(scale)[:, None]
        return found
    except safetensors.SafetensorError as error:
        problems.append(f"{WEIGHTS} is not a safetensors file: {error}")
    except KeyError as error:
        problems.append(f"{WEIGHTS} holds weights of an unknown dtype: {error}")
    return None


def load_tensors(model: Model, tensors: dict[str, Tensor], device: torch.device | str) -> Model:
    """Give a model these weights, which must fit; the dictionary is emptied as they move."""
    for name, parameter in model.named_parameters():
        # Copied, so that the memory is torch's own, aligned as its kernels like it.
        parameter.data = tensors.pop(name).to(device, copy=True)
    return model.to(device).eval()


def weight_problems(model: nn.Module, tensors: Mapping[str, Tensor]) -> list[str]:
    """Every weight that the model lacks, does not know, or has in another shape."""
    expected = dict(model.named_parameters())
    missing = [f"weight {name} is missing" for name in expected if name not in tensors]
    unexpected = [f"weight {name} is unexpected" for name in sorted(tensors) if name not in expected]
    both = [(name, tensors[name], each) for name, each in expected.items() if name in tensors]
    shapes = [
        f"weight {name} has the shape {tuple(found.shape)}; the configuration asks for {tuple(wanted.shape)}"
        for name, found, wanted in both
        if found.shape != wanted.shape
    ]
    dtypes = [
        f"weight {name} is {found.dtype}; weights are {', '.join(DTYPES.values())}"
        for name, found, _ in both
        if str(found.dtype).removeprefix("torch.") not in DTYPES.values()
    ]
    return [*missing, *unexpected, *shapes, *dtypes]


def empty_model(config: ModelConfig) -> Model:
    """A model whose weights have no values yet; drawing some would take longer than reading them.

    torch's "meta" device would do too, but its first use imports parts of torch that take a second.
    """
    import torch
    from torch.overrides import TorchFunctionMode

    from regard.model.build import build

    class NothingIsDrawn(TorchFunctionMode):
        def __torch_function__(
            self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
        ) -> Any:
            if func in (torch.Tensor.uniform_, torch.Tensor.normal_):
                return args[0]
            return (torch.empty if func is torch.randn else func)(*args, **kwargs or {})

    with NothingIsDrawn():
        return build(config)
