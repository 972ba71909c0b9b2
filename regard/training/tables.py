"""From labelled texts to what the encoder alone learns from: subwords, labels, token stores.

DATA/subwords.model     the subword model
DATA/train, DATA/valid, DATA/test   token stores: a text, and the number of its label
DATA/plain-train, DATA/plain-valid  token stores of the texts to guess tokens of, where some were given
DATA/labels.json        the labels, in the order of their numbers, and what is to be known of each set
DATA/key                a hash of the files and settings that all of this was made from, written last
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from regard.config.checking import counted
from regard.data.cleaning.holding_out import HeldOutSizes
from regard.data.reading import Corpus, Row
from regard.data.reading.labelled import split_labels
from regard.data.store import Store
from regard.data.store.writing import content_key
from regard.errors import CorpusError
from regard.text.files.lines import Tally
from regard.text.vocabularies.vocabulary import Vocabulary
from regard.training.lesson import LabelledData, PlainData, TaggedData
from regard.training.preparation import Tell
from regard.training.prepared_folder import PreparedFolder, Wanted

FACTS = "labels.json"
SETS = ("train", "valid", "test")
LEAST_WEIGHT = 1e-3
"""What a text counts at least whose label all others have, too."""
ONE_IN = 10
"""One text in so many is held out for each set: a text is scored by one label, and not by every word."""
FEW = 10
"""Rows below which it tells nothing that most labels are on one text."""
EMPTY, NO_LABEL, LONG = "empty text", "no label", "longer than the model reads, and cut"


@dataclass(frozen=True, kw_only=True, slots=True)
class TableSource(Wanted):
    """What to train on: rows of a label and a text, with sets that are given or split off."""

    train: Corpus
    valid: Corpus | None = None
    test: Corpus | None = None
    plain: Corpus | None = None
    """Texts without labels, to guess tokens of first."""
    separator: str | None = None
    """What parts the labels of a text; None: it has one."""

    def key(self) -> str:
        """A hash of all that the result depends on."""
        every = (self.train, self.valid, self.test, self.plain)
        sets = [each for each in every if each is not None]
        given = [each is not None for each in every]
        settings: list[Any] = ["tables", self.vocab_size, self.max_tokens, self.seed, *given]
        settings += [self.subwords.hex()] if self.subwords else []
        settings += ["separator", self.separator] if self.separator else []
        columns = [list(part.columns) for each in sets for part in each.parts]
        paths = [path for each in sets for path in each.paths]
        return content_key(paths, [*settings, columns, asdict(self.data)])

    def split_labels(self, cell: str) -> list[str]:
        """The labels of a row, each once."""
        return split_labels(cell, self.separator)


@dataclass(frozen=True, eq=False)
class PreparedTables:
    """Data that is ready to be trained on, and to be tested with."""

    lesson: LabelledData
    plain: PlainData | None
    subwords: Vocabulary
    test: Store


def prepare_tables(folder: Path, source: TableSource, tell: Tell = lambda _: None) -> None:
    """Prepare the data in a folder, or leave what was prepared there from the same files before."""
    key, place = source.key(), PreparedFolder(folder, FACTS)
    if place.is_made_from(key):
        return
    tell(f"reading {', '.join(source.train.names)}")
    sets, labels = _sets(source, tell)
    plain = _plain(source.plain, sets)
    subwords = place.begin([*(text for _, text in sets["train"]), *plain], source, tell)
    room = source.max_tokens - 1
    for name, rows in sets.items():
        numbers = _numbers(rows, labels, source, subwords)
        examples = zip(_cut(rows, subwords, room, name, tell), numbers, strict=True)
        place.write(name, examples, ("inputs", "label"), key, subwords)
    guessed = _held_out(plain, source)
    for name, texts in guessed.items():
        pieces = (piece for ids in subwords.encode(texts) for piece in _pieces(ids, room))
        place.write(name, ((piece,) for piece in pieces), ("inputs",), key, subwords)
    counts = Counter(label for cell, _ in sets["train"] for label in source.split_labels(cell))
    facts = {
        "labels": labels,
        "counts": [counts[label] for label in labels],
        "texts": len(sets["train"]),
        "several": source.separator is not None,
    }
    place.finish([*sets, *guessed], facts, key)


def prepared_tables(folder: Path) -> PreparedTables:
    """What was prepared in a folder, perhaps by another process."""
    found = PreparedFolder(folder, FACTS).read()
    stores, facts, subwords = found.stores, found.facts, found.subwords
    counts, several = np.array(facts["counts"]), facts.get("several", False)
    # What makes a rare label count as much as a common one; or a text that has it as much as those without.
    weights = (facts["texts"] - counts) / counts if several else counts.sum() / len(counts) / counts
    lesson = (TaggedData if several else LabelledData)(
        stores["train"],
        stores["valid"],
        cls=subwords.cls_id,
        labels=facts["labels"],
        class_weights=np.maximum(weights, LEAST_WEIGHT).tolist(),
        subwords=subwords.model,
    )
    plain = None
    if "plain-train" in stores:
        both = stores["plain-train"], stores["plain-valid"]
        plain = PlainData(*both, cls=subwords.cls_id, subwords=subwords.model)
    return PreparedTables(lesson, plain, subwords, stores["test"])


def _sets(source: TableSource, tell: Tell) -> tuple[dict[str, list[Row]], list[str]]:
    """The rows of each set, and the labels: those of the training set, sorted."""
    dropped = Tally()
    given = {"valid": source.valid, "test": source.test}
    sets = {name: list(_usable(each, source, dropped)) for name, each in given.items() if each is not None}
    train = _without(list(_usable(source.train, source, dropped)), sets, tell)
    asked = {"valid": source.data.valid_lines, "test": source.data.test_lines}
    wanted = [0 if name in sets else asked[name] for name in ("valid", "test")]
    sizes = HeldOutSizes(validation=wanted[0], test=wanted[1], one_in=ONE_IN).sizes(len(train))
    drawn = _drawn(train, sum(sizes), source)
    for name, rows in zip(("valid", "test"), np.split(drawn, sizes[:1]), strict=True):
        if name not in sets:
            sets[name] = [train[i] for i in rows]
    sets["train"] = [train[i] for i in np.setdiff1d(np.arange(len(train)), drawn)]
    tell(", ".join(f"{name}: {counted(len(sets[name]), 'text')}" for name in SETS))
    for what, count in dropped.counts.items():
        told = counted(count, f"row has {_article(what)} and is", f"rows have {_article(what)} and are")
        tell(f"{told} left out, such as {dropped.examples[what][0]}")
    return sets, _labels(sets, source, tell)


def _drawn(rows: Sequence[Row], size: int, source: TableSource) -> np.ndarray:
    """Rows to hold out, by seed; the last text of a label stays, or nothing could be learned of it.

    A text that is there with another label, too, is held out only where no others are left: it was seen.

    Raises:
        CorpusError: too many labels have one text only.
    """
    left = Counter(label for cell, _ in rows for label in source.split_labels(cell))
    drawn: list[int] = []
    times = Counter(text for _, text in rows)
    order = np.random.default_rng(source.seed).permutation(len(rows)).tolist()
    for i in sorted(order, key=lambda i: times[rows[i][1]] > 1):
        labels = source.split_labels(rows[i][0])
        if len(drawn) < size and all(left[label] > 1 for label in labels):
            left.subtract(labels)
            drawn.append(i)
    if len(drawn) < size:
        wanted, fit = counted(size, "text is", "texts are"), counted(len(drawn), "has a label", "have labels")
        told = f"{wanted} to be held out, and {fit} that others have, too"
        turned = "is the label in the first column? --columns 2,1 takes them the other way round"
        raise CorpusError(
            f"{told}; {turned if 2 * len(left) > len(rows) >= FEW else 'give more, or --valid and --test'}"
        )
    return np.array(drawn, dtype=np.int64)


def _article(what: str) -> str:
    return f"an {what}" if what == EMPTY else what


def _usable(corpus: Corpus, source: TableSource, dropped: Tally) -> Iterator[Row]:
    """Rows with a label and a text; the others are counted."""
    for block in corpus.blocks():
        for i, row in enumerate(zip(*block.columns, strict=True)):
            label, text = (cell.strip() for cell in row)
            if label and source.split_labels(label) and text and i not in block.unusable:
                yield label, text
            else:
                dropped.add(
                    block.unusable.get(i) or (NO_LABEL if text else EMPTY), block.name, block.first + i
                )


def _without(train: list[Row], sets: dict[str, list[Row]], tell: Tell) -> list[Row]:
    """Training rows whose texts no held-out set has, each once for each label."""
    known = {text for rows in sets.values() for _, text in rows}
    kept = [row for row in dict.fromkeys(train) if row[1] not in known]
    if len(kept) < len(train):
        less = counted(len(train) - len(kept), "row is there again", "rows are there again")
        tell(f"{less}, or held out, and not trained on")
    if not kept:
        raise CorpusError("no row is left to train on: all are empty, or held out")
    if told := _contradicting(kept):
        tell(told)
    return kept


def _contradicting(rows: list[Row]) -> str:
    """What is to be known of texts that have several rows, each with another label."""
    times = Counter(text for _, text in rows)
    if not (several := [text for text, n in times.items() if n > 1]):
        return ""
    labels = ", ".join(label for label, text in rows if text == several[0])
    told = f"{counted(len(several), 'text is', 'texts are')} there with different labels"
    return f"{told}, such as {several[0][:60]!r} ({labels}): is that meant?"


def _labels(sets: dict[str, list[Row]], source: TableSource, tell: Tell) -> list[str]:
    """The labels, and what is to be known of them.

    Raises:
        CorpusError: there is one label only, or a held-out set has one that is not trained on.
    """
    counts = {
        name: Counter(label for cell, _ in rows for label in source.split_labels(cell))
        for name, rows in sets.items()
    }
    labels = sorted(counts["train"])
    if len(labels) < 2:
        raise CorpusError(f"every text is labelled {labels[0]!r}: there is nothing to tell apart")
    for label in labels:
        if counts["train"][label] == 1:
            tell(f"label {label!r} is on one text of the training set only: it can hardly be learned")
    for name in ("valid", "test"):
        if strange := sorted(set(counts[name]) - set(labels)):
            told = f"the {name} set has {', '.join(map(repr, strange[:5]))}, which the training set has not"
            raise CorpusError(f"{told}; mend the labels, or leave those rows out")
        if missing := [label for label in labels if not counts[name][label]]:
            tell(f"the {name} set has no text labelled {', '.join(missing)}")
    return labels


def _plain(corpus: Corpus | None, sets: dict[str, list[Row]]) -> list[str]:
    """Texts to guess tokens of: none twice, and none that is held out."""
    if corpus is None:
        return []
    known = {"", *(text for name in ("valid", "test") for _, text in sets[name])}
    return [text for text in dict.fromkeys(row[0].strip() for row in corpus.rows()) if text not in known]


def _held_out(plain: list[str], source: TableSource) -> dict[str, list[str]]:
    if not plain:
        return {}
    size, _ = HeldOutSizes(test=0).sizes(len(plain))
    order = np.random.default_rng(source.seed).permutation(len(plain))
    parts = {"plain-valid": order[:size], "plain-train": np.sort(order[size:])}
    return {name: [plain[i] for i in rows] for name, rows in parts.items()}


def _cut(rows: Sequence[Row], subwords: Vocabulary, room: int, name: str, tell: Tell) -> Iterator[np.ndarray]:
    """The texts of a set in subwords, as far as the model reads."""
    encoded = subwords.encode([text for _, text in rows])
    most = room - len(subwords.closing)
    if long := sum(len(ids) > most for ids in encoded):
        be = "is" if long == 1 else "are"
        tell(f"{long:,} of {counted(len(rows), 'text')} of the {name} set {be} {LONG} after {most:,} tokens")
    return (subwords.closed(ids, room) for ids in encoded)


def _numbers(
    rows: Sequence[Row], labels: list[str], source: TableSource, subwords: Vocabulary
) -> Iterator[np.ndarray]:
    """The numbers of each row's labels."""
    numbers = {label: i for i, label in enumerate(labels)}
    return (
        np.array([numbers[label] for label in source.split_labels(cell)], subwords.dtype) for cell, _ in rows
    )


def _pieces(ids: np.ndarray, room: int) -> list[np.ndarray]:
    return np.array_split(ids, max(1, -(-len(ids) // room)))
