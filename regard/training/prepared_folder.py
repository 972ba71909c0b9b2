"""A folder of prepared data: subwords, token stores, what is to be known of them, and a key, written last.

When the key is the one that files and settings have now, everything is taken as it lies there.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from regard.config import DataConfig
from regard.data.store import Example, Store, find_store
from regard.data.store.writing import write_store
from regard.durable import write_atomically
from regard.errors import CorpusError
from regard.text.vocabularies import read_vocabulary
from regard.text.vocabularies.subwords import learn_subwords
from regard.text.vocabularies.vocabulary import Vocabulary
from regard.training.checkpoints.folder import KEY
from regard.training.preparation import SUBWORDS, Tell, key_of, tell_unseen


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """How texts become token stores, whatever they are for."""

    vocab_size: int | None = None
    """None: chosen from the data."""
    subwords: bytes | None = None
    """A vocabulary that is there already; None: it is learned."""
    max_tokens: int
    """Longest text, in tokens, that the model reads at once."""
    seed: int = 1
    data: DataConfig = field(default_factory=DataConfig)


@dataclass(frozen=True, eq=False)
class Found:
    """What a folder holds."""

    facts: Mapping[str, Any]
    subwords: Vocabulary
    stores: Mapping[str, Store]


@dataclass(frozen=True, slots=True)
class PreparedFolder:
    """Where data is prepared, or was; `facts` is the file that says what is to be known of it."""

    path: Path
    facts: str

    def is_made_from(self, key: str) -> bool:
        """Whether everything is there, and made from what has this key."""
        return key_of(self.path) == key and self._stores(key) is not None

    def begin(self, texts: Iterable[str], wanted: Wanted, tell: Tell) -> Vocabulary:
        """Make the folder anew, beginning with the subwords: those that are there, or learned from texts."""
        self.path.mkdir(parents=True, exist_ok=True)
        (self.path / KEY).unlink(missing_ok=True)
        model = wanted.subwords
        if model is None:
            tell("learning subwords")
            coverage = wanted.data.character_coverage
            model = learn_subwords(texts, wanted.vocab_size, coverage=coverage, seed=wanted.seed)
        subwords = read_vocabulary(model)
        if wanted.subwords is not None:
            tell_unseen(subwords, texts, tell)
        (self.path / SUBWORDS).write_bytes(model)
        tell("encoding")
        return subwords

    def write(
        self, name: str, examples: Iterable[Example], sides: Sequence[str], key: str, subwords: Vocabulary
    ) -> Store:
        """Keep a set."""
        return write_store(
            self.path / name, examples, sides=sides, key=f"{key}-{name}", vocab_size=subwords.vocab_size
        )

    def finish(self, sets: Iterable[str], facts: Mapping[str, Any], key: str) -> None:
        """Say what is there, and what of."""
        told = json.dumps({**facts, "sets": list(sets)}, ensure_ascii=False, indent=1)
        write_atomically(self.path / self.facts, told)
        write_atomically(self.path / KEY, key)

    def read(self) -> Found:
        """What was prepared, perhaps by another process.

        Raises:
            CorpusError: nothing was.
        """
        key = key_of(self.path)
        stores = None if key is None else self._stores(key)
        if stores is None:
            advice = "all processes must see the same folder"
            raise CorpusError(f"{self.path}: nothing is prepared there; {advice}")
        subwords = read_vocabulary((self.path / SUBWORDS).read_bytes())
        return Found(self._facts(), subwords, stores)

    def _facts(self) -> dict[str, Any]:
        facts: dict[str, Any] = json.loads((self.path / self.facts).read_text(encoding="utf-8"))
        return facts

    def _stores(self, key: str) -> dict[str, Store] | None:
        """All stores, if everything that was prepared is still there."""
        if not (self.path / SUBWORDS).is_file() or not (self.path / self.facts).is_file():
            return None
        names = self._facts().get("sets", ("train",))
        stores = {name: find_store(self.path / name, f"{key}-{name}") for name in names}
        found = {name: store for name, store in stores.items() if store is not None}
        return found if len(found) == len(stores) else None
