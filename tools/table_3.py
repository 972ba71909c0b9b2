"""The page `docs/table-3.md`: every row of the paper's Table 3 with its preset and its number of parameters.

python tools/table_3.py > docs/table-3.md
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from regard.config import PRESETS, ModelConfig, RunConfig, preset
from regard.model.build import build

PRINTED = {
    "paper-base": 65, "paper-base-d_k-16": 58, "paper-base-d_k-32": 60, "paper-base-layers-2": 36,
    "paper-base-layers-4": 50, "paper-base-layers-8": 80, "paper-base-d_model-256": 28,
    "paper-base-d_model-1024": 168, "paper-base-d_ff-1024": 53, "paper-base-d_ff-4096": 90, "paper-big": 213,
}  # fmt: skip
"""Parameters in millions, where the paper prints them."""
LETTERS = {"heads": "A", "d_k": "B", "layers": "C", "d_model": "C", "d_ff": "C", "dropout": "D", "label": "D"}
"""The rows, by the first word of a preset's name after `paper-base-`."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of Table 3."""

    name: str
    letter: str
    parameters: int
    """Our count."""
    printed: int | None
    """The paper's count in millions, if it prints one."""
    model: ModelConfig

    @property
    def difference(self) -> float | None:
        """The paper's count minus ours, in millions."""
        return None if self.printed is None else self.printed - self.parameters / 1e6

    @property
    def vocabularies(self) -> tuple[int, int] | None:
        """The smallest and the largest vocabulary with which our count rounds to the printed one."""
        if self.printed is None:
            return None
        rest = self.parameters - self.model.vocab_size * self.model.d_model
        low, high = (1_000_000 * self.printed + half - rest for half in (-500_000, 499_999))
        return -(-low // self.model.d_model), high // self.model.d_model


def rows() -> list[Row]:
    """All rows, in the paper's order."""
    names = [name for name in PRESETS if name.startswith("paper-") and name != "paper-big"]
    return [_row(name) for name in (*names, "paper-big")]


def _row(name: str) -> Row:
    model = preset(name).model
    with torch.device("meta"):
        parameters = build(model).n_parameters
    word = name.removeprefix("paper-base-").partition("-")[0]
    letter = {"paper-base": "base", "paper-big": "big"}.get(name) or LETTERS.get(word, "E")
    return Row(name, letter, parameters, PRINTED.get(name), model)


def changes(name: str) -> str:
    """What a preset changes in the base model, beside the averaging."""
    base, other = RunConfig(), preset(name)
    return ", ".join(
        f"{field} = {getattr(theirs, field)}"
        for ours, theirs in ((base.model, other.model), (base.training, other.training))
        for field in ours.__slots__
        if getattr(ours, field) != getattr(theirs, field)
        and field not in ("average_checkpoints", "checkpoint_every")
    )


def common_vocabularies(some: list[Row]) -> tuple[int, int]:
    """The vocabularies with which every row that the paper prints rounds to the printed number."""
    ranges = [each.vocabularies for each in some if each.vocabularies is not None]
    return max(low for low, _ in ranges), min(high for _, high in ranges)


def page() -> str:
    """The page, as Markdown."""
    every = rows()
    *base_rows, big = every
    learned = next(each for each in every if each.letter == "E")
    assert big.vocabularies is not None
    return PAGE.format(
        vocabulary=every[0].model.vocab_size,
        rows="\n".join(map(_line, every)),
        common=common_vocabularies(base_rows),
        big=big.vocabularies,
        more=learned.parameters - every[0].parameters,
        positions=learned.model.max_length,
    )


def _line(row: Row) -> str:
    printed = "–" if row.printed is None else str(row.printed)
    apart = "–" if row.difference is None else f"{row.difference:+.2f}"
    span = "–" if row.vocabularies is None else "{:,} to {:,}".format(*row.vocabularies)
    cells = (row.letter, f"`{row.name}`", changes(row.name) or "–", printed, f"{row.parameters:,}")
    return f"| {' | '.join((*cells, apart, span))} |"


PAGE = """\
# Table 3 of the paper: presets and parameters

`make docs` generates this page from the presets; a test compares the two, and checks our counts against the
formula of Figure 1, box by box (`tests/model/test_parameter_counts.py`). Ours are counted with {vocabulary:,}
shared subwords, as section 5.1 says. The last column is the range of vocabularies with which our count would
round to the printed one.

| row | preset | changed | paper, millions | ours | paper minus ours, millions | vocabulary |
|---|---|---|---|---|---|---|
{rows}

Why they differ:

- **Base and rows B and C.** With {common[0]:,} to {common[1]:,} subwords, our count rounds to the printed
  number in all ten rows; section 5.1 says *about 37000*. So one number of additional rows of the shared
  embedding matrix explains them all, and no box needs to be different.
- **Big.** The printed 213 million need {big[0]:,} to {big[1]:,} subwords, fewer than 37,000, so no single
  vocabulary explains both models. The paper does not give its exact vocabulary.
- **Rows A and D.** The paper prints no number: the shapes keep the parameters of the base model, or change
  none.
- **Row E.** The paper prints no number. Ours has {more:,} parameters more than the base model: two tables of
  {positions:,} positions (`model.max_length`), one for each stack.

The paper averaged no checkpoints in Table 3 (6.2), and these presets do not either. `paper-base` and
`paper-big` are the models of Table 2, which average 5 and 20; for their rows in Table 3, add
`--set training.average_checkpoints=1`. See
[the choice of the model](departures.md#the-choice-of-the-model).
"""


if __name__ == "__main__":
    print(page(), end="")
