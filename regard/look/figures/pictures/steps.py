"""What a model said after each token: the likeliest candidates, and the one that came."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from regard.look.figures.captions import changes_of, label_of, title_of
from regard.look.figures.sheet import LINE, MARGIN, SMALL, TEXT, Box, clipped, heading, words
from regard.look.figures.svg import Markup, document, element, text_width
from regard.look.trace.candidates import Said, said_steps

if TYPE_CHECKING:
    from regard.look.trace.trace import Trace

ROW = 30.0
SLOT = 128.0
"""Room for one candidate."""
SHOWN = 5
LONGEST_WORD = 130.0
NOTE = "a row: a step · its likeliest candidates with their probabilities · framed: what came"


def steps_svg(trace: Trace) -> str:
    """Draw the candidates of every step; what came stands at the end where it is not among the likeliest."""
    steps = said_steps(trace, SHOWN)
    after = ["after", *(clipped(step.after, LONGEST_WORD) for step in steps)]
    read = [] if trace.influence is None or trace.inputs is None else trace.inputs.texts
    beside = max(text_width(clipped(word, LONGEST_WORD), TEXT) for word in (*after, *read)) + 14
    slots = max(len(step.candidates) for step in steps)
    width = beside + slots * SLOT
    drawn, top = heading(title_of(trace), NOTE + changes_of(trace), width)
    top += LINE
    drawn.append(words(after[0], MARGIN + beside - 14, top - 6, "soft", SMALL, text_anchor="end"))
    for row, step in enumerate(steps):
        line = top + row * ROW
        drawn.append(words(after[row + 1], MARGIN + beside - 14, line + 18, "soft", text_anchor="end"))
        drawn += _candidates(step, MARGIN + beside, line)
    top += len(steps) * ROW
    if trace.influence is not None:
        note = f"how much likelier each token made “{label_of(trace)}”, by integrated gradients"
        drawn.append(words(note, MARGIN, top + LINE + 8, "soft"))
        drawn += _influence(read, trace.influence, Box(MARGIN + beside, top, width - beside, 0))
        top += 2 * LINE + len(read) * LINE
    return document(width + 2 * MARGIN, top + MARGIN, drawn, title=title_of(trace))


def _influence(tokens: Sequence[str], values: np.ndarray, box: Box) -> Iterator[Markup]:
    """How much likelier each token made the label: to the right; or less likely, to the left."""
    most, middle = float(np.abs(values).max()) or 1.0, box.left + box.width / 2
    for i, (token, value) in enumerate(zip(tokens, values.tolist(), strict=True), start=2):
        line, long = box.top + i * LINE, abs(value) / most * (box.width / 2 - 60)
        yield words(clipped(token, LONGEST_WORD), box.left - 14, line + 12, text_anchor="end")
        left = middle if value > 0 else middle - long
        colour = "blue" if value > 0 else "orange"
        yield element("rect", x=left, y=line + 2, width=long, height=LINE - 4, class_=colour)
        beside, anchor = (middle + long + 6, "start") if value > 0 else (middle - long - 6, "end")
        written = f"{value:+.3f}".replace("-", "−")
        yield words(written, beside, line + 12, "soft", SMALL, text_anchor=anchor)


def _candidates(step: Said, left: float, top: float) -> Iterator[Markup]:
    for place, candidate in enumerate(step.candidates):
        x, share = left + place * SLOT, candidate.probability
        told = f"{candidate.text}: {share:.4f}"
        size = {"x": x, "y": top + 2, "height": ROW - 6}
        came = candidate.id == step.came
        yield element("rect", **size, width=SLOT - 8, rx=3, class_="grid")
        if (filled := share * (SLOT - 8)) >= 0.5:
            yield element("rect", **size, width=filled, rx=3, class_="blue", opacity=0.35)
        value = f"{share:.2f}" if share >= 0.005 else "<.01"
        room = SLOT - 8 - 14 - text_width(value, SMALL)
        weight = 700 if came else 400
        yield words(clipped(candidate.text, room / 1.1), x + 6, top + 18, font_weight=weight)
        yield words(value, x + SLOT - 13, top + 18, "soft", SMALL, text_anchor="end")
        line = {"class_": "ink-line", "stroke_width": 2} if came else {"class_": "grid-line"}
        frame = element("title", told)
        yield element("rect", frame, **size, width=SLOT - 8, rx=3, pointer_events="all", **line)
