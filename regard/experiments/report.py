"""A run as text: its numbers in columns, then what was seen, in English and in Chinese."""

from __future__ import annotations

from collections.abc import Iterator

from rich.cells import cell_len

from regard.experiments.experiment import Run
from regard.experiments.findings import Both, Cell, PerSeed, Table, in_both, label_in

HOLDS, FAILS = Both("✓ holds", "成立"), Both("✗ does not hold", "不成立")


def report(run: Run) -> str:
    """All of it, for a terminal or a file."""
    claim = run.experiment.claim
    lines = [f"{run.experiment.name}: {claim.en}", claim.zh]
    for table in run.findings.tables:
        lines += ["", *_columns(table)]
    lines.append("")
    for judgement in run.findings.verdict:
        holds = HOLDS if judgement.holds else FAILS
        lines += [f"{holds.en}: {judgement.seen.en}", f"  {holds.zh}：{judgement.seen.zh}"]
    return "\n".join(lines)


def shown(cell: Cell) -> str:
    """A number to four digits; of several seeds the mean, and from where to where they go."""
    match cell:
        case PerSeed(values) if len(set(values)) == 1:
            return shown(values[0])
        case PerSeed():
            return f"{shown(cell.mean)} ({shown(cell.low)} to {shown(cell.high)})"
        case float():
            return f"{cell:.4g}"
        case int():
            return f"{cell:,}"
        case _:
            return in_both(cell)


def _columns(table: Table) -> Iterator[str]:
    yield in_both(table.name)
    english = [label_in("en", column) for column in table.columns]
    chinese = [column.zh if isinstance(column, Both) else "" for column in table.columns]
    heads = [english, chinese] if any(chinese) else [english]
    columns = [*zip(*heads, *(map(shown, row) for row in table.rows), strict=True)]
    widths = [max(map(cell_len, column)) for column in columns]
    for row in zip(*columns, strict=True):
        # A Chinese character is as wide as two others.
        padded = [cell + " " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True)]
        yield ("  " + "  ".join(padded)).rstrip()
