"""From documents to what the decoder alone learns from: subwords, and windows of text in token stores.

DATA/subwords.model     the subword model
DATA/train, DATA/valid  token stores; DATA/test where a test set was given
DATA/texts.json         how many documents and bytes each set has
DATA/key                a hash of the files and settings that all of this was made from, written last
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from regard.config import DataConfig
from regard.data.documents import Documents, encode_document, split
from regard.data.encoding import content_key
from regard.data.examples import windows
from regard.data.store import Store, find_store
from regard.data.store_writing import write_store
from regard.durable import write_whole
from regard.errors import CorpusError
from regard.text.normalisation import composed
from regard.text.subwords import learn_subwords
from regard.text.tally import Tally
from regard.text.vocabularies import read_vocabulary
from regard.text.vocabulary import Vocabulary
from regard.train.lesson import TextData
from regard.train.preparation import SUBWORDS, Tell, key_of

FACTS = "texts.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class TextSource:
    """What to train on: documents, with validation and test sets that are given or split off."""

    train: Documents
    valid: Documents | None = None
    test: Documents | None = None
    vocab_size: int | None = None
    """None: chosen from the data."""
    subwords: bytes | None = None
    """A vocabulary that is there already; None: it is learned."""
    max_tokens: int
    """Longest window, in tokens."""
    seed: int = 1
    data: DataConfig = field(default_factory=DataConfig)

    def key(self) -> str:
        """A hash of all that the result depends on."""
        sets = [each for each in (self.train, self.valid, self.test) if each is not None]
        given = [self.valid is not None, self.test is not None, self.subwords and self.subwords.hex()]
        settings = ["texts", self.vocab_size, self.max_tokens, self.seed, *given]
        columns = [list(columns) for each in sets for columns in each.columns]
        paths = [path for each in sets for path in each.paths]
        return content_key(paths, [*settings, columns, asdict(self.data)])


@dataclass(frozen=True, eq=False)
class PreparedTexts:
    """Data that is ready to be trained on, and to be tested with."""

    lesson: TextData
    subwords: Vocabulary
    test: Store
    test_bytes: int


def prepare_texts(folder: Path, source: TextSource, tell: Tell = lambda _: None) -> None:
    """Prepare the data in a folder, or leave what was prepared there from the same files before."""
    key = source.key()
    if key_of(folder) == key and _stores(folder, key) is not None:
        return
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "key").unlink(missing_ok=True)
    sets = _sets(source, tell)
    if source.subwords is None:
        tell("learning subwords")
        lines = (line for text in sets["train"] for line in text.split("\n"))
        model = learn_subwords(
            lines, source.vocab_size, coverage=source.data.character_coverage, seed=source.seed
        )
    else:
        model = source.subwords
    subwords = read_vocabulary(model)
    (folder / SUBWORDS).write_bytes(model)
    tell("encoding")
    facts = {}
    for name, texts in sets.items():
        store = _write(folder / name, texts, subwords, source.max_tokens, f"{key}-{name}")
        n_bytes = sum(len(composed(text).encode()) for text in texts)
        facts[name] = {"documents": len(texts), "bytes": n_bytes}
        n_tokens = store.facts.sides[0].n_tokens - len(store)
        sizes = f"{n_bytes:,} bytes, {n_tokens:,} tokens, {len(store):,} windows"
        tell(f"{name}: {len(texts):,} documents, {sizes}")
    write_whole(folder / FACTS, json.dumps(facts, indent=1))
    write_whole(folder / "key", key)


def prepared_texts(folder: Path) -> PreparedTexts:
    """What was prepared in a folder, perhaps by another process."""
    key = key_of(folder)
    stores = None if key is None else _stores(folder, key)
    if stores is None:
        raise CorpusError(f"{folder}: nothing is prepared there; all processes must see the same folder")
    facts = json.loads((folder / FACTS).read_text(encoding="utf-8"))
    subwords = read_vocabulary((folder / SUBWORDS).read_bytes())
    lesson = TextData(
        stores["train"],
        stores["valid"],
        valid_bytes=facts["valid"]["bytes"],
        subwords=subwords.model,
    )
    held_out = "test" if "test" in stores else "valid"
    return PreparedTexts(lesson, subwords, stores[held_out], facts[held_out]["bytes"])


def _sets(source: TextSource, tell: Tell) -> dict[str, Sequence[str]]:
    tell(f"reading {', '.join(source.train.names)}")
    empty = Tally()
    if source.valid is None:
        train, valid = split(source.train, source.data.valid_lines, source.seed, empty)
    else:
        train, valid = list(source.train.read(empty)), list(source.valid.read(empty))
    sets: dict[str, Sequence[str]] = {"train": train, "valid": valid}
    if source.test is not None:
        sets["test"] = list(source.test.read(empty))
    for places in empty.examples.values():
        tell(f"{empty.total:,} documents are empty and left out, such as {places[0]}")
    for name, texts in sets.items():
        if not texts:
            raise CorpusError(f"there is no text in the set {name}: every document is empty")
    return sets


def _write(folder: Path, texts: Sequence[str], subwords: Vocabulary, max_tokens: int, key: str) -> Store:
    encoded = (encode_document(subwords, text) for text in texts)
    cut = windows(encoded, max_tokens, bos=subwords.bos_id, eos=subwords.eos_id)
    examples = ((window.astype(subwords.dtype),) for window in cut)
    return write_store(folder, examples, sides=("text",), key=key, vocab_size=subwords.vocab_size)


def _stores(folder: Path, key: str) -> dict[str, Store] | None:
    """All stores, if everything that was prepared is still there."""
    if not (folder / SUBWORDS).is_file() or not (folder / FACTS).is_file():
        return None
    names = json.loads((folder / FACTS).read_text(encoding="utf-8"))
    stores = {name: find_store(folder / name, f"{key}-{name}") for name in names}
    found = {name: store for name, store in stores.items() if store is not None}
    return found if len(found) == len(stores) else None
