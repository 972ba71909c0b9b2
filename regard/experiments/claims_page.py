"""The page `docs/claims.md`, made from what was seen, so that its numbers are those of a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import nan
from typing import Any

from regard.experiments.findings import Both, Cell, PerSeed
from regard.experiments.report import FAILS, HOLDS, shown
from regard.experiments.shelf import seen

HEAD = """\
# Claims you can run

Texts on the Transformer assert things. Each of these is a small experiment: `regard experiment` lists them,
`regard experiment NAME` runs one with three seeds, prints its numbers, draws its picture into
`runs/experiments/` and says in English and Chinese what was seen. `--long` takes more time, `--short`
seconds; `--json` gives the numbers as data.

```bash
regard experiment
```

Below is what was seen: the mean of the seeds and, in brackets, from where to where they go. The models are
small and taught for seconds, so a claim that fails here fails at this size, and one that holds here holds at
this size. This page is made from `regard/experiments/seen/` by `make docs`.
"""


def claims_page() -> str:
    """The whole page."""
    sections = ["\n".join(_section(document)) for document in seen()]
    return "\n".join([HEAD, *sections])


def _section(document: dict[str, Any]) -> Iterator[str]:
    name, claim = document["name"], document["claim"]
    yield f"## {name}\n\n{claim['en']}\n\n{claim['zh']}\n"
    for judgement in document["verdict"]:
        holds = HOLDS if judgement["holds"] else FAILS
        yield f"- **{holds.en}**: {judgement['seen']['en']}<br>**{holds.zh}**：{judgement['seen']['zh']}"
    if document["charts"]:
        yield f"\n![{claim['en']}](../regard/experiments/seen/{name}.svg)"
    for table in document["tables"]:
        title = shown(_cell(table["name"]))
        yield f"\n{title[0].upper()}{title[1:]}:\n"
        yield _row(table["columns"])
        yield _row("---" for _ in table["columns"])
        for row in table["rows"]:
            yield _row(row)
    yield ""


def _row(cells: Iterable[Any]) -> str:
    return f"| {' | '.join(shown(_cell(cell)) for cell in cells)} |"


def _cell(cell: Any) -> Cell:
    """What JSON made of a cell, undone."""
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
