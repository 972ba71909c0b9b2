"""Interventions on activations at an address: ablate, add and patch, as plain values. Imports no torch.

    {"op": "ablate", "at": "decoder.layers.3.feed_forward.output", "by": "mean", "texts": ["一只猫。"]}
    {"op": "add", "at": "encoder.layers.2.add_and_norm.1.output", "values": [[0.1, …]], "scale": 4}
    {"op": "patch", "at": "encoder.layers.0.multi_head_attention.heads", "head": 1, "text": "两只狗。"}

`at` is an address, as `regard.addresses(model)` lists them, of an activation with one row per token; `head`
selects one head where the rows have heads; `positions` are tokens of the side that the address belongs to, by
default all. A row of `values` is the activation of one token, heads side by side. Texts stand for the values
that the model has there: `look` runs the model over them and fills in `values`, so that a trace has all that
is needed to repeat it. Those of one address are applied in the order of the list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from typing import Any, ClassVar, Literal, Protocol, get_args

import numpy as np

from regard.config.checking import did_you_mean, shown
from regard.errors import RequestError

Reference = tuple[str, str | None]
"""A text that the model reads, and an output to assume; None for the one that the model would write."""
Rows = tuple[tuple[float, ...], ...]
By = Literal["zero", "mean", "resample"]
WITH_HEADS = ("q", "k", "v", "heads", "head_outputs")
"""Activations whose rows have heads: (tokens, heads, width)."""
PAIRWISE = ("scores", "weights", "score_bias")
"""Activations of pairs of tokens, which `uniform`, `pin` and `mask-source` change."""
MOST_TEXTS, MOST_NUMBERS = 64, 4_000_000
"""Largest number of texts of one intervention, and of numbers in its values."""


class StoredActivations(Protocol):
    """A trace, as far as a patch needs it."""

    @property
    def arrays(self) -> Mapping[str, np.ndarray]:
        """Activations by address."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AtAddress:
    """What the three have in common."""

    at: str
    head: int | None = None
    positions: tuple[int, ...] | None = None
    values: Rows = ()

    @property
    def side(self) -> str:
        """The side whose tokens the rows belong to: input or output; empty of a label head."""
        if self.at.startswith("label_head"):
            return ""
        of_memory = ".layers." in self.at and self.at.endswith(
            (".multi_head_attention.k", ".multi_head_attention.v")
        )
        return "input" if self.at.startswith(("encoder", "input_")) or of_memory else "output"

    @property
    def references(self) -> tuple[Reference, ...]:
        """The texts that stand for values which are not known yet."""
        return ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Ablate(AtAddress):
    """The activation becomes 0, the mean over all tokens of some texts, or that of a random token of them."""

    OP: ClassVar[str] = "ablate"
    by: By
    texts: tuple[Reference, ...] = ()
    """Where the mean is taken, or the random tokens."""
    seed: int = 0
    """Of the random tokens, which depend on the position only: a search and a trace get the same."""

    @property
    def references(self) -> tuple[Reference, ...]:
        """The texts, unless their values are known."""
        return () if self.values else self.texts

    def drawn(self, place: int) -> int:
        """The row of the values that a token at this position gets."""
        return int(np.random.default_rng([self.seed, place]).integers(len(self.values)))


@dataclass(frozen=True, kw_only=True, slots=True)
class Add(AtAddress):
    """`scale` times a vector is added: the row of `values`, or the mean of `plus` minus that of `minus`."""

    OP: ClassVar[str] = "add"
    scale: float = 1.0
    plus: tuple[Reference, ...] = ()
    minus: tuple[Reference, ...] = ()

    @property
    def references(self) -> tuple[Reference, ...]:
        """The texts, unless their values are known."""
        return () if self.values else (*self.plus, *self.minus)


@dataclass(frozen=True, kw_only=True, slots=True)
class Patch(AtAddress):
    """The activation becomes that of another text: one row per position, from its `from_positions`.

    Without positions, it is changed at the first ones, as many as there are rows and tokens.
    """

    OP: ClassVar[str] = "patch"
    text: Reference | None = None
    from_positions: tuple[int, ...] | None = None
    """Positions in the other text; default: the same, or all of it."""

    @property
    def references(self) -> tuple[Reference, ...]:
        """The text, unless its values are known."""
        return () if self.values or self.text is None else (self.text,)

    def of_trace(self, trace: StoredActivations) -> Patch:
        """With the values of a trace, which must store the activation.

        Raises:
            RequestError: it does not, or it has no such positions.
        """
        if (array := trace.arrays.get(self.at)) is None:
            what = f"the trace does not store {self.at}; give a `text` instead"
            raise RequestError(what, code="intervention_mismatch")
        return with_rows(self, [rows_of(array, self.head)])


Activation = Ablate | Add | Patch
ACTIVATIONS: dict[str, type[Activation]] = {each.OP: each for each in (Ablate, Add, Patch)}
Traces = Callable[[str], StoredActivations]
"""Finds a trace by its name: a file on the command line, an id at a server."""


def rows_of(array: np.ndarray, head: int | None) -> np.ndarray:
    """(tokens, width) of an activation, or of one of its heads."""
    if head is not None and not 0 <= head < array.shape[-2]:
        what = f"there is no head {head}; they are numbered 0 to {array.shape[-2] - 1}"
        raise RequestError(what, code="intervention_mismatch")
    return array[:, head] if head is not None else array.reshape(len(array), -1)


def with_rows(each: Activation, found: Sequence[np.ndarray]) -> Any:
    """An intervention with the values of its references, (tokens, width) each.

    Raises:
        RequestError: a reference has no such positions.
    """
    if isinstance(each, Ablate):
        rows = np.concatenate(found)
        return replace(each, values=_rows(rows.mean(axis=0, keepdims=True) if each.by == "mean" else rows))
    if isinstance(each, Add):
        plus, minus = found[: len(each.plus)], found[len(each.plus) :]
        zero = np.zeros((1, found[0].shape[1]))
        means = [np.concatenate(side).mean(0, keepdims=True) if side else zero for side in (plus, minus)]
        return replace(each, values=_rows(means[0] - means[1]))
    (rows,) = found
    chosen = each.from_positions or each.positions or tuple(range(len(rows)))
    if (last := max(chosen)) >= len(rows):
        what = f"the other text has no token {last}; they are numbered 0 to {len(rows) - 1}"
        raise RequestError(what, code="intervention_mismatch")
    return replace(each, values=_rows(rows[list(chosen)]))


def _rows(array: np.ndarray) -> Rows:
    return tuple(map(tuple, array.astype(float).tolist()))


def to_values(each: Activation) -> dict[str, Any]:
    """An intervention as plain values, without those that have their default."""
    given = {field.name: getattr(each, field.name) for field in fields(each)}
    defaults = {field.name: field.default for field in fields(each) if field.default is not MISSING}
    kept = {name: value for name, value in given.items() if name not in defaults or value != defaults[name]}
    return {"op": each.OP} | {name: _listed(name, value) for name, value in kept.items()}


def _listed(name: str, value: Any) -> Any:
    if name == "text":
        return _plain_reference(value)
    if name in ("texts", "plus", "minus"):
        return [_plain_reference(each) for each in value]
    if name == "values":
        return [list(row) for row in value]
    return list(value) if isinstance(value, tuple) else value


def _plain_reference(reference: Reference) -> str | list[str]:
    source, target = reference
    return source if target is None else [source, target]


def from_values(value: Mapping[str, Any], where: str, traces: Traces | None) -> Activation:
    """Undo `to_values`; `patch` may also name a `trace`.

    Raises:
        RequestError: it is malformed; the message names the place.
    """
    kind = ACTIVATIONS[value["op"]]
    names = [field.name for field in fields(kind)] + (["trace"] if kind is Patch else [])
    for name in value:
        if name not in ("op", *names):
            hint = did_you_mean(name, tuple(names))
            raise _bad(f"{where}.{name} is not a field of {kind.OP}, which takes {', '.join(names)}{hint}")
    for field in fields(kind):
        if field.default is MISSING and field.name not in value:
            raise _bad(f"{where}.{field.name} is missing: {kind.OP} needs it")
    given = {name: _read(name, each, f"{where}.{name}") for name, each in value.items() if name != "op"}
    trace = given.pop("trace", None)
    made = kind(**given)
    if problem := _incomplete(made, trace):
        raise _bad(f"{where} ({kind.OP}): {problem}")
    if trace is None:
        return made
    assert isinstance(made, Patch), "only a patch has a trace"
    if traces is None:
        raise _bad(f"{where}.trace: there are no traces to choose from here; use Patch(…).of_trace(trace)")
    try:
        return made.of_trace(traces(trace))
    except RequestError as error:
        raise RequestError(f"{where} (patch): {error}", code=error.code) from error


def _incomplete(each: Activation, trace: str | None = None) -> str | None:
    """Why an intervention has too few or too many fields; None if it has not."""
    match each:
        case Ablate(by="zero"):
            return "zero needs neither values nor texts" if each.values or each.texts else None
        case Ablate():
            return None if each.values or each.texts else f"{each.by} needs texts, or values"
        case Add():
            if not each.values and not each.references:
                return "give values, or texts in plus and minus"
            return f"values must be 1 row, not {len(each.values)}" if len(each.values) > 1 else None
        case Patch():
            sources = [bool(each.values), each.text is not None, trace is not None]
            if not any(sources):
                return "give a text, a trace, or values"
            if trace is not None and (each.values or each.text):
                return "trace excludes text and values"
            if each.values and len(each.values) != len(each.positions or each.values):
                return (
                    f"there are {len(each.positions or ())} positions and {len(each.values)} rows of values"
                )
            here, there = each.positions, each.from_positions
            if here is not None and there is not None and len(here) != len(there):
                return f"there are {len(here)} positions and {len(there)} from_positions"
            return "from_positions needs positions" if there is not None and here is None else None


def _read(name: str, value: Any, where: str) -> Any:
    """One field, with its type checked."""
    match name:
        case "at" | "trace":
            return _checked(value, where, "a text", isinstance(value, str))
        case "by":
            return _checked(value, where, f"one of {', '.join(get_args(By))}", value in get_args(By))
        case "head" | "seed":
            fits = isinstance(value, int) and not isinstance(value, bool) and value >= 0
            if value is None and name == "head":
                return None
            return _checked(value, where, "a whole number from 0", fits)
        case "scale":
            fits = isinstance(value, int | float) and not isinstance(value, bool) and bool(np.isfinite(value))
            return float(_checked(value, where, "a number", fits))
        case "positions" | "from_positions":
            if value is None:
                return None
            items = _list(value, where)
            for i, each in enumerate(items):
                fits = isinstance(each, int) and not isinstance(each, bool) and each >= 0
                _checked(each, f"{where}[{i}]", "a whole number from 0", fits)
            unique = len(set(items)) == len(items) or name == "from_positions"
            return tuple(_checked(items, where, "different positions, at least one", unique and bool(items)))
        case "values":
            return _read_rows(value, where)
        case "text":
            return None if value is None else _reference(value, where)
    texts = _list(value, where)
    _checked(len(texts), where, f"at most {MOST_TEXTS} texts", len(texts) <= MOST_TEXTS)
    return tuple(_reference(each, f"{where}[{i}]") for i, each in enumerate(texts))


def _read_rows(value: Any, where: str) -> Rows:
    rows = [_list(row, f"{where}[{i}]") for i, row in enumerate(_list(value, where))]
    widths = {len(row) for row in rows}
    _checked(sorted(widths), where, "rows of one length", len(widths) <= 1 and 0 not in widths)
    size = sum(map(len, rows))
    _checked(size, where, f"at most {MOST_NUMBERS:,} numbers", size <= MOST_NUMBERS)
    for i, row in enumerate(rows):
        for each in row:
            fits = isinstance(each, int | float) and not isinstance(each, bool) and bool(np.isfinite(each))
            _checked(each, f"{where}[{i}]", "finite numbers", fits)
    return tuple(tuple(map(float, row)) for row in rows)


def _reference(value: Any, where: str) -> Reference:
    if isinstance(value, str):
        return value, None
    pair = isinstance(value, list | tuple) and len(value) == 2 and isinstance(value[0], str)
    fits = pair and (value[1] is None or isinstance(value[1], str))
    _checked(value, where, "a text, or a list of a text and its output", fits)
    return value[0], value[1]


def _list(value: Any, where: str) -> list[Any]:
    return list(_checked(value, where, "a list", isinstance(value, list | tuple)))


def _checked(value: Any, where: str, expected: str, fits: bool) -> Any:
    if not fits:
        raise _bad(f"{where} expects {expected}, got {shown(value)}")
    return value


def _bad(what: str) -> RequestError:
    return RequestError(what, code="bad_intervention")


def address_problem(each: Activation, addresses: Iterable[str], n_heads: int) -> str | None:
    """Why an intervention does not fit a model with these addresses; None if it does."""
    name, known = each.at.rsplit(".", 1)[-1], [*addresses]
    if name in PAIRWISE:
        return f"{each.at} has no row per token; use uniform, pin or mask-source"
    if name == "logits":
        return "logits are the result; intervene below them"
    if each.at not in known:
        hint = did_you_mean(each.at, known) or "; `regard.addresses(model)` lists them"
        return f"at = {each.at} is no address of this model{hint}"
    if each.head is not None and name not in WITH_HEADS:
        return f"{each.at} has no heads; {', '.join(WITH_HEADS)} have"
    if each.head is not None and each.head >= n_heads:
        return f"there is no head {each.head}; they are numbered 0 to {n_heads - 1}"
    if not each.side and each.positions is not None:
        return f"{each.at} has no positions: it belongs to the whole text"
    return _incomplete(each)
