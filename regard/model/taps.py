"""A name on every activation, so that one can look where one likes.

    with recording(model) as seen:
        model(inputs, outputs)
    seen["decoder.layers.3.multi_head_attention.weights"]      # (B, H, L, M)

Blocks call `tap(self, "weights", weights)`. Outside `recording` that hands its argument back at the cost of
one look-up; inside, attention is computed with the softmax written out. A recorder may also replace what it
sees, which is all that an intervention is. Compiled code has no taps: look with the plain module.
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
    """What was seen, by address: the module's path in the model, a dot, the activation's name."""

    def __init__(self, model: nn.Module, replace: Replace | None, keep: Keep | None) -> None:
        self.seen: dict[str, Tensor] = {}
        self._paths = {id(module): path for path, module in model.named_modules()}
        self._replace, self._keep = replace, keep

    def tap(self, module: nn.Module, name: str, value: Tensor) -> Tensor:
        """Keep the value under its address, after the replacement if there is one."""
        path = self._paths.get(id(module))
        if path is None:  # a module of another model: not what this recorder was asked to watch
            return value
        address = f"{path}.{name}" if path else name
        if self._replace is not None:
            value = self._replaced(self._replace, address, value)
        if self._keep is None or self._keep(address):
            self.seen[address] = value.detach()
        return value

    @staticmethod
    def _replaced(replace: Replace, address: str, value: Tensor) -> Tensor:
        found: object = replace(address, value)
        if not isinstance(found, Tensor) or found.shape != value.shape:  # sums would stretch some of them
            got = tuple(found.shape) if isinstance(found, Tensor) else type(found).__name__
            raise ShapeError(f"what replaces {address}", tuple(value.shape), got)
        return found


# A context variable, so that one thread can look while others run.
_recorder: ContextVar[Recorder | None] = ContextVar("recorder", default=None)


def is_recording() -> bool:
    """Whether somebody is looking, so that attention must be written out."""
    return not torch.compiler.is_compiling() and _recorder.get() is not None


def tap(module: nn.Module, name: str, value: Tensor) -> Tensor:
    """Show an activation to whoever records; gives back the value to go on with."""
    if not is_recording():
        return value
    recorder = _recorder.get()
    assert recorder is not None
    return recorder.tap(module, name, value)


@contextmanager
def recording(
    model: nn.Module, replace: Replace | None = None, keep: Keep | None = None
) -> Iterator[dict[str, Tensor]]:
    """Record every activation of `model` by address, or those only whose address passes `keep`.

    `replace(address, value)` may change each of them on the way.
    """
    recorder = Recorder(model, replace, keep)
    token = _recorder.set(recorder)
    try:
        yield recorder.seen
    finally:
        _recorder.reset(token)
