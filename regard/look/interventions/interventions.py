"""What one may change inside a model while looking: one list of plain values, for Python, files and requests.

    [{"op": "head-off", "kind": "cross", "layer": 4, "head": 2}, {"op": "no-scale"}]

Layers, heads and tokens count from 0. The order of a list says nothing: the scale goes first, then attention
is made uniform, then pinned, and a masked token stays masked whatever else was asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, ClassVar, get_type_hints

from regard.config import ModelConfig
from regard.config.checking import did_you_mean, expected, shown, type_problem
from regard.errors import RequestError
from regard.look.trace.blocks import BlockName, Kind, blocks_of, kinds_of, layers_of

NEVER = -1e30
UNBIASED = ("sinusoidal", "learned", "rotary", "none")
"""Positions that add nothing to scores."""
"""A score whose softmax is exactly 0 beside any other."""


@dataclass(frozen=True, kw_only=True, slots=True)
class HeadOff:
    """A head's output becomes 0 before W_O joins the heads."""

    OP: ClassVar[str] = "head-off"
    kind: Kind
    layer: int
    head: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Uniform:
    """A head looks at everything that it may look at, evenly."""

    OP: ClassVar[str] = "uniform"
    kind: Kind
    layer: int
    head: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Pin:
    """One query of a head looks at one key and at nothing else."""

    OP: ClassVar[str] = "pin"
    kind: Kind
    layer: int
    head: int
    query: int
    key: int


@dataclass(frozen=True, kw_only=True, slots=True)
class MaskSource:
    """No token may look at this token of the inputs, in the encoder or from the decoder."""

    OP: ClassVar[str] = "mask-source"
    token: int


@dataclass(frozen=True, kw_only=True, slots=True)
class SkipBlock:
    """A block adds nothing: what it was given goes on past it."""

    OP: ClassVar[str] = "skip-block"
    block: BlockName
    layer: int


@dataclass(frozen=True, kw_only=True, slots=True)
class NoScale:
    """Scores are not divided by √d_k."""

    OP: ClassVar[str] = "no-scale"


@dataclass(frozen=True, kw_only=True, slots=True)
class NoPositions:
    """The model is not told where a token stands; masks remain."""

    OP: ClassVar[str] = "no-positions"


Intervention = HeadOff | Uniform | Pin | MaskSource | SkipBlock | NoScale | NoPositions

_CLASSES: dict[str, type[Intervention]] = {
    each.OP: each for each in (HeadOff, Uniform, Pin, MaskSource, SkipBlock, NoScale, NoPositions)
}


def to_json(interventions: Iterable[Intervention]) -> list[dict[str, Any]]:
    """The list as plain values."""
    return [{"op": each.OP, **asdict(each)} for each in interventions]


def from_json(values: object) -> tuple[Intervention, ...]:
    """Undo `to_json`.

    Raises:
        RequestError: this is no such list; the message says where, and what belongs there.
    """
    if not isinstance(values, list):
        raise RequestError(f"interventions expects a list, got {shown(values)}")
    return tuple(_one_from_json(value, f"interventions[{i}]") for i, value in enumerate(values))


def _one_from_json(value: object, where: str) -> Intervention:
    if not isinstance(value, dict):
        raise RequestError(f"{where} expects an object with an op, got {shown(value)}")
    op = value.get("op")
    known = tuple(_CLASSES)
    if op not in known:
        hint = did_you_mean(str(op), known)
        raise RequestError(f"{where}.op = {shown(op)} is not one of {', '.join(known)}{hint}")
    types = _types(_CLASSES[op])
    given = {name: each for name, each in value.items() if name != "op"}
    for name in given:
        if name not in types:
            takes = ", ".join(types) or "nothing else"
            raise RequestError(f"{where}.{name} is not a field of {op}, which takes {takes}")
    for name, kind in types.items():
        if name not in given:
            raise RequestError(f"{where}.{name} is missing: {op} needs {expected(kind)}")
        if problem := type_problem(f"{where}.{name}", kind, given[name]):
            raise RequestError(problem)
    return _CLASSES[op](**given)


def _types(kind: type[Any]) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}


def check(
    interventions: Sequence[Intervention], config: ModelConfig, n_inputs: int, n_outputs: int | None
) -> None:
    """Refuse what a model of this shape does not have, or a text of this length.

    `n_outputs` is None where the output is still to be found, token by token.

    Raises:
        RequestError: naming the place in the list, and what there is instead.
    """
    for i, each in enumerate(interventions):
        if problem := _problem(each, config, {"encoder": n_inputs, "decoder": n_outputs}):
            raise RequestError(f"interventions[{i}] ({each.OP}): {problem}")
    masked = {each.token for each in interventions if isinstance(each, MaskSource)}
    if n_inputs and len(masked) == n_inputs:
        raise RequestError("every token of the inputs is masked: leave one to look at")
    keys: dict[Pin, int] = {}
    for i, each in enumerate(interventions):
        if not isinstance(each, Pin):
            continue
        if each.kind != "decoder" and each.key in masked:
            raise RequestError(f"interventions[{i}] (pin): key {each.key} is masked by another of the list")
        if (other := keys.setdefault(replace(each, key=0), each.key)) != each.key:
            raise RequestError(f"interventions[{i}] (pin): another of the list pins the query to key {other}")


def _problem(each: Intervention, config: ModelConfig, lengths: dict[str, int | None]) -> str | None:
    """Why one intervention cannot be made; None if it can."""
    match each:
        case HeadOff() | Uniform() | Pin():
            if each.kind not in kinds_of(config):
                return f"kind {each.kind} is not in this model, which has {', '.join(kinds_of(config))}"
            problem = _outside("layer", each.layer, layers_of(config, each.kind))
            problem = problem or _outside("head", each.head, config.n_heads)
            return problem or (_pin_problem(each, lengths) if isinstance(each, Pin) else None)
        case MaskSource():
            if config.architecture == "decoder":
                return "the decoder alone has no inputs"
            return _outside("token", each.token, lengths["encoder"] or 0)
        case SkipBlock():
            if each.block not in blocks_of(config):
                return f"block {each.block} is not in this model, which has {', '.join(blocks_of(config))}"
            return _outside("layer", each.layer, layers_of(config, each.block))
        case NoScale():
            if config.similarity != "scaled-dot":
                return f"model.similarity = {config.similarity} has no scale to take away"
            if config.positions not in UNBIASED:
                return f"model.positions = {config.positions} adds a bias to the scores"
        case NoPositions():
            if config.positions == "none":
                return "the model is told no positions"
    return None


def _pin_problem(pin: Pin, lengths: dict[str, int | None]) -> str | None:
    n_queries = lengths["encoder" if pin.kind == "encoder" else "decoder"]
    n_keys = lengths["decoder" if pin.kind == "decoder" else "encoder"]
    if n_queries is None or n_keys is None:
        return "a pinned query is a place in the output: give the target too"
    problem = _outside("query", pin.query, n_queries) or _outside("key", pin.key, n_keys)
    if problem is None and pin.kind == "decoder" and pin.key > pin.query:
        return f"query {pin.query} may not look ahead, at key {pin.key}"
    return problem


def _outside(what: str, number: int, count: int) -> str | None:
    return None if 0 <= number < count else f"there is no {what} {number}; they go from 0 to {count - 1}"


def change_scores(
    scores: Any, interventions: Iterable[Intervention], config: ModelConfig, kind: Kind, layer: int, head: int
) -> None:
    """Change one head's scores (…, queries, keys) in place, numpy or torch; what is said twice, once."""
    found = {each for each in interventions if _concerns(each, kind, layer, head)}
    for each in sorted(found, key=lambda each: (NoScale, Uniform, Pin).index(type(each))):
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
    off = (each for each in interventions if isinstance(each, HeadOff))
    return sorted({each.head for each in off if (each.kind, each.layer) == (block, layer)})


def masked_source(interventions: Iterable[Intervention]) -> list[int]:
    """The tokens of the inputs that nobody may look at."""
    return sorted({each.token for each in interventions if isinstance(each, MaskSource)})
