"""Words with numbers on a terminal: candidates, links, where tokens look, and the walk."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rich.table import Table
from rich.text import Text

from regard.look.alignment.alignment import Alignment
from regard.look.figures.terminal.cells import cut
from regard.look.influence.measured import Measured
from regard.look.trace.candidates import Said
from regard.look.trace.tokens import shown
from regard.look.visible import visible
from regard.look.walk.walk import Step

BAR = 20
"""Cells of a share of 1."""
STRONGEST = 4
"""Tokens that are named, of those that one looks at."""
NUMBERS = 4
"""Of a vector."""


def candidates(steps: Sequence[Said]) -> Table:
    """A line for each step: what was read last, and what might come; what came is marked."""
    table = _table("after", "candidates")
    for step in steps:
        line = Text()
        for candidate in step.candidates:
            came = candidate.id == step.came
            mark = "▸" if came else " "
            style = "bold" if came else "dim"
            line.append(f"{mark}{cut(candidate.text)} {candidate.probability:.2f}  ", style)
        table.add_row(_word(step.after), line)
    return table


def links(aligned: Alignment) -> Table:
    """A line for each word written: the word it comes from, and its share as a bar."""
    table = _table("written", "read", "share")
    for j, i in aligned.links:
        share = float(aligned.shares[i, j])
        bar = "█" * round(BAR * share)
        table.add_row(_word(aligned.outputs[i].text), _word(aligned.inputs[j].text), f"{share:.2f} {bar}")
    return table


def coverage(aligned: Alignment) -> Text:
    """How much was taken from each word read; one that no word is linked with is marked."""
    unlinked = set(range(len(aligned.inputs))) - {j for j, _ in aligned.links}
    line = Text("coverage: ")
    for j, share in enumerate(aligned.coverage.tolist()):
        style = "bold" if j in unlinked else ""
        line.append(f"{cut(aligned.inputs[j].text)}{'?' if j in unlinked else ''} {share:.2f}  ", style)
    if unlinked:
        line.append("(?: no word written is linked with it)", "dim")
    return line


def looks(weights_LM: np.ndarray, rows: Sequence[str], columns: Sequence[str]) -> Table:
    """A line for each token that looks: the tokens that it looks at most."""
    table = _table("looks", "at")
    for name, weights in zip(rows, weights_LM, strict=True):
        best = np.argsort(-weights, kind="stable")[:STRONGEST]
        line = Text("  ".join(f"{cut(columns[j])} {weights[j]:.2f}" for j in best if weights[j] >= 0.005))
        table.add_row(_word(name), line)
    return table


def influence(label: str, tokens: Sequence[str], values: np.ndarray) -> Table:
    """A line for each token read: how much likelier it made a label, as a number and as a bar."""
    table = _table("read", f"made “{cut(label)}” likelier by")
    most = float(np.abs(values).max()) or 1.0
    for token, value in zip(tokens, values.tolist(), strict=True):
        bar = ("█" if value > 0 else "░") * round(BAR * abs(value) / most)
        table.add_row(_word(token), f"{value:+.3f} {bar}")
    return table


def influences(found: Measured) -> Table:
    """A line for each token that was there: how much it had to do with one, by each method."""
    table = _table("read", *(method.replace("-", " ") for method in found.methods))
    for token, values in zip(found.tokens, found.values.T.tolist(), strict=True):
        table.add_row(_word(token), *(f"{value:+.3f}" for value in values))
    return table


def walk(steps: Sequence[Step]) -> Table:
    """A line for each step of the formula, with its first numbers, or those of the first rows."""
    table = _table("step", "formula", "numbers")
    for step in steps:
        table.add_row(Text(step.name, "bold"), Text(visible(step.formula)), _numbers(step))
    return table


def _numbers(step: Step) -> Text:
    values = np.atleast_1d(step.values)
    if values.ndim == 2:
        return Text(f"{values.shape[0]} vectors of {values.shape[1]} numbers", "dim")
    pairs = zip(step.rows or [""] * len(values), values.tolist(), strict=True)
    written = [f"{cut(shown(name))} {value:.3f}".strip() for name, value in pairs]
    more = f"  … {len(written) - NUMBERS} more" if len(written) > NUMBERS else ""
    return Text("  ".join(written[:NUMBERS]) + more)


def _word(text: str) -> Text:
    return Text(cut(text), no_wrap=True)


def _table(*columns: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for name in columns:
        table.add_column(name)
    return table
