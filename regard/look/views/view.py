"""What a view is; the choice of a view and a place; the choice as SVG, on a terminal, or as numbers."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

import numpy as np

from regard.errors import RequestError
from regard.look.alignment.alignment import AligningHeads, default_heads
from regard.look.figures.colours import STYLE
from regard.look.trace.blocks import KINDS, Kind, layers_of
from regard.look.trace.data import TraceData
from regard.look.trace.tokens import visible
from regard.look.views import MODULES

if TYPE_CHECKING:
    from rich.console import RenderableType

Name = TypeVar("Name", bound=str)
Need = Literal["search", "label-influence", "influence"]
"""What must be recorded before a view is drawn: the beam search, the influence on a label, on any token."""

KIND_NAMES: dict[Kind, str] = {kind: STYLE["kinds"][kind]["en"] for kind in KINDS}
AXES: dict[Kind, str] = {kind: STYLE["axes"][kind]["en"] for kind in KINDS}
"""What the rows and the columns of an attention matrix are."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A view of one trace, and the place in the model that it shows."""

    view: str
    kind: Kind
    layer: int
    heads: tuple[int, ...]
    query: int
    aligning: AligningHeads
    """The heads by which words are aligned."""


class Screen(NamedTuple):
    """A view on a terminal."""

    title: str
    note: str
    body: RenderableType


@dataclass(frozen=True, eq=False, slots=True)
class Table:
    """The numbers of a view: an array with a label for each place of each axis."""

    values: np.ndarray
    axes: Mapping[str, Sequence[str]]

    def csv(self) -> str:
        """The last axis across; the labels of the others in the columns at the left."""
        *down, across = self.axes.values()
        names = [*self.axes][:-1]
        rows = (
            [*(labels[i] for labels, i in zip(down, place, strict=True)), *map(_text, self.values[place])]
            for place in np.ndindex(self.values.shape[:-1])
        )
        return _csv([*names, *across], rows)

    def arrays(self) -> dict[str, np.ndarray]:
        """`values`, and the labels of each axis under its name."""
        return {"values": self.values, **{name: np.array(list(each)) for name, each in self.axes.items()}}


@dataclass(frozen=True, slots=True)
class Records:
    """The numbers of a view: rows with named fields."""

    fields: tuple[str, ...]
    rows: Sequence[tuple[Any, ...]]

    def csv(self) -> str:
        """One column per field."""
        return _csv(self.fields, ([_text(value) for value in row] for row in self.rows))

    def arrays(self) -> dict[str, np.ndarray]:
        """One array per field."""
        columns = zip(*self.rows, strict=True) if self.rows else ([] for _ in self.fields)
        return {name: np.array(column) for name, column in zip(self.fields, columns, strict=True)}


@dataclass(frozen=True, slots=True)
class View:
    """One way to show a trace. Its functions raise `RequestError` if the trace lacks what they show."""

    svg: Callable[[TraceData, Choice], str]
    terminal: Callable[[TraceData, Choice], Screen]
    numbers: Callable[[TraceData, Choice], Table | Records]
    needs: Need | None = None


def view_named(name: str) -> View:
    """A view by its name.

    Raises:
        RequestError: there is no such view.
    """
    module = import_module(f"regard.look.views.{MODULES[_checked('view', name, [*MODULES])]}")
    view: View = module.VIEWS[name]
    return view


def choose(
    trace: TraceData,
    view: str = "heads",
    *,
    kind: str | None = None,
    layer: int | None = None,
    head: int | Sequence[int] | None = None,
    query: int | None = None,
    aligning: AligningHeads | None = None,
) -> Choice:
    """Check a choice, and fill in the defaults.

    Args:
        trace: what is shown.
        view: the name of a view.
        kind: of attention; default: cross-attention, or the only kind that the model has.
        layer: default: the last.
        head: one or several; default: all of the layer.
        query: the token of a walk; default: the first that is a word.
        aligning: the heads by which words are aligned, unless a layer or heads are given.

    Raises:
        RequestError: there is no such view, or the model has no such place.
    """
    view = _checked("view", view, [*MODULES])
    default = "cross" if "cross" in trace.kinds else trace.kinds[0]
    chosen: Kind = default if kind is None else _checked("kind", kind, KINDS)
    heads = range(trace.config.n_heads) if head is None else [head] if isinstance(head, int) else head
    if not heads:
        raise RequestError("no head is chosen: name at least one, or none for all", code="no_head")
    in_layer = layers_of(trace.config, chosen) - 1 if layer is None else layer
    for each in heads:
        trace.check_place(chosen, in_layer, each)
    if layer is not None or head is not None:
        aligning = AligningHeads(heads=tuple((in_layer, each) for each in heads))
    queries = trace.queries(chosen).tokens
    return Choice(
        view=view,
        kind=chosen,
        layer=in_layer,
        heads=tuple(heads),
        query=next((i for i, t in enumerate(queries) if not t.special), 0) if query is None else query,
        aligning=aligning or default_heads(trace.config),
    )


def picture(trace: TraceData, choice: Choice) -> str:
    """The view as SVG."""
    return view_named(choice.view).svg(trace, choice)


def numbers(trace: TraceData, choice: Choice) -> Table | Records:
    """All numbers of the view."""
    return view_named(choice.view).numbers(trace, choice)


def printed(trace: TraceData, choice: Choice) -> RenderableType:
    """The view for a terminal, below its title."""
    from rich.console import Group
    from rich.text import Text

    from regard.look.figures.terminal import AsciiFallback

    screen = view_named(choice.view).terminal(trace, choice)
    note = Text(visible(screen.note + changes_of(trace)), "dim")
    return AsciiFallback(Group(Text(visible(screen.title), "bold"), note, Text(), screen.body))


def title_of(trace: TraceData) -> str:
    """The text read, and the text written or the label."""
    read = trace.inputs.text if trace.inputs is not None else ""
    if trace.config.architecture == "encoder":
        best, *others = trace.candidates(0)
        given = [best, *(each for each in others if trace.multi_label and each.probability >= 0.5)]
        return f"{read} → {', '.join(each.text for each in given)}"
    assert trace.outputs is not None, "a decoder without outputs"
    return f"{read} → {trace.outputs.text}" if read else trace.outputs.text


def place_name(kind: Kind, layer: int, heads: Sequence[int] = ()) -> str:
    """A kind of attention, a layer and heads, in words."""
    name = f"{KIND_NAMES[kind]}, layer {layer}"
    if not heads:
        return name
    return f"{name}, head{'s' if len(heads) > 1 else ''} {', '.join(map(str, heads))}"


def changes_of(trace: TraceData) -> str:
    """The number of interventions, for the note of a picture; empty without any."""
    n = len(trace.interventions)
    return f" · {n} intervention{'s' if n > 1 else ''}" if n else ""


def _checked(what: str, name: str, names: Sequence[Name]) -> Name:
    if (match := next((each for each in names if each == name), None)) is not None:
        return match
    near = get_close_matches(name, names, 1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(names)}"
    raise RequestError(f"there is no {what} {name!r}; {hint}", code=f"unknown_{what}")


def _text(value: Any) -> str:
    """A number as short as float32 allows, the precision of models."""
    return str(np.float32(value)) if isinstance(value, float | np.floating) else str(value)


def _csv(names: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    writer.writerows(rows)
    return text.getvalue()
