"""Write the terms that the page explains, `regard/page/words/glossary.json`, from the glossaries in `docs/`.

    python tools/glossary.py > regard/page/words/glossary.json

`make docs` runs it. Both glossaries have the same rows in the same order; the Chinese one names the English
words.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parents[1] / "docs"
_EVERYDAY = """
address architecture bank base big boundaries card conversion departure direction event family filler glossary
gold journal lane lesson manifest norms phrase preset recipe recording registry replica scheduler section
setting settled state step stream tap task teacher terms trace values view walk
"""
EVERYDAY = frozenset(_EVERYDAY.split())
"""Words that the page also uses in their everyday meaning, which no entry explains."""
CODE = re.compile(r"`([^`]*)`")


def rows(page: Path, columns: int) -> list[list[str]]:
    """The rows of a glossary's first table."""
    table = page.read_text(encoding="utf-8").split("\n## ")[1]
    lines = [line.strip("| ") for line in table.splitlines() if line.startswith("| ")]
    found = [[cell.strip() for cell in line.split(" | ")] for line in lines[1:]]
    assert all(len(row) == columns for row in found), f"{page} has a row without {columns} columns"
    return found


def entries(docs: Path = DOCS) -> list[dict[str, Any]]:
    """The terms that the page explains, with their words and meanings in both languages.

    Raises:
        ValueError: the two glossaries do not have the same terms in the same order.
    """
    english, chinese = rows(docs / "glossary.md", 2), rows(docs / "glossary.zh.md", 3)
    for (word, _), (_, twin, _) in zip(english, chinese, strict=False):
        if word != twin:
            raise ValueError(f"docs/glossary.md has {word!r} where docs/glossary.zh.md has {twin!r}")
    if len(english) != len(chinese):
        raise ValueError("docs/glossary.md and docs/glossary.zh.md have different numbers of terms")
    found = []
    for (word, meaning), (translated, _, explained) in zip(english, chinese, strict=True):
        words = [each for each in word.split(", ") if each not in EVERYDAY]
        pairs = (
            zip(word.split(", "), translated.split("、"), strict=True)
            if ", " in word
            else [(word, translated)]
        )
        twins = [zh for en, zh in pairs if en not in EVERYDAY]
        if words:
            plain = [CODE.sub(r"\1", text) for text in (meaning, explained)]
            found.append({"en": words, "zh": twins, "meaning": dict(zip(("en", "zh"), plain, strict=True))})
    return found


def page_glossary(docs: Path = DOCS) -> str:
    """The text of `regard/page/words/glossary.json`."""
    lines = ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in entries(docs))
    return f"[\n{lines}\n]\n"


if __name__ == "__main__":
    print(page_glossary(), end="")
