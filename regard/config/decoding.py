"""How outputs are searched for. The defaults are the paper's (6.1); the docstrings are the help text."""

from dataclasses import dataclass
from typing import ClassVar

from regard.config.checking import refuse_problems, too_small


@dataclass(frozen=True, kw_only=True, slots=True)
class DecodingConfig:
    """How outputs are searched for: beam size, and how long they may be."""

    SECTION: ClassVar[str] = "decoding"

    beam_size: int = 4
    """Hypotheses kept at each step; 1 is greedy search (6.1)."""
    length_penalty: float = 0.6
    """Strength of the length penalty, the paper's alpha; 0 is none (6.1)."""
    extra_length: int = 50
    """How many tokens longer than its input an output may be (6.1)."""

    def __post_init__(self) -> None:
        refuse_problems(self)

    def problems(self) -> list[str]:
        """Every setting that is out of range."""
        return too_small(self, {"beam_size": 1, "length_penalty": 0, "extra_length": 0})
