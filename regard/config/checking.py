"""Checks that every section of the configuration shares: types of values, and ranges.

The checks return sentences rather than raise, so that one error reports all problems of a configuration.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from difflib import get_close_matches
from functools import cache
from math import inf
from types import NoneType
from typing import Annotated, Any, ClassVar, Literal, Protocol, get_args, get_origin, get_type_hints

from regard.config.registries import IMPORT_FIRST, Registry
from regard.errors import ConfigError

KIND_NAMES = {int: "an integer", float: "a number", bool: "true or false", str: "text", NoneType: '"none"'}


class Section(Protocol):
    """A frozen dataclass of settings: `ModelConfig`, `DataConfig`, `TrainingConfig`, `DecodingConfig`."""

    __dataclass_fields__: ClassVar[dict[str, Any]]
    SECTION: ClassVar[str]

    def problems(self) -> list[str]:
        """Every contradiction among settings of the right types."""
        ...


@cache
def types_of(section: type[Section]) -> dict[str, Any]:
    """The type of every setting of a section, by name, in the order of definition."""
    hints = get_type_hints(section, include_extras=True)
    return {field.name: hints[field.name] for field in fields(section)}


def choices(kind: Any) -> tuple[str, ...]:
    """The words that a `Literal` or a registry allows; nothing for any other type."""
    if registry := _registry(kind):
        return registry.names
    return get_args(kind) if get_origin(kind) is Literal else ()


def _registry(kind: Any) -> Registry | None:
    named = get_args(kind)[1] if get_origin(kind) is Annotated else None
    return named if isinstance(named, Registry) else None


def kinds(kind: Any) -> tuple[type, ...]:
    """The plain types that a field takes: `(int, NoneType)` for `int | None`."""
    return get_args(kind) or (kind,)


def expected(kind: Any) -> str:
    """What a field takes, in words."""
    if words := choices(kind):
        return "one of " + ", ".join(words)
    return " or ".join(KIND_NAMES[one] for one in kinds(kind))


def shown(value: object) -> str:
    """A value as in TOML; tables and lists are only named."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict | list):
        return "a table" if isinstance(value, dict) else "a list"
    return f'"{value}"' if isinstance(value, str) else str(value)


def did_you_mean(word: str, known: list[str] | tuple[str, ...]) -> str:
    """`; did you mean …?` for the nearest known word, or nothing when none is near."""
    near = get_close_matches(word, known, n=1)
    return f"; did you mean {near[0]}?" if near else ""


def counted(number: float, one: str, several: str = "") -> str:
    """`1 row`, `1,200 rows`; `several` is the plural if it is not formed with an s."""
    digits = f"{number:,}" if isinstance(number, int) else f"{number:,g}"
    return f"{digits} {one if number == 1 else several or one + 's'}"


def type_problem(name: str, kind: Any, value: object) -> str | None:
    """Why `value` does not fit the field called `name`, or None if it does."""
    if words := choices(kind):
        if value in words:
            return None
        advice = f". {IMPORT_FIRST}" if _registry(kind) else ""
        hint = did_you_mean(str(value), words) or advice
        return f"{name} = {shown(value)} is not {expected(kind)}{hint}"
    allowed = kinds(kind)
    if type(value) is int and abs(value) >= 1 << 63:
        return f"{name} expects {expected(kind)} below 2**63, got {shown(value)}"
    # In Python a bool is an int, but `n_heads = true` is a mistake.
    if type(value) in allowed or (type(value) is int and float in allowed):
        return None
    return f"{name} expects {expected(kind)}, got {shown(value)}"


def type_error(name: str, kind: Any, value: object) -> ConfigError | None:
    """The problem of `type_problem` as an error to raise, with its code."""
    problem = type_problem(name, kind, value)
    code = "unknown_choice" if choices(kind) else "wrong_type"
    return None if problem is None else ConfigError(problem, code=code)


def merged(errors: Sequence[ConfigError], where: str | None) -> ConfigError:
    """One error with all problems; it has their code if they agree on one."""
    codes = {error.code for error in errors}
    problems = [problem for error in errors for problem in error.problems]
    return ConfigError(problems, where, code=codes.pop() if len(codes) == 1 else None)


def refuse_problems(config: Section) -> None:
    """Raise every problem of one section together; for `__post_init__`."""
    errors = [
        error
        for name, kind in types_of(type(config)).items()
        if (error := type_error(f"{config.SECTION}.{name}", kind, getattr(config, name)))
    ]
    # Ranges are checked among well-typed values only: "512" < 1 has no answer.
    if not errors and (problems := config.problems()):
        errors = [ConfigError(problems, code="bad_value")]
    if errors:
        raise merged(errors, type(config).__name__)


def too_small(config: Section, least: Mapping[str, float]) -> list[str]:
    """The settings below their minimum, or not finite; None passes."""
    found = []
    for name, bound in least.items():
        value = getattr(config, name)
        if value is not None and not bound <= value < inf:
            finite = " and finite" if isinstance(value, float) else ""
            found.append(f"{config.SECTION}.{name} = {value} must be at least {bound}{finite}")
    return found


def too_large(config: Section, most: Mapping[str, int]) -> list[str]:
    """The settings above their maximum; None passes."""
    return [
        f"{config.SECTION}.{name} = {value} must be at most {bound:,}"
        for name, bound in most.items()
        if (value := getattr(config, name)) is not None and value > bound
    ]


def not_positive(config: Section, *names: str) -> list[str]:
    """The settings that are not above 0, or not finite; None passes."""
    return [
        f"{config.SECTION}.{name} = {value} must be above 0 and finite"
        for name in names
        if (value := getattr(config, name)) is not None and not 0 < value < inf
    ]


def not_a_fraction(config: Section, *names: str) -> list[str]:
    """The settings that are not in [0, 1): probabilities and decay rates."""
    return [
        f"{config.SECTION}.{name} = {value} must be at least 0 and below 1"
        for name in names
        if not 0 <= (value := getattr(config, name)) < 1
    ]
