"""Which lines of a corpus are used for training. The docstrings are the help text."""

from dataclasses import dataclass
from math import inf
from typing import ClassVar, Literal

from regard.config.checking import refuse_problems, too_small


@dataclass(frozen=True, kw_only=True, slots=True)
class DataConfig:
    """Which lines of a corpus are dropped, and how many are held out."""

    SECTION: ClassVar[str] = "data"

    max_characters: int = 2000
    """Longest text, in characters; model.max_length limits its tokens."""
    max_ratio: float | None = 4.0
    """Largest factor between a pair's ratio of lengths and the median of the corpus; none for no limit."""
    cut_inputs: bool = False
    """Cut inputs longer than model.max_length instead of dropping the pairs."""
    drop_duplicates: bool = True
    """Drop exact duplicates of a pair."""
    skip_bad: bool = False
    """Leave out and count rows that cannot be read (wrong number of fields, bad JSON, wrong encoding) instead
    of refusing the file."""
    character_coverage: float | None = None
    """Share of the text whose characters become subwords, others are spelt in bytes; none takes characters
    that occur twice, at most 8,000."""
    valid_lines: int | None = None
    """Lines held out for validation, unless --valid is given; none takes 1 in 50 (of labelled texts 1 in 10),
    but 1 in 10 of up to 2,000 lines; at most 2,000."""
    test_lines: int | None = None
    """Lines held out for the test, unless --test is given; none takes 1 in 50 (of labelled texts 1 in 10),
    but 1 in 10 of up to 2,000 lines; at most 2,000."""

    @property
    def on_invalid(self) -> Literal["refuse", "drop"]:
        """What to do with a row that cannot be read."""
        return "drop" if self.skip_bad else "refuse"

    def __post_init__(self) -> None:
        refuse_problems(self)

    def problems(self) -> list[str]:
        """Every setting that is out of range."""
        found = too_small(self, dict.fromkeys(("max_characters", "valid_lines", "test_lines"), 1))
        if self.max_ratio is not None and not 1 < self.max_ratio < inf:
            found.append(f"data.max_ratio = {self.max_ratio} must be above 1 and finite")
        if self.character_coverage is not None and not 0.9 <= self.character_coverage <= 1:
            found.append(f"data.character_coverage = {self.character_coverage} must be between 0.9 and 1")
        return found
