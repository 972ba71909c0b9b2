"""From pairs of texts to token stores: cleaned, held-out sets split off, in subwords.

DATA/train, DATA/valid  token stores of inputs and outputs
DATA/test.jsonl         the test set as text, a pair per line
DATA/report.json        what was dropped and repaired, and how long sequences are
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from regard.config.checking import counted
from regard.data.cleaning import Cleaned, clean
from regard.data.cleaning.alarms import SAMPLED as DOUBTED
from regard.data.cleaning.alarms import (
    bleu_uncertainty,
    pair_warnings,
    share_uncertainty,
    small_set_warning,
)
from regard.data.cleaning.holding_out import Fate, HeldOutSizes, known_texts, rows_apart
from regard.data.cleaning.report import make_report
from regard.data.reading import Corpus, Row
from regard.data.store import Example
from regard.data.store.writing import both_ways, content_key, encode_in_threads, one_way, row_encoder
from regard.durable import write_atomically
from regard.errors import CorpusError
from regard.host import usable_cores
from regard.tasks.data_folder import Contents, DataFolder
from regard.tasks.task import Reporter, Source
from regard.text.files.lines import Tally
from regard.text.vocabularies.vocabulary import Vocabulary

SIDES = ("inputs", "outputs")
TEST = "test.jsonl"


@dataclass(frozen=True, kw_only=True, slots=True)
class PairsSource(Source):
    """Pairs in files; validation and test sets are given or split off."""

    train: Corpus
    valid: Corpus | None = None
    test: Corpus | None = None
    languages: tuple[str, str]
    both_directions: bool = False
    """Whether each pair is learned both ways, with a token for the target language before each input."""
    language_tag: bool = False
    """Whether there is such a token also where there is one direction."""
    compared: tuple[int, ...] = (0, 1)
    """The sides whose texts must not be both trained on and held out."""

    @property
    def tags(self) -> Sequence[str]:
        """The languages that have a token."""
        return self.languages if self.both_directions or self.language_tag else ()

    def key(self) -> str:
        """A hash of everything that the prepared data depends on."""
        corpora = [each for each in (self.train, self.valid, self.test) if each is not None]
        given = [self.valid is not None, self.test is not None]
        columns = [part.columns for corpus in corpora for part in corpus.parts]
        settings = [self.vocab_size, self.max_tokens, self.seed, *given, *self.languages]
        settings += ["both directions"] if self.both_directions else []
        settings += ["language tag"] if self.language_tag else []
        settings += [self.subwords.hex()] if self.subwords else []
        paths = [path for corpus in corpora for path in corpus.paths]
        data = self.data_settings()
        if not data["cut_inputs"]:  # a key from before this setting existed stays valid
            del data["cut_inputs"]
        return content_key(paths, [*settings, columns, data])


def prepare_pairs(folder: Path, source: PairsSource, report: Reporter | None = None) -> None:
    """Prepare the data in a folder, unless it holds the same already."""
    report = report or Reporter()
    key, place = source.key(), _place(folder)
    if place.is_made_from(key) and (folder / TEST).is_file():
        return
    place.begin()
    facts = _write(place, source, key, report)
    place.finish(facts, key)


def read_pairs(folder: Path) -> tuple[Contents, list[Row]]:
    """What was prepared in a folder, and the test set."""
    contents = _place(folder).read()
    with (folder / TEST).open(encoding="utf-8") as lines:
        return contents, [tuple(json.loads(line)) for line in lines]


def _place(folder: Path) -> DataFolder:
    return DataFolder(folder, "report.json", plain_train_key=True)


def _write(place: DataFolder, source: PairsSource, key: str, report: Reporter) -> Mapping[str, Any]:
    """Write subwords, stores and test set; returns the report."""
    report(f"reading {', '.join(source.train.names)}")
    cleaned = _cleaned(source, scratch=place.path)
    left_out, unread = Tally(), Tally()
    valid, test = cleaned.held_out()
    valid = valid if source.valid is None else _validation(source.valid, source, left_out)
    test = test if source.test is None else list(source.test.rows(unread=unread))
    _report_unread(source, unread, report)
    warnings = _doubts(cleaned, valid, test, source)
    subwords = place.write_subwords(cleaned.texts(), source, report, source.tags)
    # One is for the token that starts or ends a sequence, one for the language.
    room = source.max_tokens - (2 if source.tags else 1)
    cut = Cutting(room) if source.data.cut_inputs else None
    valid, test = (
        _fitting(rows, name, subwords, room, report, cut)
        for rows, name in ((valid, "validation"), (test, "test"))
    )
    facts = make_report(
        cleaned,
        source.languages,
        validation=None if source.valid is None else len(valid),
        test=None if source.test is None else len(test),
        left_out=left_out,
        vocab_size=subwords.vocab_size,
    )
    facts.warnings += warnings
    report("encoding")
    rows = report.progress(cleaned.rows(), "encoding", cleaned.count(Fate.TRAINING))
    encode = row_encoder(subwords.encode, subwords.outputs.encode)
    encoded: Iterator[Example] = encode_in_threads(rows, encode, threads=min(4, usable_cores()))
    held_out: Iterable[Example] = encode(valid)
    if cut is not None:
        encoded, held_out = cut.inputs(encoded), [*Cutting(room).inputs(held_out)]
    for name, pairs in (("train", facts.measure(encoded, cleaned, room)), ("valid", held_out)):
        place.write_store(name, _directed(pairs, subwords, source), SIDES, key, subwords)
    facts.doubt_dropped()
    uncertainty = share_uncertainty if source.languages == SIDES else bleu_uncertainty
    sizes = {"validation": len(valid), "test": len(test)}
    facts.warnings += small_set_warning(sizes, facts.training, uncertainty)
    report(facts.as_text())
    for warning in facts.warnings:
        report(f"warning: {warning}")
    if cut is not None and cut.count:
        report(f"{counted(cut.count, 'input was', 'inputs were')} cut after {counted(room, 'token')}")
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in test)
    write_atomically(place.path / TEST, lines)
    return facts.as_dict()


def _directed(pairs: Iterable[Example], subwords: Vocabulary, source: PairsSource) -> Iterable[Example]:
    """The pairs as they are learned: one way or both, with the token of the target language."""
    tokens = [subwords.tag_id(language) for language in source.tags]
    if source.both_directions:
        return both_ways(pairs, tokens)
    return one_way(pairs, tokens[1]) if tokens else pairs


def _doubts(cleaned: Cleaned, valid: list[Row], test: list[Row], source: PairsSource) -> list[str]:
    """What looks wrong in the training set, and in the sets that were given."""
    spread = max(1, cleaned.count(Fate.TRAINING) // DOUBTED)
    sets = {"training": (source.train, [*islice(cleaned.rows(), 0, None, spread)])}
    if source.valid is not None:
        sets["validation"] = source.valid, valid[:DOUBTED]
    if source.test is not None:
        sets["test"] = source.test, test[:DOUBTED]
    return [
        f"the {name} set: {doubt}"
        for name, (corpus, rows) in sets.items()
        for doubt in pair_warnings(rows, source.languages, corpus.names)
    ]


def _report_unread(source: PairsSource, unread: Tally, report: Reporter) -> None:
    """Report the rows of a given test set that cannot be read."""
    if source.test is not None:
        unread.add_tally(source.test.skipped)
    for what, entry in unread.as_dict().items():
        rows = counted(entry["lines"], "row")
        report(f"{rows} of the test set left out: {what}; the first is {entry['first'][0]}")


def _cleaned(source: PairsSource, scratch: Path) -> Cleaned:
    split = HeldOutSizes(
        validation=source.data.valid_lines if source.valid is None else 0,
        test=source.data.test_lines if source.test is None else 0,
    )
    return clean(
        source.train,
        source.data,
        compared=source.compared,
        split=split,
        given=[each for each in (source.valid, source.test) if each is not None],
        seed=source.seed,
        scratch=scratch,
    )


def _validation(valid: Corpus, source: PairsSource, left_out: Tally) -> list[Row]:
    """The rows of a given validation set, without those whose texts a given test set has too.

    The best model is chosen by them; the test must not score a choice that it influenced.
    """
    sides, tests = source.compared, [source.test] if source.test else []
    rows = rows_apart(valid, known_texts(tests, sides, Tally()), sides, left_out)
    left_out.add_tally(valid.skipped)
    if not rows and left_out.total:
        raise CorpusError(
            f"{valid.names[0]}: every line is also in the test set; give another validation set",
            code="shared_rows",
        )
    return rows


@dataclass(slots=True)
class Cutting:
    """Cuts inputs that are too long, and counts them."""

    room: int
    count: int = 0

    def inputs(self, pairs: Iterable[Example]) -> Iterator[Example]:
        """The pairs, with at most `room` tokens in the input."""
        for first, second in pairs:
            self.count += len(first) > self.room
            yield first[: self.room], second


def _fitting(
    rows: list[Row], name: str, subwords: Vocabulary, room: int, report: Reporter, cut: Cutting | None
) -> list[Row]:
    """The rows of a held-out set that fit the model, whole or with the input cut; reports the others."""
    sides = (subwords, subwords.outputs)
    sizes = [[len(side.encode_one(text)) for side, text in zip(sides, row, strict=True)] for row in rows]
    limited = slice(0 if cut is None else 1, None)
    fit = [row for row, size in zip(rows, sizes, strict=True) if min(size) > 0 and max(size[limited]) <= room]
    if len(fit) < len(rows):
        less, of = len(rows) - len(fit), counted(len(rows), "line")
        report(f"{less:,} of {of} of the {name} set {'is' if less == 1 else 'are'} empty or too long")
    if not fit:
        raise CorpusError(
            f"no line of the {name} set can be used: all are empty or too long", code="no_usable_rows"
        )
    return fit
