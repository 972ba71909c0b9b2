"""Changes inside a model while it is traced, as a list of plain values for Python, files and requests.

    [{"op": "head-off", "kind": "cross", "layer": 4, "head": 2}, {"op": "no-scale"}]

Layers, heads and tokens count from 0. The order of these has no effect: the scale is removed first, then
attention is made uniform, then pinned; a masked token stays masked. Those of `activations.py`, which ablate,
add and patch at any address, follow in the order of the list.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, ClassVar, get_type_hints

from regard.config import ModelConfig
from regard.config.checking import did_you_mean, expected, shown, type_problem
from regard.errors import RequestError
from regard.look.interventions.activations import (
    ACTIVATIONS,
    Ablate,
    Activation,
    Add,
    Patch,
    Traces,
    address_problem,
    from_values,
    to_values,
)
from regard.look.trace.blocks import BlockName, Kind, address_of, blocks_of, kinds_of, layers_of

NEVER = -1e30
"""A score whose softmax is exactly 0 beside any other."""
UNBIASED = ("sinusoidal", "learned", "rotary", "none")
"""Positions that add nothing to scores."""


@dataclass(frozen=True, kw_only=True, slots=True)
class HeadOff:
    """The output of a head becomes 0 before W_O."""

    OP: ClassVar[str] = "head-off"
    kind: Kind
    layer: int
    head: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Uniform:
    """A head attends evenly to everything that it may attend to."""

    OP: ClassVar[str] = "uniform"
    kind: Kind
    layer: int
    head: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Pin:
    """One query of a head attends to one key only."""

    OP: ClassVar[str] = "pin"
    kind: Kind
    layer: int
    head: int
    query: int
    key: int


@dataclass(frozen=True, kw_only=True, slots=True)
class MaskSource:
    """No token of the encoder or the decoder may attend to this token of the inputs."""

    OP: ClassVar[str] = "mask-source"
    token: int


@dataclass(frozen=True, kw_only=True, slots=True)
class SkipBlock:
    """A block adds nothing to the residual stream."""

    OP: ClassVar[str] = "skip-block"
    block: BlockName
    layer: int


@dataclass(frozen=True, kw_only=True, slots=True)
class NoScale:
    """Scores are not divided by √d_k."""

    OP: ClassVar[str] = "no-scale"


@dataclass(frozen=True, kw_only=True, slots=True)
class NoPositions:
    """The model gets no positions; masks remain."""

    OP: ClassVar[str] = "no-positions"


Intervention = HeadOff | Uniform | Pin | MaskSource | SkipBlock | NoScale | NoPositions | Activation

_CLASSES: dict[str, type[Any]] = {
    each.OP: each for each in (HeadOff, Uniform, Pin, MaskSource, SkipBlock, NoScale, NoPositions)
}


def to_json(interventions: Iterable[Intervention]) -> list[dict[str, Any]]:
    """Interventions as plain values."""
    return [
        to_values(each) if isinstance(each, Activation) else {"op": each.OP, **asdict(each)}
        for each in interventions
    ]


def from_json(values: object, traces: Traces | None = None) -> tuple[Intervention, ...]:
    """Undo `to_json`; `traces` finds the trace that a patch names.

    Raises:
        RequestError: the list is malformed; the message names the place and what it expects.
    """
    if not isinstance(values, list | tuple):
        raise RequestError(f"interventions expects a list, got {shown(values)}", code="bad_intervention")
    return tuple(
        each if isinstance(each, Intervention) else _one_from_json(each, f"interventions[{i}]", traces)
        for i, each in enumerate(values)
    )


def _one_from_json(value: object, where: str, traces: Traces | None) -> Intervention:
    if isinstance(value, dict) and value.get("op") in tuple(ACTIVATIONS):
        return from_values(value, where, traces)
    if problem := _malformed(value, where):
        raise RequestError(problem, code="bad_intervention")
    assert isinstance(value, dict), "checked above"
    made: Intervention = _CLASSES[value["op"]](**{name: each for name, each in value.items() if name != "op"})
    return made


def _malformed(value: object, where: str) -> str | None:
    """Why a value is not an intervention; None if it is one."""
    if not isinstance(value, dict):
        return f"{where} expects an object with an op, got {shown(value)}"
    op, known = value.get("op"), (*_CLASSES, *ACTIVATIONS)
    if op not in known:
        hint = did_you_mean(str(op), known)
        return f"{where}.op = {shown(op)} is not one of {', '.join(known)}{hint}"
    hints = get_type_hints(_CLASSES[op])
    types = {field.name: hints[field.name] for field in fields(_CLASSES[op])}
    for name in value:
        if name not in ("op", *types):
            return f"{where}.{name} is not a field of {op}, which takes {', '.join(types) or 'nothing else'}"
    for name, kind in types.items():
        if name not in value:
            return f"{where}.{name} is missing: {op} needs {expected(kind)}"
        if problem := type_problem(f"{where}.{name}", kind, value[name]):
            return problem
    return None


def check(
    interventions: Sequence[Intervention], config: ModelConfig, n_inputs: int, n_outputs: int | None
) -> None:
    """Check that interventions fit the shape of a model, the length of a text and each other.

    `n_outputs` is None if the output is still to be searched for.

    Raises:
        RequestError: one does not fit; the message names its place in the list.
    """
    masked = {each.token for each in interventions if isinstance(each, MaskSource)}
    keys: dict[Pin, int] = {}
    for i, each in enumerate(interventions):
        problem = _problem(each, config, {"encoder": n_inputs, "decoder": n_outputs})
        if problem is None and isinstance(each, Pin):
            other = keys.setdefault(replace(each, key=0), each.key)
            if each.kind != "decoder" and each.key in masked:
                problem = f"key {each.key} is masked by another intervention"
            elif other != each.key:
                problem = f"another intervention pins the query to key {other}"
        if problem is not None:
            what = f"interventions[{i}] ({each.OP}): {problem}"
            raise RequestError(what, code="intervention_mismatch")
    if n_inputs and len(masked) == n_inputs:
        what = "every token of the inputs is masked: leave at least one"
        raise RequestError(what, code="intervention_mismatch")


def _problem(each: Intervention, config: ModelConfig, lengths: dict[str, int | None]) -> str | None:
    """Why an intervention does not fit a model and a text; None if it does."""
    match each:
        case HeadOff() | Uniform() | Pin():
            if each.kind not in kinds_of(config):
                return f"kind {each.kind} is not in this model, which has {', '.join(kinds_of(config))}"
            problem = _outside("layer", each.layer, layers_of(config, each.kind))
            problem = problem or _outside("head", each.head, config.n_heads)
            return problem or (_pin_problem(each, lengths) if isinstance(each, Pin) else None)
        case MaskSource():
            if config.architecture == "decoder":
                return "a language model has no inputs"
            return _outside("token", each.token, lengths["encoder"] or 0)
        case SkipBlock():
            if each.block not in blocks_of(config):
                return f"block {each.block} is not in this model, which has {', '.join(blocks_of(config))}"
            return _outside("layer", each.layer, layers_of(config, each.block))
        case NoScale():
            if config.similarity != "scaled-dot":
                return f"model.similarity = {config.similarity} has no scale to remove"
            if config.positions not in UNBIASED:
                return f"model.positions = {config.positions} adds a bias to the scores"
        case NoPositions():
            if config.positions == "none":
                return "the model has no positions"
        case Ablate() | Add() | Patch():
            length = lengths["encoder" if each.side == "input" else "decoder"]
            if each.positions is not None and length is not None:
                problems = (_outside("token", place, length) for place in each.positions)
                return next((problem for problem in problems if problem), None)
    return None


def check_addresses(interventions: Sequence[Intervention], addresses: Sequence[str], n_heads: int) -> None:
    """Check that a model with these addresses has the places of interventions on activations.

    Raises:
        RequestError: it has not; the message names the place in the list.
    """
    for i, each in enumerate(interventions):
        if isinstance(each, Activation) and (problem := address_problem(each, addresses, n_heads)):
            what = f"interventions[{i}] ({each.OP}): {problem}"
            raise RequestError(what, code="intervention_mismatch")


def _pin_problem(pin: Pin, lengths: dict[str, int | None]) -> str | None:
    n_queries = lengths["encoder" if pin.kind == "encoder" else "decoder"]
    n_keys = lengths["decoder" if pin.kind == "decoder" else "encoder"]
    if n_queries is None or n_keys is None:
        return "a pinned query is a place in the output: give a target"
    problem = _outside("query", pin.query, n_queries) or _outside("key", pin.key, n_keys)
    if problem is None and pin.kind == "decoder" and pin.key > pin.query:
        return f"query {pin.query} may not attend to the later key {pin.key}"
    return problem


def _outside(what: str, number: int, count: int) -> str | None:
    if not count:
        return f"there is no {what} {number}, since there are none"
    return None if 0 <= number < count else f"there is no {what} {number}; they are numbered 0 to {count - 1}"


def change_scores(
    scores: Any, interventions: Iterable[Intervention], config: ModelConfig, kind: Kind, layer: int, head: int
) -> None:
    """Change the scores of one head, (…, queries, keys), numpy or torch, in place; duplicates count once."""
    relevant = {each for each in interventions if _concerns(each, kind, layer, head)}
    for each in sorted(relevant, key=lambda each: (NoScale, Uniform, Pin).index(type(each))):
        match each:
            case NoScale():
                scores *= config.key_width**0.5
            case Uniform():
                scores[...] = 0.0
            case Pin():
                scores[..., each.query, :] = NEVER
                scores[..., each.query, each.key] = 0.0


def _concerns(each: Intervention, kind: Kind, layer: int, head: int) -> bool:
    if isinstance(each, Uniform | Pin):
        return (each.kind, each.layer, each.head) == (kind, layer, head)
    return isinstance(each, NoScale)


def heads_off(interventions: Iterable[Intervention], block: BlockName, layer: int) -> list[int]:
    """The heads of a block that are switched off."""
    off: set[int] = set()
    for each in interventions:
        if isinstance(each, HeadOff) and (each.kind, each.layer) == (block, layer):
            off.add(each.head)
        if isinstance(each, Ablate) and each.head is not None and each.positions is None:
            at = f"{address_of(block, layer)}.heads"
            off |= {each.head} if (each.by, each.at) == ("zero", at) else set()
    return sorted(off)


def masked_source(interventions: Iterable[Intervention]) -> list[int]:
    """The tokens of the inputs that are masked."""
    return sorted({each.token for each in interventions if isinstance(each, MaskSource)})
