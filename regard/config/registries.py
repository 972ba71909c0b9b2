"""Registries: the named choices of a setting, to which a user can add. Imports no torch.

A registry knows its built-in choices by name without importing them, so that `--help` does not wait for
torch. The configuration and the model folder store the name. See `docs/extending.md`.

    from regard import registries

    @registries.positions.register("my-positions")
    class MyPositions(Positions): ...
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, TypeVar

from regard.errors import ConfigError

T = TypeVar("T")

IMPORT_FIRST = "If it is your own, import the module that registers it first"


class Registry:
    """The choices of one kind, by name."""

    def __init__(self, kind: str, builtin: Mapping[str, str]) -> None:
        """`kind` is the noun for messages; `builtin` maps a name to the module that registers it."""
        self.kind = kind
        self._builtin = dict(builtin)
        self._chosen: dict[str, Any] = {}

    def register(self, name: str) -> Callable[[T], T]:
        """A decorator that registers a class or function under a name.

        Raises:
            ConfigError: another object has that name.
        """

        def add(choice: T) -> T:
            known = self._chosen.get(name)
            home = self._builtin.get(name)
            ours = getattr(choice, "__module__", "")
            if (known is not None and not _same(known, choice)) or (home is not None and home != ours):
                raise ConfigError(f"the {self.kind} {name!r} exists already", code="duplicate_choice")
            self._chosen[name] = choice
            return choice

        return add

    @property
    def names(self) -> tuple[str, ...]:
        """Every name that can be chosen, the built-in ones first."""
        return tuple(dict.fromkeys([*self._builtin, *self._chosen]))

    def problems(self, name: str, config: object) -> list[str]:
        """What the choice objects to in a configuration: the result of its `problems`, if it has one.

        A built-in choice is not imported for this: the configuration knows what the built-in ones need.
        """
        check = getattr(self._chosen.get(name), "problems", None)
        return [] if check is None else list(check(config))

    def __contains__(self, name: object) -> bool:
        return name in self._builtin or name in self._chosen

    def __getitem__(self, name: str) -> Any:
        """The choice of that name.

        Raises:
            ConfigError: it is not registered.
        """
        if name not in self._chosen and name in self._builtin:
            import_module(self._builtin[name])
        if name not in self._chosen:
            known = ", ".join(self.names)
            raise ConfigError(
                f"the {self.kind} {name!r} is not registered; known are {known}. {IMPORT_FIRST}",
                code="unknown_choice",
            )
        return self._chosen[name]

    def __repr__(self) -> str:
        return f"Registry({self.kind!r}: {', '.join(self.names)})"


def _same(one: object, other: object) -> bool:
    """Whether two objects are one definition: a module may be executed twice, as in a notebook."""
    return all(
        getattr(one, name, None) == getattr(other, name, None) for name in ("__module__", "__qualname__")
    )


_POSITIONS = "regard.model.positional_encoding"
_SIMILARITY = "regard.model.similarity"
_FEED_FORWARD = "regard.model.feed_forward"
_NORM = "regard.model.add_and_norm"
_OPTIMIZERS = "regard.training.optimizers"
_SCHEDULE = "regard.training.schedule"

tasks = Registry(
    "task",
    {
        "translate": "regard.tasks.translate",
        "generate": "regard.tasks.generate",
        "classify": "regard.tasks.classify",
        "summarise": "regard.tasks.fields",
        "converse": "regard.tasks.fields",
        "answer": "regard.tasks.fields",
    },
)
"""What a model is trained for, by `task.name`: subclasses of `regard.Task`."""

positions = Registry(
    "position",
    dict.fromkeys(("sinusoidal", "learned", "rotary", "none"), _POSITIONS)
    | dict.fromkeys(("alibi", "t5-relative"), "regard.model.relative_positions"),
)
"""How a stack knows the order of its tokens, by `model.positions`: subclasses of `Positions`."""

similarities = Registry(
    "similarity", dict.fromkeys(("scaled-dot", "dot", "cosine", "additive", "bilinear"), _SIMILARITY)
)
"""How a query is compared with a key, by `model.similarity`: subclasses of `DotProduct`."""

feed_forwards = Registry(
    "feed-forward",
    dict.fromkeys(("relu", "gelu", "gelu-tanh", "swish", "swiglu", "geglu"), _FEED_FORWARD),
)
"""What the feed-forward sub-layer does between its linear maps, by `model.feed_forward`: functions."""

norms = Registry("norm", dict.fromkeys(("layer", "rms"), _NORM))
"""How activations are normalised, by `model.norm`: modules made from d_model and epsilon."""

optimizers = Registry("optimizer", {"adamw": f"{_OPTIMIZERS}.adamw", "muon": f"{_OPTIMIZERS}.muon"})
"""What turns gradients into steps, by `training.optimizer`: functions of a model and a `TrainingConfig`."""

schedules = Registry("schedule", dict.fromkeys(("paper", "cosine", "warmup-stable-decay"), _SCHEDULE))
"""The learning rate over a run, by `training.schedule`: functions like `regard.training.schedule.paper`."""
