"""A name for every activation, so that each can be recorded or replaced.

    with recording(model) as seen:
        model(inputs, outputs)
    seen["decoder.layers.3.multi_head_attention.weights"]      # (B, H, L, M)

Blocks call `tap(self, "weights", weights)` and list the names in `taps`. Outside `recording` a tap returns
its argument at the cost of one look-up; inside, attention is computed with the softmax written out. A
recorder may also replace activations, which is how interventions work. Compiled code has no taps: record and
call the plain module.
"""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from fnmatch import fnmatchcase
from typing import Any

import torch
from torch import Tensor, nn

from regard.config.checking import did_you_mean
from regard.errors import ShapeError

Replace = Callable[[str, Tensor], Tensor]
"""`replace(address, value)` returns the value to continue with."""
Watch = Callable[[str, Tensor], None]
Replacements = Mapping[str, Callable[[Tensor], Tensor]]
"""For each address, or pattern of addresses, a function of the value."""
Keep = Callable[[str], bool] | Collection[str]
"""A condition on addresses, or addresses and patterns; nothing is kept of an empty collection."""
COPY_OF = "_copy_of"
"""The attribute by which a module of a copy refers, weakly, to its original, and to the original of that."""


class Recorder:
    """Activations by address: the module's path in the model, a dot, the activation's name."""

    def __init__(
        self,
        model: nn.Module,
        replace: Replace | Replacements | None,
        keep: Keep | None,
        *,
        detach: bool,
        watch: Watch | None = None,
    ) -> None:
        _check_plain(model)
        self.seen: dict[str, Tensor] = {}
        self._model = model  # while it lives, the ids of its modules are not used again
        self._paths = {id(module): path for path, module in model.named_modules()}
        self._addresses = addresses(model)
        self._detach, self._watch = detach, watch
        self._replace = None if isinstance(replace, Mapping) else replace
        self._replacements = replace if isinstance(replace, Mapping) else {}
        for pattern in self._replacements:
            self._check_known("replace", pattern)
        self._keep = self._condition(keep)
        self._plans: dict[str, tuple[bool, tuple[str, ...]]] = {}
        self._ran = self._changed = False
        self._applied: set[str] = set()

    def path_of(self, module: nn.Module) -> str | None:
        """The path of a module of the model, or of a copy; None for other modules."""
        if (path := self._paths.get(id(module))) is not None:
            return path
        for original in module.__dict__.get(COPY_OF, ()):
            if (found := original()) is not None and (path := self._paths.get(id(found))) is not None:
                return path
        return None

    def wants(self, module: nn.Module, name: str) -> bool:
        """Whether the activation would be kept, or might be replaced."""
        if (path := self.path_of(module)) is None:
            return False
        kept, patterns = self._plan(_join(path, name))
        return kept or bool(patterns) or self._replace is not None

    def tap(self, module: nn.Module, name: str, value: Tensor) -> Tensor:
        """Record the value under its address, after an optional replacement."""
        if (path := self.path_of(module)) is None:
            return value
        self._ran = True
        address = _join(path, name)
        kept, patterns = self._plan(address)
        if self._replace is not None:
            value = self._replaced(self._replace, address, value)
        for pattern in patterns:
            value = _checked(self._replacements[pattern](value), address, value)
            self._applied.add(pattern)
        if kept:
            self.seen[address] = value.detach() if self._detach else value
        if self._watch is not None:
            self._watch(address, value)
        return value

    def note(self, module: nn.Module, name: str, value: Tensor) -> None:
        """Show a value that is no activation."""
        if self._watch is not None and (path := self.path_of(module)) is not None:
            self._watch(_join(path, name), value)

    def check_effect(self) -> None:
        """Raise if the recording cannot have had the effect that was asked for."""
        if not self._ran:
            if _is_compiled_elsewhere(self._model):
                expected = "calls of the module itself, because compiled code has no taps"
                raise ShapeError("recording", expected, "a compiled form of it", code="compiled_model")
            return
        if self._replace is not None and not self._changed:
            expected = "a function that changes an activation"
            got = "the same value at every address that ran"
            raise ShapeError("replace", expected, got, code="nothing_replaced")
        for pattern in self._replacements:
            if pattern not in self._applied:
                expected = "addresses that run"
                got = f"{pattern}, which did not run while the rest of the model did"
                raise ShapeError("replace", expected, got, code="nothing_replaced")

    def _plan(self, address: str) -> tuple[bool, tuple[str, ...]]:
        """Whether to keep an activation, and the patterns of the replacements that apply to it."""
        plan = self._plans.get(address)
        if plan is None:
            patterns = tuple(pattern for pattern in self._replacements if fnmatchcase(address, pattern))
            plan = self._plans[address] = (self._keep(address), patterns)
        return plan

    def _condition(self, keep: Keep | None) -> Callable[[str], bool]:
        if keep is None:
            return lambda _: True
        if callable(keep):
            if not any(map(keep, self._addresses)):
                expected = "a condition that an address of the model passes; () keeps nothing"
                raise ShapeError("keep", expected, "one that none passes", code="unknown_address")
            return keep
        patterns = (keep,) if isinstance(keep, str) else tuple(keep)
        for pattern in patterns:
            self._check_known("keep", pattern)
        return lambda address: any(fnmatchcase(address, pattern) for pattern in patterns)

    def _check_known(self, argument: str, pattern: str) -> None:
        if not any(fnmatchcase(address, pattern) for address in self._addresses):
            near = did_you_mean(pattern, self._addresses)
            advice = near or "; `regard.addresses(model)` lists them"
            raise ShapeError(argument, "addresses of the model", f"{pattern}{advice}", code="unknown_address")

    def _replaced(self, replace: Replace, address: str, value: Tensor) -> Tensor:
        if self._changed:
            return _checked(replace(address, value), address, value)
        # Until something has changed, notice changes in place, too. Inference tensors do not count them.
        before = value.clone() if value.is_inference() else value._version
        new = _checked(replace(address, value), address, value)
        if isinstance(before, Tensor):
            self._changed = new is not value or not torch.equal(before, value)
        else:
            self._changed = new is not value or before != value._version
        return new


# A context variable, so that one thread can record while others run.
_recorders: ContextVar[tuple[Recorder, ...]] = ContextVar("recorders", default=())


def is_recording(module: nn.Module | None = None) -> bool:
    """Whether activations of a module, or by default of any, are recorded."""
    if torch.compiler.is_compiling():
        return False
    recorders = _recorders.get()
    if not recorders or module is None:
        return bool(recorders)
    return any(recorder.path_of(module) is not None for recorder in recorders)


def wants(module: nn.Module, name: str) -> bool:
    """Whether an activation that is not computed otherwise is to be recorded, or might be replaced."""
    if torch.compiler.is_compiling():
        return False
    recorders = _recorders.get()
    return bool(recorders) and any(recorder.wants(module, name) for recorder in recorders)


def tap(module: nn.Module, name: str, value: Tensor) -> Tensor:
    """Show an activation to all active recorders; returns the value to continue with."""
    if torch.compiler.is_compiling():
        return value
    for recorder in _recorders.get():
        value = recorder.tap(module, name, value)
    return value


def note(module: nn.Module, name: str, value: Tensor) -> None:
    """Show the `watch` of all active recorders something that is no activation, such as positions."""
    if not torch.compiler.is_compiling():
        for recorder in _recorders.get():
            recorder.note(module, name, value)


@contextmanager
def recording(
    model: nn.Module,
    replace: Replace | Replacements | None = None,
    keep: Keep | None = None,
    *,
    detach: bool = True,
    watch: Watch | None = None,
) -> Iterator[dict[str, Tensor]]:
    """Record activations of a model by address, and optionally replace some.

    Copies of the model that engines run count as the model. Recordings can be nested: the outermost one sees
    an activation first, and the next one gets what that one returned. If an address runs several times, as in
    decoding, its last value is kept.

    Args:
        model: the module to record; a part of a model has addresses of its own.
        replace: `replace(address, value)` returns the value to continue with; or a mapping from addresses, or
            patterns such as `*.feed_forward.output`, to functions of the value.
        keep: addresses or patterns to keep, or a condition on addresses; default all, and `()` for none.
        detach: whether to keep values without the graph; with False, gradients can be taken with respect to
            what was recorded.
        watch: `watch(address, value)` is called with every activation, after all replacements so far; and, as
            `input_embedding.places` or `output_embedding.places`, with the positions of the tokens, (N,).

    Raises:
        ShapeError: the module is compiled; an entry of `replace` or `keep` is no address of the model; a
            replacement has another shape; or, at the end, the model ran and nothing was replaced.
    """
    recorder = Recorder(model, replace, keep, detach=detach, watch=watch)
    token = _recorders.set((*_recorders.get(), recorder))
    try:
        yield recorder.seen
    finally:
        _recorders.reset(token)
    recorder.check_effect()


def addresses(model: nn.Module) -> list[str]:
    """The addresses of all activations of a model: what its modules list in their attribute `taps`."""
    return [
        _join(path, name) for path, module in model.named_modules() for name in getattr(module, "taps", ())
    ]


def note_copy(copy: nn.Module, original: nn.Module) -> None:
    """Let recordings of a model reach a copy, module by module."""
    modules = dict(original.named_modules())
    for path, module in copy.named_modules():
        if path in modules:
            earlier = modules[path].__dict__.get(COPY_OF, ())
            module.__dict__[COPY_OF] = (weakref.ref(modules[path]), *earlier)


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _checked(new: object, address: str, value: Tensor) -> Tensor:
    if not isinstance(new, Tensor) or new.shape != value.shape:  # some other shapes would broadcast
        got = tuple(new.shape) if isinstance(new, Tensor) else type(new).__name__
        raise ShapeError(f"replacement of {address}", tuple(value.shape), got, code="bad_shape")
    return new


def _check_plain(model: nn.Module) -> None:
    """Refuse a module that is compiled as a whole or in part."""
    compiled = _compiled_class()
    for path, module in model.named_modules():
        if type(module) is compiled or module._compiled_call_impl is not None:
            got = f"a compiled one{f' at {path}' if path else ''}"
            expected = "a plain module, because compiled code has no taps"
            raise ShapeError("model", expected, got, code="compiled_model")


def _is_compiled_elsewhere(model: nn.Module) -> bool:
    """Whether the result of `torch.compile` for the model, or for a part of it, is in use."""
    compiled = _compiled_class()
    if compiled is None:
        return False
    parts = {id(module) for module in model.modules()}
    # A module does not know what wraps it, and this is needed only where nothing ran.
    return any(
        type(each) is compiled and id(each._modules["_orig_mod"]) in parts for each in gc.get_objects()
    )


def _compiled_class() -> Any:
    """What `torch.compile` makes of a module; None before the first use, which takes a second to import."""
    dynamo = sys.modules.get("torch._dynamo.eval_frame")
    return None if dynamo is None else dynamo.OptimizedModule
