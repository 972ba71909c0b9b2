"""Results as text: of a run, for a terminal, and of all recorded runs, for `docs/claims.md`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import nan
from typing import Any

from rich.cells import cell_len

from regard.experiments.experiment import Both, Cell, ExperimentRun, PerSeed, ResultTable, in_both, label_in
from regard.experiments.registry import recorded_results

HOLDS, FAILS = Both("✓ holds", "成立"), Both("✗ does not hold", "不成立")


def report(run: ExperimentRun) -> str:
    """A run as text: tables, then judgements, in English and Chinese."""
    claim = run.experiment.claim
    lines = [f"{run.experiment.name}: {claim.en}", claim.zh]
    for table in run.findings.tables:
        lines += ["", *_columns(table)]
    lines.append("")
    for judgement in run.findings.verdict:
        holds = HOLDS if judgement.holds else FAILS
        lines += [f"{holds.en}: {judgement.seen.en}", f"  {holds.zh}：{judgement.seen.zh}"]
    return "\n".join(lines)


def format_cell(cell: Cell) -> str:
    """A cell as text: four digits; for several seeds the mean, smallest and largest value."""
    match cell:
        case PerSeed(values) if len(set(values)) == 1:
            return format_cell(values[0])
        case PerSeed():
            return f"{format_cell(cell.mean)} ({format_cell(cell.low)} to {format_cell(cell.high)})"
        case float():
            return f"{cell:.4g}"
        case int():
            return f"{cell:,}"
        case _:
            return in_both(cell)


def _columns(table: ResultTable) -> Iterator[str]:
    yield in_both(table.name)
    english = [label_in("en", column) for column in table.columns]
    chinese = [column.zh if isinstance(column, Both) else "" for column in table.columns]
    heads = [english, chinese] if any(chinese) else [english]
    columns = [*zip(*heads, *(map(format_cell, row) for row in table.rows), strict=True)]
    widths = [max(map(cell_len, column)) for column in columns]
    for row in zip(*columns, strict=True):
        # A Chinese character is two columns wide.
        padded = [cell + " " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True)]
        yield ("  " + "  ".join(padded)).rstrip()


PAGE_HEAD = """\
# Claims you can run

These are claims that texts about the Transformer make, as small experiments. `regard experiment` lists them.
`regard experiment NAME` runs one with three seeds, prints its numbers, draws its picture into
`runs/experiments/`, and says in English and Chinese whether the claim holds. `--long` takes more time,
`--short` seconds; `--json` prints the numbers as data.

```bash
regard experiment
```

Below are recorded results: the mean over the seeds and, in brackets, the smallest and largest value. The
models are small and train for seconds, so a verdict is about this size only. This page is generated from
`regard/experiments/results/` by `make docs`.
"""


def claims_page() -> str:
    """The page `docs/claims.md`."""
    sections = ["\n".join(_section(document)) for document in recorded_results()]
    return "\n".join([PAGE_HEAD, *sections])


def _section(document: dict[str, Any]) -> Iterator[str]:
    name, claim = document["name"], document["claim"]
    yield f"## {name}\n\n{claim['en']}\n\n{claim['zh']}\n"
    for judgement in document["verdict"]:
        holds = HOLDS if judgement["holds"] else FAILS
        yield f"- **{holds.en}**: {judgement['seen']['en']}<br>**{holds.zh}**：{judgement['seen']['zh']}"
    if document["charts"]:
        yield f"\n![{claim['en']}](../regard/experiments/results/{name}.svg)"
    for table in document["tables"]:
        title = format_cell(_cell(table["name"]))
        yield f"\n{title[0].upper()}{title[1:]}:\n"
        yield _row(table["columns"])
        yield _row("---" for _ in table["columns"])
        for row in table["rows"]:
            yield _row(row)
    yield ""


def _row(cells: Iterable[Any]) -> str:
    return f"| {' | '.join(format_cell(_cell(cell)) for cell in cells)} |"


def _cell(cell: Any) -> Cell:
    """A cell from its JSON value."""
    match cell:
        case {"en": en, "zh": zh}:
            return Both(en, zh)
        case {"values": values}:
            return PerSeed.of(nan if value is None else value for value in values)
        case None:
            return nan
        case _:
            known: Cell = cell
            return known
