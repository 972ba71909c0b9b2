"""From labelled texts to token stores.

DATA/train, DATA/valid, DATA/test   token stores of a text and the numbers of its labels
DATA/plain-train, DATA/plain-valid  token stores of texts without labels, where some are given
DATA/labels.json                    the labels in the order of their numbers, and how frequent they are
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from regard.config.checking import counted
from regard.data.cleaning.alarms import dropped_warning, share_uncertainty, small_set_warning
from regard.data.cleaning.holding_out import HeldOutSizes
from regard.data.reading import Corpus, Row
from regard.data.reading.labelled import split_labels
from regard.data.store.writing import content_key
from regard.errors import CorpusError
from regard.tasks.data_folder import Contents, DataFolder
from regard.tasks.task import Reporter, Source
from regard.text.files.lines import Tally
from regard.text.vocabularies.vocabulary import Vocabulary

SETS = ("train", "valid", "test")
ONE_IN = 10
"""One text in ten is held out for each set: a text is scored by its label, not by every word."""
FEW = 10
"""With fewer rows than this, a label on most texts says nothing about swapped columns."""
EMPTY, NO_LABEL = "empty text", "no label"


@dataclass(frozen=True, kw_only=True, slots=True)
class LabelledSource(Source):
    """Rows of a label and a text; validation and test sets are given or split off."""

    train: Corpus
    valid: Corpus | None = None
    test: Corpus | None = None
    plain: Corpus | None = None
    """Texts without labels, from which hidden tokens are guessed first."""
    separator: str | None = None
    """What separates several labels of a text; None: a text has one label."""

    def key(self) -> str:
        """A hash of everything that the prepared data depends on."""
        every = (self.train, self.valid, self.test, self.plain)
        sets = [each for each in every if each is not None]
        given = [each is not None for each in every]
        settings: list[Any] = ["tables", self.vocab_size, self.max_tokens, self.seed, *given]
        settings += [self.subwords.hex()] if self.subwords else []
        settings += ["separator", self.separator] if self.separator else []
        columns = [list(part.columns) for each in sets for part in each.parts]
        paths = [path for each in sets for path in each.paths]
        return content_key(paths, [*settings, columns, self.data_settings()])

    def labels_in(self, cell: str) -> list[str]:
        """The labels of a row, each once."""
        return split_labels(cell, self.separator)


def prepare_labelled(folder: Path, source: LabelledSource, report: Reporter | None = None) -> None:
    """Prepare the data in a folder, unless it holds the same already."""
    report = report or Reporter()
    key, place = source.key(), _place(folder)
    if place.is_made_from(key):
        return
    report(f"reading {', '.join(source.train.names)}")
    warnings: list[str] = []
    sets, labels = _sets(source, report, warnings)
    plain = _plain(source.plain, sets)
    place.begin()
    subwords = place.write_subwords([*(text for _, text in sets["train"]), *plain], source, report)
    report("encoding")
    room = source.max_tokens - 1
    for name, rows in sets.items():
        numbers = _numbers(rows, labels, source, subwords)
        examples = zip(_cut(rows, subwords, room, name, report), numbers, strict=True)
        place.write_store(name, examples, ("inputs", "label"), key, subwords)
    plain_sets = _plain_sets(plain, source)
    for name, texts in plain_sets.items():
        pieces = (piece for ids in subwords.encode(texts) for piece in _pieces(ids, room))
        place.write_store(name, ((piece,) for piece in pieces), ("inputs",), key, subwords)
    counts = Counter(label for cell, _ in sets["train"] for label in source.labels_in(cell))
    facts = {
        "labels": labels,
        "counts": [counts[label] for label in labels],
        "texts": len(sets["train"]),
        "several": source.separator is not None,
        "sets": [*sets, *plain_sets],
        "warnings": warnings,
    }
    for warning in warnings:
        report(f"warning: {warning}")
    place.finish(facts, key)


def read_labelled(folder: Path) -> Contents:
    """What was prepared in a folder."""
    return _place(folder).read()


def _place(folder: Path) -> DataFolder:
    return DataFolder(folder, "labels.json", SETS)


def _sets(
    source: LabelledSource, report: Reporter, warnings: list[str]
) -> tuple[dict[str, list[Row]], list[str]]:
    """The rows of each set, and the labels of the training set, sorted."""
    dropped = Tally()
    given = {"valid": source.valid, "test": source.test}
    sets = {name: list(_usable(each, source, dropped)) for name, each in given.items() if each is not None}
    for name, each in given.items():
        if each is not None and not sets[name]:
            problem = f"the {name} set has no row with a label and a text; give another with --{name}"
            raise CorpusError(f"{' '.join(each.names)}: {problem}", code="no_usable_rows")
    unusable = Tally()
    usable = list(_usable(source.train, source, unusable))
    warnings += dropped_warning(unusable, len(usable) + unusable.total)
    dropped.add_tally(unusable)
    train = _without_held_out(usable, sets, report, warnings)
    configured = {"valid": source.data.valid_lines, "test": source.data.test_lines}
    sizes_to_draw = [0 if name in sets else configured[name] for name in ("valid", "test")]
    split = HeldOutSizes(validation=sizes_to_draw[0], test=sizes_to_draw[1], one_in=ONE_IN)
    sizes = split.sizes(len(train))
    drawn = _drawn(train, sum(sizes), source)
    for name, rows in zip(("valid", "test"), np.split(drawn, sizes[:1]), strict=True):
        if name not in sets:
            sets[name] = [train[i] for i in rows]
    sets["train"] = [train[i] for i in np.setdiff1d(np.arange(len(train)), drawn)]
    report(", ".join(f"{name}: {counted(len(sets[name]), 'text')}" for name in SETS))
    for what, count in dropped.counts.items():
        rows_have = counted(count, "row has", "rows have")
        report(f"{rows_have} {_article(what)}, left out; the first is {dropped.examples[what][0]}")
    for note in dropped.notes:
        report(note)
    held_out = {"validation": len(sets["valid"]), "test": len(sets["test"])}
    warnings += small_set_warning(held_out, len(sets["train"]), share_uncertainty)
    return sets, _labels(sets, source, report)


def _drawn(rows: Sequence[Row], size: int, source: LabelledSource) -> np.ndarray:
    """Rows to hold out, drawn by seed; the last text of a label stays, so that the label can be learned.

    A text that appears with several labels is held out only where no others are left: training saw it.

    Raises:
        CorpusError: too many labels have one text only.
    """
    left = Counter(label for cell, _ in rows for label in source.labels_in(cell))
    drawn: list[int] = []
    times = Counter(text for _, text in rows)
    order = np.random.default_rng(source.seed).permutation(len(rows)).tolist()
    for i in sorted(order, key=lambda i: times[rows[i][1]] > 1):
        labels = source.labels_in(rows[i][0])
        if len(drawn) < size and all(left[label] > 1 for label in labels):
            left.subtract(labels)
            drawn.append(i)
    if len(drawn) < size:
        swapped = 2 * len(left) > len(rows) >= FEW
        advice = "is the label in the first column? `columns=2,1` swaps them"
        raise CorpusError(
            f"{counted(size, 'text')} must be held out, but only {len(drawn):,} have labels that other texts "
            f"have too; {advice if swapped else 'give more texts, or `valid` and `test`'}",
            code="too_few_rows",
        )
    return np.array(drawn, dtype=np.int64)


def _article(what: str) -> str:
    return what if what == NO_LABEL else f"{'an' if what[0] in 'aeiou' else 'a'} {what}"


def _usable(corpus: Corpus, source: LabelledSource, dropped: Tally) -> Iterator[Row]:
    """Rows with a label and a text; the others are counted."""
    repairs = Tally()
    for block in corpus.blocks(repairs):
        for i, row in enumerate(zip(*block.columns, strict=True)):
            label, text = (cell.strip() for cell in row)
            if label and source.labels_in(label) and text and i not in block.unusable:
                yield label, text
            else:
                dropped.add(block.unusable.get(i) or (NO_LABEL if text else EMPTY), block.name, block.line(i))
    for note in repairs.notes:
        dropped.note(note)


def _without_held_out(
    train: list[Row], sets: dict[str, list[Row]], report: Reporter, warnings: list[str]
) -> list[Row]:
    """Training rows whose texts no held-out set has, without duplicates."""
    known = {text for rows in sets.values() for _, text in rows}
    kept = [row for row in dict.fromkeys(train) if row[1] not in known]
    if len(kept) < len(train):
        less = counted(len(train) - len(kept), "row is a duplicate", "rows are duplicates")
        report(f"{less} or held out, and not trained on")
    if 2 * len(kept) < len(train) and len(train) >= 20:
        again = next((text for (_, text), n in Counter(train).most_common(1) if n > 1), "")
        share = f"{len(train) - len(kept):,} of {len(train):,} rows ({1 - len(kept) / len(train):.0%})"
        example = f", such as {again[:60]!r}" if again else ""
        where = f"are duplicates, or in the validation or test set{example}"
        warnings.append(f"{share} {where}; is a file joined with itself?")
    if not kept:
        raise CorpusError("no row is left to train on: all are empty, or held out", code="no_usable_rows")
    _report_contradictions(kept, report)
    return kept


def _report_contradictions(rows: list[Row], report: Reporter) -> None:
    """Report texts that have several rows, each with another label."""
    times = Counter(text for _, text in rows)
    if several := [text for text, n in times.items() if n > 1]:
        labels = ", ".join(label for label, text in rows if text == several[0])
        texts = counted(len(several), "text appears", "texts appear")
        report(f"{texts} with different labels, such as {several[0][:60]!r} ({labels}); is that intended?")


def _labels(sets: dict[str, list[Row]], source: LabelledSource, report: Reporter) -> list[str]:
    """The labels; reports those that are rare or missing in a set.

    Raises:
        CorpusError: there is one label only, or a held-out set has a label that the training set lacks.
    """
    counts = {
        name: Counter(label for cell, _ in rows for label in source.labels_in(cell))
        for name, rows in sets.items()
    }
    labels = sorted(counts["train"])
    if len(labels) < 2:
        raise CorpusError(
            f"every text has the label {labels[0]!r}; two labels or more are needed", code="one_label"
        )
    for label in labels:
        if counts["train"][label] == 1:
            report(f"the label {label!r} has only one text in the training set, too few to learn it")
    for name in ("valid", "test"):
        if strange := sorted(set(counts[name]) - set(labels)):
            names = ", ".join(map(repr, strange[:5]))
            raise CorpusError(
                f"the {name} set has labels that the training set lacks: {names}; correct them, or leave "
                "those rows out",
                code="unknown_label",
            )
        if missing := [label for label in labels if not counts[name][label]]:
            report(f"the {name} set has no text with the label {', '.join(missing)}")
    return labels


def _plain(corpus: Corpus | None, sets: dict[str, list[Row]]) -> list[str]:
    """Texts for pretraining, without duplicates and without held-out texts."""
    if corpus is None:
        return []
    known = {"", *(text for name in ("valid", "test") for _, text in sets[name])}
    return [text for text in dict.fromkeys(row[0].strip() for row in corpus.rows()) if text not in known]


def _plain_sets(plain: list[str], source: LabelledSource) -> dict[str, list[str]]:
    if not plain:
        return {}
    size, _ = HeldOutSizes(test=0).sizes(len(plain))
    order = np.random.default_rng(source.seed).permutation(len(plain))
    parts = {"plain-valid": order[:size], "plain-train": np.sort(order[size:])}
    return {name: [plain[i] for i in rows] for name, rows in parts.items()}


def _cut(
    rows: Sequence[Row], subwords: Vocabulary, room: int, name: str, report: Reporter
) -> Iterator[np.ndarray]:
    """The texts of a set in subwords, cut to what the model reads."""
    encoded = subwords.encode([text for _, text in rows])
    most = room - len(subwords.closing)
    if long := sum(len(ids) > most for ids in encoded):
        share = f"{long:,} of {counted(len(rows), 'text')} of the {name} set"
        report(f"{share} {'is' if long == 1 else 'are'} cut after {most:,} tokens, which the model reads")
    return (subwords.closed(ids, room) for ids in encoded)


def _numbers(
    rows: Sequence[Row], labels: list[str], source: LabelledSource, subwords: Vocabulary
) -> Iterator[np.ndarray]:
    """The numbers of each row's labels."""
    numbers = {label: i for i, label in enumerate(labels)}
    return (
        np.array([numbers[label] for label in source.labels_in(cell)], subwords.dtype) for cell, _ in rows
    )


def _pieces(ids: np.ndarray, room: int) -> list[np.ndarray]:
    return np.array_split(ids, max(1, -(-len(ids) // room)))
