"""Pairs that teach a model to copy: a document, and one of its own sentences.

Two thousand abstracts with a summary each are too few to learn from scratch how to write one. So a model
first learns to copy any sentence of any document; then, which one is nearest to a summary. Nothing but the
training sets is used.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from regard.data.reading.templates import read_pairs
from regard.engine.document.sentences import sentences
from regard.scores.texts import score_summaries
from regard.text.files.lines import read_lines

Pair = tuple[str, str]
FEWEST, MOST = 3, 9
"""Sentences of a document that is made up."""


def copies(lines: Sequence[str], count: int, seed: int) -> Iterator[Pair]:
    """Documents of random lines, and one line of each: after its first words it can only be copied."""
    draw = random.Random(seed)
    for _ in range(count):
        document = draw.sample(lines, draw.randint(FEWEST, MOST))
        yield " ".join(document), draw.choice(document)


def extracts(path: Path, crops: int, seed: int) -> Iterator[Pair]:
    """Documents, and parts of them, with the sentence nearest to the summary; each whole one first."""
    draw = random.Random(seed)
    for document, summary in read_pairs(path, ("{text}", "{summary}")):
        parts = sentences(document)
        worth = [score_summaries([part], [summary]).rouge_l for part in parts]
        order = range(len(parts))
        for crop in [list(order), *(_crop(order, draw) for _ in range(crops))]:
            yield " ".join(parts[i] for i in crop), parts[max(crop, key=worth.__getitem__)]


def _crop(order: range, draw: random.Random) -> list[int]:
    """Some sentences in a row, or in any order."""
    size = draw.randint(min(FEWEST, len(order)), len(order))
    start = draw.randint(0, len(order) - size)
    found = list(order[start : start + size])
    if draw.random() < 0.5:
        draw.shuffle(found)
    return found


def sentences_of(*paths: Path, longest: int = 300) -> list[str]:
    """Sentences of JSONL files with a `text`, or of plain ones, to make documents of."""
    found: dict[str, None] = {}
    for path in paths:
        if ".jsonl" in path.name:
            texts: Iterable[str] = (document for document, _ in read_pairs(path, ("{text}", "{text}")))
        else:
            texts = (line for block in read_lines(path) for line in block.columns[0])
        found.update((part, None) for text in texts for part in sentences(text) if len(part) <= longest)
    return list(found)


def write(path: Path, pairs: Iterable[Pair]) -> Path:
    """Keep pairs as JSONL with `text` and `summary`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        for text, summary in pairs:
            file.write(json.dumps({"text": text, "summary": summary}, ensure_ascii=False) + "\n")
    return path
