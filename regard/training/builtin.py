"""The built-in corpus as files, so that training on it goes the way of all training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from regard.data.numerals import SplitName, sample
from regard.data.reading import parallel_corpus
from regard.durable import write_atomically
from regard.training.preparation import PairsSource

SIZES: dict[SplitName, int] = {"train": 80_000, "valid": 1_000, "test": 1_000}


def numerals(folder: Path, *, seed: int, **wanted: Any) -> PairsSource:
    """Chinese to English numbers, dates, times and prices, written to a folder; the rest as `PairsSource`."""
    folder = folder / f"seed-{seed}"
    folder.mkdir(parents=True, exist_ok=True)
    files = {}
    for split, size in SIZES.items():
        paths = [folder / f"{split}.{language}" for language in ("zh", "en")]
        if not all(path.exists() for path in paths):
            pairs = sample(split, size, seed)
            texts = [pair.chinese for pair in pairs], [pair.english for pair in pairs]
            for path, lines in zip(paths, texts, strict=True):
                write_atomically(path, "\n".join(lines) + "\n")
        files[split] = parallel_corpus(*paths)
    return PairsSource(
        train=files["train"],
        valid=files["valid"],
        test=files["test"],
        languages=("zh", "en"),
        seed=seed,
        **wanted,
    )
