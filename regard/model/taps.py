"""A name for every activation, so that each can be recorded or replaced.

    with recording(model) as seen:
        model(inputs, outputs)
    seen["decoder.layers.3.multi_head_attention.weights"]      # (B, H, L, M)

Blocks call `tap(self, "weights", weights)`. Outside `recording` it returns its argument at the cost of one
look-up; inside, attention is computed with the softmax written out. A recorder may also replace activations,
which is how interventions work. Compiled code has no taps: record the plain module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Tensor, nn

from regard.errors import ShapeError

Replace = Callable[[str, Tensor], Tensor]
Keep = Callable[[str], bool]


class Recorder:
    """Activations by address: the module's path in the model, a dot, the activation's name."""

    def __init__(self, model: nn.Module, replace: Replace | None, keep: Keep | None) -> None:
        self.seen: dict[str, Tensor] = {}
        self._paths = {id(module): path for path, module in model.named_modules()}
        self._replace, self._keep = replace, keep

    def tap(self, module: nn.Module, name: str, value: Tensor) -> Tensor:
        """Record the value under its address, after an optional replacement."""
        path = self._paths.get(id(module))
        if path is None:  # a module of another model
            return value
        address = f"{path}.{name}" if path else name
        if self._replace is not None:
            value = self._replaced(self._replace, address, value)
        if self._keep is None or self._keep(address):
            self.seen[address] = value.detach()
        return value

    @staticmethod
    def _replaced(replace: Replace, address: str, value: Tensor) -> Tensor:
        new: object = replace(address, value)
        if not isinstance(new, Tensor) or new.shape != value.shape:  # some other shapes would broadcast
            got = tuple(new.shape) if isinstance(new, Tensor) else type(new).__name__
            raise ShapeError(f"replacement of {address}", tuple(value.shape), got, code="bad_shape")
        return new


# A context variable, so that one thread can record while others run.
_recorder: ContextVar[Recorder | None] = ContextVar("recorder", default=None)


def is_recording() -> bool:
    """Whether activations are recorded, so that attention must be written out."""
    return not torch.compiler.is_compiling() and _recorder.get() is not None


def tap(module: nn.Module, name: str, value: Tensor) -> Tensor:
    """Record an activation if a recorder is active; returns the value to continue with."""
    if not is_recording():
        return value
    recorder = _recorder.get()
    assert recorder is not None
    return recorder.tap(module, name, value)


@contextmanager
def recording(
    model: nn.Module, replace: Replace | None = None, keep: Keep | None = None
) -> Iterator[dict[str, Tensor]]:
    """Record the activations of `model` by address, or only those whose address passes `keep`.

    `replace(address, value)` returns the value to continue with.
    """
    recorder = Recorder(model, replace, keep)
    token = _recorder.set(recorder)
    try:
        yield recorder.seen
    finally:
        _recorder.reset(token)
