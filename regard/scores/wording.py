"""Texts as words, for scores that count them: a Han character is one, and a run of letters or digits."""

from __future__ import annotations

import re
from collections.abc import Sequence

_WORDS = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]|[^\W_\u3400-\u9fff]+")


def words_of(text: str) -> list[str]:
    """The words of a text, in lower case, without punctuation."""
    return _WORDS.findall(text.lower())


def every(references: str | Sequence[str]) -> Sequence[str]:
    """All texts that would be right: one, or several."""
    return [references] if isinstance(references, str) else references
