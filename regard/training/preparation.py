"""From text files to what a run learns from: cleaned, in subwords, in token stores.

    DATA/subwords.model     the subword model
    DATA/train, DATA/valid  token stores
    DATA/test.jsonl         what was kept to test with, as text, a pair a line
    DATA/text/              what came from standard input, or is built in, as files
    DATA/report.json        what was dropped and repaired, and how long things are
    DATA/key                a hash of the files and settings that all of this was made from, written last

When the key is the one that the files have now, everything is taken as it lies there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from itertools import chain, islice
from pathlib import Path

from regard.config import DataConfig
from regard.config.checking import counted
from regard.data.cleaning import Cleaned, clean
from regard.data.cleaning.holding_out import Fate, HeldOutSizes, known_texts, rows_apart
from regard.data.cleaning.report import SAMPLED as DOUBTED
from regard.data.cleaning.report import make_report, pair_warnings
from regard.data.reading import Corpus, Row
from regard.data.store import Example, Store, find_store
from regard.data.store.writing import (
    both_ways,
    content_key,
    encode_in_threads,
    one_way,
    row_encoder,
    write_store,
)
from regard.durable import write_atomically
from regard.errors import CorpusError
from regard.host import usable_cores
from regard.text.files.lines import Tally
from regard.text.vocabularies import read_vocabulary
from regard.text.vocabularies.subwords import learn_subwords
from regard.text.vocabularies.vocabulary import Vocabulary, unseen_characters
from regard.training.checkpoints.folder import KEY
from regard.training.lesson import PairsData

SIDES = ("inputs", "outputs")
SUBWORDS, TEST = "subwords.model", "test.jsonl"
SAMPLED = 10_000
"""Texts whose characters are looked up in subwords that were not learned from them."""
Tell = Callable[[str], None]
Follow = Callable[[Iterator[Row], int], Iterator[Row]]
"""Lets so many rows pass, one after another, and shows how far they have come."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PairsSource:
    """What to train on: pairs in files, with validation and test sets that are given or split off."""

    train: Corpus
    valid: Corpus | None = None
    test: Corpus | None = None
    languages: tuple[str, str]
    both_directions: bool = False
    """Whether each pair is learned from there and back, with tags that say which language is wanted."""
    language_tag: bool = False
    """Whether there is such a tag one way, too."""
    compared: tuple[int, ...] = (0, 1)
    """The sides whose texts must not be both trained on and held out."""
    vocab_size: int | None = None
    """None: chosen from the data."""
    subwords: bytes | None = None
    """A vocabulary that is there already; None: it is learned."""
    max_tokens: int
    """Longest sequence, in tokens."""
    seed: int = 1
    data: DataConfig = field(default_factory=DataConfig)
    """What is dropped, and how much is held out."""

    def key(self) -> str:
        """A hash of all that the result depends on."""
        corpora = [each for each in (self.train, self.valid, self.test) if each is not None]
        given = [self.valid is not None, self.test is not None]
        columns = [part.columns for corpus in corpora for part in corpus.parts]
        settings = [self.vocab_size, self.max_tokens, self.seed, *given, *self.languages]
        settings += ["both directions"] if self.both_directions else []
        settings += ["language tag"] if self.language_tag else []
        settings += [self.subwords.hex()] if self.subwords else []
        paths = [path for corpus in corpora for path in corpus.paths]
        data = asdict(self.data)
        if not data["cut_inputs"]:  # runs that began before there was this setting go on
            del data["cut_inputs"]
        return content_key(paths, [*settings, columns, data])


@dataclass(frozen=True, eq=False)
class Prepared:
    """Data that is ready to be trained on, and to be tested with."""

    data: PairsData
    subwords: Vocabulary
    test: list[Row]


def prepare_pairs(
    folder: Path,
    source: PairsSource,
    tell: Tell = lambda _: None,
    follow: Follow = lambda rows, _: rows,
) -> Prepared:
    """Prepare the data in a folder, or take what was prepared there from the same files before."""
    key, file = source.key(), folder / KEY
    stored = _stored(folder, key) if key_of(folder) == key else None
    if stored is None:
        folder.mkdir(parents=True, exist_ok=True)
        file.unlink(missing_ok=True)
        _prepare(folder, source, key, tell, follow)
        write_atomically(file, key)
    return prepared_pairs(folder)


def prepared_pairs(folder: Path) -> Prepared:
    """What was prepared in a folder, perhaps by another process."""
    key = key_of(folder)
    stored = None if key is None else _stored(folder, key)
    if stored is None:
        raise CorpusError(f"{folder}: nothing is prepared there; all processes must see the same folder")
    train, valid = stored
    subwords = read_vocabulary((folder / SUBWORDS).read_bytes())
    with (folder / TEST).open(encoding="utf-8") as lines:
        test = [tuple(json.loads(line)) for line in lines]
    bos, eos = subwords.bos_id, subwords.eos_id
    return Prepared(PairsData(train, valid, bos=bos, eos=eos, subwords=subwords.model), subwords, test)


def tell_unseen(subwords: Vocabulary, texts: Iterable[str], tell: Tell) -> None:
    """Say which characters of texts the subwords of a model that was there before have only as bytes."""
    characters = set(chain.from_iterable(islice(texts, SAMPLED)))
    if unseen := unseen_characters(subwords, "".join(sorted(characters))):
        told = (
            f"{len(unseen):,} of {len(characters):,} characters are in no subword of the model to start from"
        )
        tell(f"{told}, and are read as bytes: {' '.join(unseen[:20])}")


def key_of(folder: Path) -> str | None:
    """The key of what was prepared in a folder; None where nothing is finished."""
    file = folder / KEY
    return file.read_text(encoding="utf-8") if file.is_file() else None


def _stored(folder: Path, key: str) -> tuple[Store, Store] | None:
    """Both stores, if everything that was prepared is still there."""
    train, valid = find_store(folder / "train", key), find_store(folder / "valid", f"{key}-valid")
    there = (folder / SUBWORDS).is_file() and (folder / TEST).is_file()
    return (train, valid) if there and train is not None and valid is not None else None


def _prepare(folder: Path, source: PairsSource, key: str, tell: Tell, follow: Follow) -> None:
    tell(f"reading {', '.join(source.train.names)}")
    cleaned = _cleaned(source, scratch=folder)
    left_out = Tally()
    valid, test = cleaned.held_out()
    valid = valid if source.valid is None else _validation(source.valid, source, left_out)
    test = test if source.test is None else list(source.test.rows())
    _tell_doubts(cleaned, valid, test, source, tell)
    tags = source.languages if source.both_directions or source.language_tag else ()
    model = source.subwords
    if model is None:
        tell("learning subwords")
        model = learn_subwords(
            cleaned.texts(),
            source.vocab_size,
            tags=tags,
            coverage=source.data.character_coverage,
            seed=source.seed,
        )
    subwords = read_vocabulary(model)
    if source.subwords is not None:
        tell_unseen(subwords, cleaned.texts(), tell)
    (folder / SUBWORDS).write_bytes(model)
    # One is for the token that ends a sequence, or starts it; one for a tag.
    room = source.max_tokens - (2 if tags else 1)
    cut = Cutting(room) if source.data.cut_inputs else None
    valid, test = (
        _fitting(rows, name, subwords, room, tell, cut)
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
    tell("encoding")
    rows = follow(cleaned.rows(), cleaned.count(Fate.TRAINING))
    encode = row_encoder(subwords.encode, subwords.outputs.encode)
    threads = min(4, usable_cores())
    encoded: Iterator[Example] = encode_in_threads(rows, encode, threads=threads)
    held_out: Iterable[Example] = encode(valid)
    if cut is not None:
        encoded, held_out = cut.first_sides(encoded), [*Cutting(room).first_sides(held_out)]
    train = facts.measure(encoded, cleaned, room)
    for name, of, pairs in (("train", key, train), ("valid", f"{key}-valid", held_out)):
        examples = _tagged(pairs, [subwords.tag_id(language) for language in tags], source)
        write_store(folder / name, examples, sides=SIDES, key=of, vocab_size=subwords.vocab_size)
    write_atomically(folder / "report.json", json.dumps(facts.as_dict(), ensure_ascii=False, indent=1))
    tell(facts.as_text())
    if cut is not None and cut.count:
        tell(f"{counted(cut.count, 'input was', 'inputs were')} cut after {counted(room, 'token')}")
    write_atomically(folder / TEST, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in test))


def _tagged(pairs: Iterable[Example], tags: list[int], source: PairsSource) -> Iterable[Example]:
    """The pairs as they are learned: one way or both, with a tag where the source has them."""
    if source.both_directions:
        return both_ways(pairs, tags)
    return one_way(pairs, tags[1]) if tags else pairs


def _tell_doubts(
    cleaned: Cleaned, valid: list[Row], test: list[Row], source: PairsSource, tell: Tell
) -> None:
    """Ask about what is trained on, and about the sets that were given."""
    spread = max(1, cleaned.count(Fate.TRAINING) // DOUBTED)
    sets = {"training": [*islice(cleaned.rows(), 0, None, spread)]}
    sets |= {"validation": valid[:DOUBTED]} if source.valid is not None else {}
    sets |= {"test": test[:DOUBTED]} if source.test is not None else {}
    for name, rows in sets.items():
        for doubt in pair_warnings(rows, source.languages):
            tell(f"the {name} set: {doubt}")


def _cleaned(source: PairsSource, scratch: Path) -> Cleaned:
    given = [each for each in (source.valid, source.test) if each is not None]
    data = source.data
    split = HeldOutSizes(
        validation=data.valid_lines if source.valid is None else 0,
        test=data.test_lines if source.test is None else 0,
    )
    return clean(
        source.train,
        data,
        compared=source.compared,
        split=split,
        given=given,
        seed=source.seed,
        scratch=scratch,
    )


def _validation(valid: Corpus, source: PairsSource, left_out: Tally) -> list[Row]:
    """The rows of a validation set that is given, without those whose texts a given test set has too.

    The best model is chosen by them: the test would score a choice that it helped to make.
    """
    sides, tests = source.compared, [source.test] if source.test else []
    rows = rows_apart(valid, known_texts(tests, sides, Tally()), sides, left_out)
    if not rows and left_out.total:
        raise CorpusError(f"{valid.names[0]}: every line of it is in the test set too; give another")
    return rows


@dataclass(slots=True)
class Cutting:
    """Cuts inputs that are too long, and counts them."""

    room: int
    count: int = 0

    def first_sides(self, pairs: Iterable[Example]) -> Iterator[Example]:
        """The pairs, with no more than so many tokens on the first side."""
        for first, second in pairs:
            self.count += len(first) > self.room
            yield first[: self.room], second


def _fitting(
    rows: list[Row], name: str, subwords: Vocabulary, room: int, tell: Tell, cut: Cutting | None
) -> list[Row]:
    """The rows of a held-out set that a model can take, cut or whole; how many it cannot is said."""
    sides = (subwords, subwords.outputs)
    sizes = [[len(side.encode_one(text)) for side, text in zip(sides, row, strict=True)] for row in rows]
    limited = slice(0 if cut is None else 1, None)
    fit = [row for row, size in zip(rows, sizes, strict=True) if min(size) > 0 and max(size[limited]) <= room]
    if len(fit) < len(rows):
        less, of = len(rows) - len(fit), counted(len(rows), "line")
        tell(f"{less:,} of {of} of the {name} set {'is' if less == 1 else 'are'} empty or too long")
    if not fit:
        raise CorpusError(f"no line of the {name} set can be used: all are empty or too long")
    return fit
