"""What may be asked of a translation. The docstrings are the reference."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Literal

from regard.config import DecodingConfig
from regard.engine.engines.protocol import Search
from regard.errors import RequestError


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """How to translate. What is None is as the model folder says."""

    to: str | None = None
    """Code of the language to translate into; where a model knows both directions, else each text tells."""
    source: str | None = None
    """Code of the language of the texts, to be sure of it."""
    beam_size: int | None = None
    """Hypotheses kept at each step; 1 is greedy search."""
    n_best: int = 1
    """Translations of each text: the best, and the others as its `alternatives`."""
    length_penalty: float | None = None
    """The paper's alpha: scores are divided by ((5 + length) / 6) ** alpha."""
    prefix: str | None = None
    """How the translation of each text must begin."""
    glossary: Mapping[str, str] | Path | str | None = None
    """Phrases of the source, each with what the translation must contain for it; or a file of two columns."""
    keep: Sequence[str | re.Pattern[str]] = ()
    """What must not be translated, wherever it stands in the source: texts, or patterns, as for URLs."""
    whole_lines: bool = False
    """Translate lines as they stand, and cut them into sentences only where they are too long."""
    too_long: Literal["split", "error"] = "split"
    """What to do about a sentence that is too long for the model: cut it, and say so, or refuse the text."""
    token_scores: bool = False
    """Whether each token's log-probability is wanted, which takes one engine a second run."""
    alignment: bool = False
    """Whether it is wanted where each word comes from: the model reads every translation once more for it."""
    min_length: int = 0
    """Fewest tokens of the translation of a sentence."""
    extra_length: int | None = None
    """How many tokens longer than its sentence a translation may grow."""
    sample: bool = False
    """Draw tokens instead of searching for the likeliest."""
    temperature: float = 1.0
    top_k: int = 0
    """Draw from so many of the likeliest tokens; 0 for all."""
    top_p: float = 1.0
    """Draw from the likeliest tokens that together have this probability."""
    min_p: float = 0.0
    """Draw from tokens at least this share as likely as the likeliest."""
    seed: int = 1
    """Where drawing starts."""

    def __post_init__(self) -> None:
        if self.too_long not in ("split", "error"):
            raise RequestError(f"`too_long={self.too_long!r}` is not split or error")
        least = {"beam_size": 1, "n_best": 1, "length_penalty": 0, "min_length": 0, "extra_length": 0}
        for name, bound in least.items():
            value = getattr(self, name)
            if value is not None and value < bound:
                raise RequestError(f"`{name}={value}` is less than {bound}")

    def search(self, usual: DecodingConfig) -> Search:
        """These options as engines take them."""
        given = {field.name: getattr(self, field.name) for field in fields(Search)}
        for name in ("beam_size", "length_penalty", "extra_length"):
            if given[name] is None:
                given[name] = getattr(usual, name)
        if self.beam_size is None and not self.sample:
            given["beam_size"] = max(given["beam_size"], self.n_best)
        return Search(**given)
