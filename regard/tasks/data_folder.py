"""A folder of prepared data: subwords, token stores, facts about them, and a key, which is written last.

    DATA/subwords.model     the subword model
    DATA/train, DATA/valid  token stores, and more of them where a task has more sets
    DATA/text/              copies of input that can be read once, or that is built in
    DATA/*.json             facts; the name is the task's
    DATA/key                a hash of the files and settings that all of this was made from

When files and settings have the key that is there, the folder is used as it is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

from regard.data.store import Example, Store, find_store
from regard.durable import make_folder, sync_folder, write_atomically
from regard.errors import CorpusError
from regard.tasks.task import Reporter, Source
from regard.text.vocabularies import read_vocabulary
from regard.text.vocabularies.subwords import learn_subwords
from regard.text.vocabularies.vocabulary import Vocabulary, unseen_characters

KEY, SUBWORDS, TEXT = "key", "subwords.model", "text"
SAMPLED = 10_000
"""Texts whose characters are looked up in a vocabulary that was not learned from them."""


@dataclass(frozen=True, eq=False)
class Contents:
    """What a folder of prepared data holds."""

    facts: Mapping[str, Any]
    subwords: Vocabulary
    stores: Mapping[str, Store]


@dataclass(frozen=True, slots=True)
class DataFolder:
    """Where data is prepared; `facts_file` is the JSON file with the facts."""

    path: Path
    facts_file: str
    sets: tuple[str, ...] = ("train", "valid")
    """The token stores, unless the facts list others."""
    plain_train_key: bool = False
    """Whether the store `train` has the folder's key itself, without the name of the set."""

    def is_made_from(self, key: str) -> bool:
        """Whether everything is there, made from what has this key."""
        return key_of(self.path) == key and self._stores(key) is not None

    def begin(self) -> None:
        """Make the folder, without a key until it is complete."""
        make_folder(self.path)
        (self.path / KEY).unlink(missing_ok=True)
        sync_folder(self.path)  # a power failure must not bring the key back beside other subwords

    def write_subwords(
        self, texts: Iterable[str], source: Source, report: Reporter, languages: Sequence[str] = ()
    ) -> Vocabulary:
        """Write the vocabulary: the one that is given, or one learned from texts.

        Args:
            texts: what is trained on.
            source: whose vocabulary is written, or how large it may be.
            report: takes messages.
            languages: get a token each, which can precede an input.
        """
        model = source.subwords
        if model is None:
            report("learning subwords")
            model = learn_subwords(
                texts,
                source.vocab_size,
                tags=languages,
                coverage=source.data.character_coverage,
                continues=source.CONTINUES,
                seed=source.seed,
            )
        subwords = read_vocabulary(model)
        if source.subwords is not None:
            _report_unseen(subwords, texts, report)
        write_atomically(self.path / SUBWORDS, model)
        return subwords

    def write_store(
        self, name: str, examples: Iterable[Example], sides: Sequence[str], key: str, subwords: Vocabulary
    ) -> Store:
        """Write a set."""
        from regard.data.store.writing import write_store  # a loaded translator does not need it

        own_key = self._store_key(name, key)
        return write_store(
            self.path / name, examples, sides=sides, key=own_key, vocab_size=subwords.vocab_size
        )

    def finish(self, facts: Mapping[str, Any], key: str) -> None:
        """Write the facts, then the key."""
        write_atomically(self.path / self.facts_file, json.dumps(facts, ensure_ascii=False, indent=1))
        write_atomically(self.path / KEY, key)

    def read(self) -> Contents:
        """What was prepared, perhaps by another process.

        Raises:
            CorpusError: nothing was.
        """
        key = key_of(self.path)
        stores = None if key is None else self._stores(key)
        if stores is None:
            raise CorpusError(
                f"{self.path}: holds no prepared data; all processes of a run must see the same folder",
                code="missing_data",
            )
        subwords = read_vocabulary((self.path / SUBWORDS).read_bytes())
        return Contents(self._facts(), subwords, stores)

    def _facts(self) -> dict[str, Any]:
        facts: dict[str, Any] = json.loads((self.path / self.facts_file).read_text(encoding="utf-8"))
        return facts

    def _stores(self, key: str) -> dict[str, Store] | None:
        """All stores; None if something that was prepared is gone."""
        if not (self.path / SUBWORDS).is_file() or not (self.path / self.facts_file).is_file():
            return None
        names = self._facts().get("sets", self.sets)
        stores = {name: find_store(self.path / name, self._store_key(name, key)) for name in names}
        there = {name: store for name, store in stores.items() if store is not None}
        return there if len(there) == len(stores) else None

    def _store_key(self, name: str, key: str) -> str:
        return key if name == "train" and self.plain_train_key else f"{key}-{name}"


def key_of(folder: Path) -> str | None:
    """The key of the data in a folder; None where nothing is complete."""
    file = folder / KEY
    return file.read_text(encoding="utf-8") if file.is_file() else None


def _report_unseen(subwords: Vocabulary, texts: Iterable[str], report: Reporter) -> None:
    """Report which characters of texts a given vocabulary has only as bytes."""
    characters = set(chain.from_iterable(islice(texts, SAMPLED)))
    if unseen := unseen_characters(subwords, "".join(sorted(characters))):
        share = f"{len(unseen):,} of {len(characters):,} characters"
        report(f"{share} are in no subword of the given model and are read as bytes: {' '.join(unseen[:20])}")
