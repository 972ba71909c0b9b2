"""View of predictions: after each token the most likely candidates, and the one that followed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from regard.look.figures.svg import (
    LINE,
    MARGIN,
    SMALL,
    TEXT,
    Box,
    Markup,
    clipped,
    document,
    element,
    heading,
    minus,
    text_width,
    words,
)
from regard.look.influence.methods import stored_convergence
from regard.look.trace.blocks import INFLUENCE
from regard.look.trace.data import Prediction, TraceData
from regard.look.views.view import Choice, Records, Screen, View, changes_of, title_of

ROW = 30.0
SLOT = 128.0
"""Width of one candidate."""
SHOWN = 5
"""Candidates of each step."""
LONGEST_WORD = 130.0
BAR = 20
"""Cells of a terminal for the largest influence."""
NOTE = "rows: steps, with the most likely candidates and their probabilities · framed: what followed"


def steps_svg(trace: TraceData, choice: Choice) -> str:  # noqa: ARG001
    """Draw the candidates of every step; what followed comes last if it is not among the most likely."""
    steps, title = trace.predictions(SHOWN), title_of(trace)
    after = ["after", *(clipped(step.after, LONGEST_WORD) for step in steps)]
    read = [] if trace.influence is None or trace.inputs is None else trace.inputs.texts
    beside = max(text_width(clipped(word, LONGEST_WORD), TEXT) for word in (*after, *read)) + 14
    slots = max(len(step.candidates) for step in steps)
    width = beside + slots * SLOT
    drawn, top = heading(title, NOTE + changes_of(trace), width)
    top += LINE
    drawn.append(words(after[0], MARGIN + beside - 14, top - 6, "soft", SMALL, text_anchor="end"))
    for row, step in enumerate(steps):
        line = top + row * ROW
        drawn.append(words(after[row + 1], MARGIN + beside - 14, line + 18, "soft", text_anchor="end"))
        drawn += _candidates(step, MARGIN + beside, line)
    top += len(steps) * ROW
    if trace.influence is not None:
        note = f"influence of each token on “{_label(trace)}”, by integrated gradients{_convergence(trace)}"
        drawn.append(words(note, MARGIN, top + LINE + 8, "soft"))
        drawn += _influence(read, trace.influence, Box(MARGIN + beside, top, width - beside, 0))
        top += 2 * LINE + len(read) * LINE
    return document(width + 2 * MARGIN, top + MARGIN, drawn, title=title)


def _convergence(trace: TraceData) -> str:
    """How far the stored influence adds up; empty in a file of an older version."""
    found = stored_convergence(trace, INFLUENCE)
    return "" if found is None else f": {found}"


def _label(trace: TraceData) -> str:
    """The label of a classifier: the most likely one, or the one that was given."""
    return trace.pieces[trace.targets[0]]


def _influence(tokens: Sequence[str], values: np.ndarray, box: Box) -> Iterator[Markup]:
    """A bar per token: to the right if it made the label more likely, to the left if less."""
    most, middle = float(np.abs(values).max()) or 1.0, box.left + box.width / 2
    for i, (token, value) in enumerate(zip(tokens, values.tolist(), strict=True), start=2):
        line, long = box.top + i * LINE, abs(value) / most * (box.width / 2 - 60)
        yield words(clipped(token, LONGEST_WORD), box.left - 14, line + 12, text_anchor="end")
        left = middle if value > 0 else middle - long
        colour = "blue" if value > 0 else "orange"
        yield element("rect", x=left, y=line + 2, width=long, height=LINE - 4, class_=colour)
        beside, anchor = (middle + long + 6, "start") if value > 0 else (middle - long - 6, "end")
        yield words(minus(f"{value:+.3f}"), beside, line + 12, "soft", SMALL, text_anchor=anchor)


def _candidates(step: Prediction, left: float, top: float) -> Iterator[Markup]:
    for place, candidate in enumerate(step.candidates):
        x, share = left + place * SLOT, candidate.probability
        size = {"x": x, "y": top + 2, "height": ROW - 6}
        is_actual = candidate.id == step.actual
        yield element("rect", **size, width=SLOT - 8, rx=3, class_="grid")
        if (filled := share * (SLOT - 8)) >= 0.5:
            yield element("rect", **size, width=filled, rx=3, class_="blue", opacity=0.35)
        value = f"{share:.2f}" if share >= 0.005 else "<.01"
        room = SLOT - 8 - 14 - text_width(value, SMALL)
        weight = 700 if is_actual else 400
        yield words(clipped(candidate.text, room / 1.1), x + 6, top + 18, font_weight=weight)
        yield words(value, x + SLOT - 13, top + 18, "soft", SMALL, text_anchor="end")
        line = {"class_": "ink-line", "stroke_width": 2} if is_actual else {"class_": "grid-line"}
        tooltip = element("title", f"{candidate.text}: {share:.4f}")
        yield element("rect", tooltip, **size, width=SLOT - 8, rx=3, pointer_events="all", **line)


def _records(trace: TraceData, choice: Choice) -> Records:  # noqa: ARG001
    rows = [
        (row, step.after, rank, each.id, each.text, each.probability, each.id == step.actual)
        for row, step in enumerate(trace.predictions())
        for rank, each in enumerate(step.candidates)
    ]
    return Records(("step", "after", "rank", "id", "candidate", "probability", "came"), rows)


def _screen(trace: TraceData, choice: Choice) -> Screen:  # noqa: ARG001
    from rich.console import Group, RenderableType
    from rich.text import Text

    from regard.look.figures.terminal import cut, table, word

    lines = table("after", "candidates")
    for step in trace.predictions(SHOWN):
        line = Text()
        for candidate in step.candidates:
            mark, style = ("▸", "bold") if candidate.id == step.actual else (" ", "dim")
            line.append(f"{mark}{cut(candidate.text)} {candidate.probability:.2f}  ", style)
        lines.add_row(word(step.after), line)
    body: RenderableType = lines
    if trace.influence is not None and trace.inputs is not None:
        influence = table("read", f"influence on “{cut(_label(trace))}”")
        most = float(np.abs(trace.influence).max()) or 1.0
        for token, value in zip(trace.inputs.texts, trace.influence.tolist(), strict=True):
            bar = ("█" if value > 0 else "░") * round(BAR * abs(value) / most)
            influence.add_row(word(token), f"{value:+.3f} {bar}")
        note = f"integrated gradients{_convergence(trace)}"
        body = Group(lines, Text(), influence, Text(note, style="dim"))
    return Screen(title_of(trace), "▸ what followed", body)


VIEWS = {"steps": View(steps_svg, _screen, _records, needs="label-influence")}
