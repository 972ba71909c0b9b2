"""Learn the shortlist of the bundled translator, and store it in the model folder.

    python models/zh-en/shortlist.py DATA/zh-en DATA/zh-en-more regard/bundled/zh-en

It is learned from the pairs of the sources that the model was trained on (`sources.py`), mended but not
weighed. `regard train` learns a shortlist at its end as well, from fewer pairs.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from data import read
from rules import mended
from sources import TOKENISED

import regard
from regard.bundle.bundle import add_file
from regard.bundle.manifest import SHORTLIST
from regard.tasks.translate import shortlist_of_pairs
from regard.text.vocabularies.vocabulary import Vocabulary

CELLS = 200_000_000
"""Cells to learn from: some 600,000 examples. Takes two minutes and 8 GB of memory."""
MOST_PAIRS = 500_000
"""Pairs that are encoded; each is two examples."""


def main() -> None:
    """Read, learn and store."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("zh_en", type=Path)
    parser.add_argument("more", type=Path)
    parser.add_argument("model", type=Path)
    options = parser.parse_args()
    subwords = regard.load(options.model).subwords
    found = shortlist_of_pairs(examples([options.zh_en, options.more], subwords), subwords, CELLS)
    content = found.to_bytes()
    add_file(options.model, SHORTLIST, content)
    print(f"{len(found.ids):,} candidates, {len(content):,} bytes")


def examples(folders: Sequence[Path], subwords: Vocabulary) -> list[tuple[Any, ...]]:
    """Pairs from all over the data as the model learns them: both ways, with a language tag."""
    pairs = [
        mended(*pair, tokenised=source in TOKENISED) for source, found in read(*folders) for pair in found
    ]
    pairs = pairs[:: -(-len(pairs) // MOST_PAIRS)]
    zh, en = (subwords.encode([pair[side] for pair in pairs], threads=2) for side in (0, 1))
    tags = {language: subwords.tag_id(language) for language in ("zh", "en")}
    return [
        example
        for chinese, english in zip(zh, en, strict=True)
        for example in (
            ([tags["en"], *chinese.tolist()], english),
            ([tags["zh"], *english.tolist()], chinese),
        )
    ]


if __name__ == "__main__":
    main()
