"""Documents for language models: a plain text file is one document; each row of a table is one.

Blank lines of a file are kept, and every line ends with one line break. The columns of a row are the lines of
its document.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from regard.data.cleaning.holding_out import HeldOutSizes
from regard.data.reading import Corpus, refuse_repeated, table_corpus, text_corpus
from regard.data.reading.columns import document_columns
from regard.errors import CorpusError
from regard.text.files.lines import MEGABYTE, OnInvalid, Tally, read_lines
from regard.text.files.tables import TABLE_SUFFIXES, Column, table_kind
from regard.text.vocabularies.vocabulary import Vocabulary

STRETCH = 100_000
"""Approximate number of characters encoded at once: a whole file would need much memory."""


@dataclass(frozen=True, slots=True)
class Documents:
    """Documents in plain files or in tables; see `open_documents`."""

    corpus: Corpus
    is_table: bool

    @property
    def paths(self) -> tuple[Path, ...]:
        """All files, in order."""
        return self.corpus.paths

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all files in messages."""
        return self.corpus.names

    @property
    def columns(self) -> list[Sequence[Column]]:
        """The columns of each table."""
        return [part.columns for part in self.corpus.parts]

    def read(self, empty: Tally | None = None) -> Iterator[str]:
        """All documents that are not empty; empty and unreadable ones are counted.

        Raises:
            CorpusError: a file cannot be read, or has a line of a megabyte.
        """
        empty = Tally() if empty is None else empty
        if not self.is_table:
            yield from self._files(empty)
            return
        repairs = Tally()
        for block in self.corpus.blocks(repairs):
            for i, row in enumerate(zip(*block.columns, strict=True)):
                if i in block.unusable or not any(row):
                    empty.add(block.unusable.get(i, "empty"), block.name, block.line(i))
                else:
                    yield "\n".join(row)
        for note in repairs.notes:
            empty.note(note)

    def _files(self, empty: Tally) -> Iterator[str]:
        for path, name in zip(self.paths, self.names, strict=True):
            lines: list[str] = []
            repairs = Tally()
            for block in read_lines(path, repairs, name=name, on_invalid=self.corpus.on_invalid):
                if MEGABYTE in block.unusable.values():
                    problem = "the line has a megabyte or more; break it into shorter lines"
                    place = f"{name}:{block.first + min(block.unusable)}"
                    raise CorpusError(f"{place}: {problem}", code="line_too_long")
                for i, why in block.unusable.items():
                    empty.add(why, name, block.line(i))
                lines += [text for i, text in enumerate(block.columns[0]) if i not in block.unusable]
            for note in repairs.notes:
                empty.note(note)
            text = "\n".join(lines)
            if text.strip():
                yield text
            else:
                empty.add("empty", name, 1)


def open_documents(
    *paths: Path | str, columns: Sequence[Column] = (), on_invalid: OnInvalid = "refuse"
) -> Documents:
    """Documents in plain text files; or in tables, in these columns or in the usual one.

    Raises:
        CorpusError: a file is missing, a directory or given twice; or columns are missing or superfluous.
    """
    tables = [path for path in paths if table_kind(path) is not None]
    others = ", ".join(str(path) for path in paths if path not in tables)
    if columns and others:
        problem = f"{others}: --columns is for tables, whose names end in {TABLE_SUFFIXES}"
        raise CorpusError(problem, code="unexpected_columns")
    if tables and others:
        problem = f"{tables[0]} is a table, and {others} is plain text: train on one kind of file"
        raise CorpusError(problem, code="bad_files")
    if not tables:
        return Documents(text_corpus(*paths, on_invalid=on_invalid), is_table=False)
    corpora = [
        table_corpus(path, columns=columns or document_columns(path), on_invalid=on_invalid)
        for path in refuse_repeated(paths)
    ]
    parts = tuple(part for corpus in corpora for part in corpus.parts)
    return Documents(Corpus(parts, on_invalid), is_table=True)


def split_documents(
    source: Documents, n_held_out: int | None, seed: int, empty: Tally | None = None
) -> tuple[list[str], list[str]]:
    """Documents for training and for validation: random rows of tables, or the end of each plain file.

    Args:
        source: the documents.
        n_held_out: rows of tables, or lines of each file; by default one in 50, at most 2,000.
        seed: which rows are drawn.
        empty: counts the empty documents.

    Raises:
        CorpusError: nothing would be left to train on.
    """
    texts = list(source.read(empty))
    if source.is_table:
        held_out, _ = HeldOutSizes(validation=n_held_out, test=0).sizes(len(texts))
        drawn = {*np.random.default_rng(seed).permutation(len(texts))[:held_out].tolist()}
        rest = [text for i, text in enumerate(texts) if i not in drawn]
        return rest, [texts[i] for i in sorted(drawn)]
    halves = [_cut_end(text, n_held_out) for text in texts]
    return [head for head, _ in halves], [tail for _, tail in halves]


def _cut_end(text: str, n_lines: int | None) -> tuple[str, str]:
    """A file without its last lines, and its last lines."""
    lines = text.split("\n")
    held_out, _ = HeldOutSizes(validation=n_lines, test=0).sizes(len(lines))
    head, tail = "\n".join(lines[:-held_out]), "\n".join(lines[-held_out:])
    if not head.strip() or not tail.strip():
        problem = "the text is too short, or too blank at its end, to hold out a part; give --valid"
        raise CorpusError(problem, code="too_little_data")
    return head, tail


def encode_document(subwords: Vocabulary, text: str) -> np.ndarray:
    """The ids of a document of any length."""
    # Text after a line break is encoded independently; but every text gets a leading space, removed here.
    space = len(subwords.encode_one("\n")) - 1
    first, *others = _stretches(text)
    ids = [subwords.encode_one(first), *(subwords.encode_one(part)[space:] for part in others)]
    return np.concatenate(ids)


def _stretches(text: str) -> Iterator[str]:
    """Parts of a text; all but the first begin with a line break."""
    start = 0
    while start + STRETCH < len(text):
        end = text.find("\n", start + STRETCH)
        if end < 0:
            break
        yield text[start:end]
        start = end
    yield text[start:]
