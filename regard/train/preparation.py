"""From text files to what a run learns from: cleaned, in subwords, in token stores.

    DATA/subwords.model     the subword model
    DATA/train, DATA/valid  token stores
    DATA/test.tsv           what was kept to test with, as text
    DATA/report.json        what was dropped and repaired, and how long things are
    DATA/key                a hash of the files and settings that all of this was made from, written last

When the key is the one that the files have now, everything is taken as it lies there.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from regard.data.cleaning import Cleaned, clean
from regard.data.corpus import Corpus, Row
from regard.data.encoding import content_key, each_side, encode_in_threads
from regard.data.holding_out import Split
from regard.data.report import report
from regard.data.store import open_store
from regard.data.store_writing import write_store
from regard.errors import CorpusError
from regard.text.subwords import Subwords, learn_subwords
from regard.train.loop import PairsData

SIDES = ("inputs", "outputs")
Tell = Callable[[str], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class PairsSource:
    """What to train on: pairs in files, with validation and test sets that are given or split off."""

    train: Corpus
    valid: Corpus | None = None
    test: Corpus | None = None
    languages: tuple[str, str]
    vocab_size: int | None = None
    """None: chosen from the data."""
    max_tokens: int
    """Longest sequence, in tokens."""
    seed: int = 1

    def key(self) -> str:
        """A hash of all that the result depends on."""
        corpora = [each for each in (self.train, self.valid, self.test) if each is not None]
        given = [self.valid is not None, self.test is not None]
        settings = [self.vocab_size, self.max_tokens, self.seed, *given, *self.languages]
        return content_key([path for corpus in corpora for path in corpus.paths], settings)


@dataclass(frozen=True, eq=False)
class Prepared:
    """Data that is ready to be trained on, and to be tested with."""

    data: PairsData
    subwords: Subwords
    test: list[Row]


def prepare_pairs(folder: Path, source: PairsSource, tell: Tell = lambda _: None) -> Prepared:
    """Prepare the data in a folder, or take what was prepared there from the same files before."""
    key, file = source.key(), folder / "key"
    if not (file.exists() and file.read_text() == key):
        folder.mkdir(parents=True, exist_ok=True)
        file.unlink(missing_ok=True)
        _prepare(folder, source, key, tell)
        _write(file, key)
    subwords = Subwords((folder / "subwords.model").read_bytes())
    with (folder / "test.tsv").open(encoding="utf-8", newline="") as lines:
        test = [tuple(row) for row in csv.reader(lines, delimiter="\t")]
    data = PairsData(
        open_store(folder / "train"),
        open_store(folder / "valid"),
        bos=subwords.bos_id,
        eos=subwords.eos_id,
        subwords=subwords.model,
    )
    return Prepared(data, subwords, test)


def _prepare(folder: Path, source: PairsSource, key: str, tell: Tell) -> None:
    given = [each for each in (source.valid, source.test) if each is not None]
    split = Split(
        validation=0 if source.valid is not None else None, test=0 if source.test is not None else None
    )
    tell(f"reading {', '.join(source.train.names)}")
    cleaned = clean(source.train, split=split, given=given, seed=source.seed, scratch=folder)
    valid, test = cleaned.held_out()
    valid = valid if source.valid is None else list(source.valid.rows())
    test = test if source.test is None else list(source.test.rows())
    tell("learning subwords")
    model = learn_subwords(cleaned.texts(), source.vocab_size, seed=source.seed)
    subwords = Subwords(model)
    (folder / "subwords.model").write_bytes(model)
    _write_stores(folder, source, key, cleaned, valid, len(test), subwords, tell)
    with (folder / "test.tsv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter="\t", lineterminator="\n").writerows(test)


def _write_stores(
    folder: Path,
    source: PairsSource,
    key: str,
    cleaned: Cleaned,
    valid: list[Row],
    n_test: int,
    subwords: Subwords,
    tell: Tell,
) -> None:
    """Encode what to train on and what to validate with; the report tells what became of the lines."""
    given = source.valid is not None or source.test is not None
    facts = report(
        cleaned,
        source.languages,
        validation=len(valid) if given else None,
        test=n_test if given else None,
        vocab_size=subwords.vocab_size,
    )
    encode = each_side(subwords.encode, subwords.encode)
    threads = min(4, os.cpu_count() or 1)
    room = source.max_tokens - 1  # one is for the token that ends a sequence, or starts it
    tell("encoding")
    rows = encode_in_threads(cleaned.rows(), encode, threads=threads)
    size = subwords.vocab_size
    write_store(folder / "train", facts.measure(rows, cleaned, room), sides=SIDES, key=key, vocab_size=size)
    short = [pair for pair in encode(valid) if max(map(len, pair)) <= room and min(map(len, pair)) > 0]
    if not short:
        raise CorpusError("no line of the validation set can be used: all are empty or too long")
    write_store(folder / "valid", short, sides=SIDES, key=f"{key}-valid", vocab_size=size)
    (folder / "report.json").write_text(json.dumps(facts.as_dict(), ensure_ascii=False, indent=1))
    tell(facts.as_text())


def _write(file: Path, text: str) -> None:
    """Write a small file so that it is there whole or not at all."""
    partial = file.with_suffix(".partial")
    partial.write_text(text)
    partial.replace(file)
