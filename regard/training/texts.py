"""From documents to what the decoder alone learns from: subwords, and windows of text in token stores.

DATA/subwords.model     the subword model
DATA/train, DATA/valid  token stores; DATA/test where a test set was given
DATA/texts.json         which sets there are, and how many bytes each has
DATA/key                a hash of the files and settings that all of this was made from, written last
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from regard.config.checking import counted
from regard.data.batches.examples import windows
from regard.data.reading.documents import Documents, encode_document, split_documents
from regard.data.store import Example, Store
from regard.data.store.writing import content_key
from regard.errors import CorpusError
from regard.text.files.lines import Tally
from regard.text.normalisation import composed
from regard.text.vocabularies.vocabulary import Vocabulary
from regard.training.lesson import TextData
from regard.training.preparation import Tell
from regard.training.prepared_folder import PreparedFolder, Wanted

FACTS = "texts.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class TextSource(Wanted):
    """What to train on: documents, with validation and test sets that are given or split off."""

    train: Documents
    valid: Documents | None = None
    test: Documents | None = None

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
    key, place = source.key(), PreparedFolder(folder, FACTS)
    if place.is_made_from(key):
        return
    sets = _sets(source, tell)
    lines = (line for text in sets["train"] for line in text.split("\n"))
    subwords = place.begin(lines, source, tell)
    n_bytes = {name: sum(len(composed(text).encode()) for text in texts) for name, texts in sets.items()}
    for name, texts in sets.items():
        store = place.write(name, _windows(texts, subwords, source.max_tokens), ("text",), key, subwords)
        n_tokens = store.facts.sides[0].n_tokens - len(store)
        found = {"document": len(texts), "byte": n_bytes[name], "token": n_tokens, "window": len(store)}
        tell(f"{name}: {', '.join(counted(number, what) for what, number in found.items())}")
    place.finish(sets, {"bytes": n_bytes}, key)


def prepared_texts(folder: Path) -> PreparedTexts:
    """What was prepared in a folder, perhaps by another process."""
    found = PreparedFolder(folder, FACTS).read()
    stores, n_bytes = found.stores, found.facts["bytes"]
    lesson = TextData(
        stores["train"], stores["valid"], valid_bytes=n_bytes["valid"], subwords=found.subwords.model
    )
    held_out = "test" if "test" in stores else "valid"
    return PreparedTexts(lesson, found.subwords, stores[held_out], n_bytes[held_out])


def _sets(source: TextSource, tell: Tell) -> dict[str, Sequence[str]]:
    tell(f"reading {', '.join(source.train.names)}")
    empty = Tally()
    if source.valid is None:
        train, valid = split_documents(source.train, source.data.valid_lines, source.seed, empty)
    else:
        train, valid = list(source.train.read(empty)), list(source.valid.read(empty))
    sets: dict[str, Sequence[str]] = {"train": train, "valid": valid}
    if source.test is not None:
        sets["test"] = list(source.test.read(empty))
    for places in empty.examples.values():
        told = counted(empty.total, "document is", "documents are")
        tell(f"{told} empty and left out, such as {places[0]}")
    for name, texts in sets.items():
        if not texts:
            raise CorpusError(f"there is no text in the set {name}: every document is empty")
    return sets


def _windows(texts: Sequence[str], subwords: Vocabulary, max_tokens: int) -> Iterator[Example]:
    encoded = (encode_document(subwords, text) for text in texts)
    cut = windows(encoded, max_tokens, bos=subwords.bos_id, eos=subwords.eos_id)
    return ((window.astype(subwords.dtype),) for window in cut)
