"""Documents to learn writing from: a plain text file is one, as it stands; of a table, each row is one.

Blank lines of a file stay, and lines end with one line break each. Of a row, the columns asked for are the
document's lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from regard.data.cleaning.holding_out import HeldOutSizes
from regard.data.reading import Corpus, table_corpus, text_corpus
from regard.errors import CorpusError
from regard.text.files.lines import MEGABYTE, Tally, read_lines
from regard.text.files.tables import Column, table_kind
from regard.text.vocabularies.vocabulary import Vocabulary

STRETCH = 100_000
"""Characters, about, that are cut into subwords at once: a whole file would take much memory."""


@dataclass(frozen=True, slots=True)
class Documents:
    """Plain files or tables, all of one kind. Made by `open_documents`."""

    corpus: Corpus
    is_table: bool

    @property
    def paths(self) -> tuple[Path, ...]:
        """Every file, in order."""
        return self.corpus.paths

    @property
    def names(self) -> tuple[str, ...]:
        """Every file as messages call it."""
        return self.corpus.names

    @property
    def columns(self) -> list[Sequence[Column]]:
        """Of tables, which columns."""
        return [part.columns for part in self.corpus.parts]

    def read(self, empty: Tally | None = None) -> Iterator[str]:
        """Every document that is not empty; those that are, are counted.

        Raises:
            CorpusError: a file cannot be read, or has a line of a megabyte.
        """
        empty = Tally() if empty is None else empty
        if not self.is_table:
            yield from self._files(empty)
            return
        for block in self.corpus.blocks():
            for i, row in enumerate(zip(*block.columns, strict=True)):
                if i in block.spoilt or not any(row):
                    empty.add("empty", block.name, block.first + i)
                else:
                    yield "\n".join(row)

    def _files(self, empty: Tally) -> Iterator[str]:
        for path, name in zip(self.paths, self.names, strict=True):
            lines: list[str] = []
            for block in read_lines(path, name=name):
                if MEGABYTE in block.spoilt.values():
                    long = "has a line of a megabyte or more; break it into lines"
                    raise CorpusError(f"{name}:{block.first + min(block.spoilt)}: {long}")
                lines += block.columns[0]
            text = "\n".join(lines)
            if text.strip():
                yield text
            else:
                empty.add("empty", name, 1)


def open_documents(*paths: Path | str, columns: Sequence[Column] = ()) -> Documents:
    """Documents from plain text files, or from tables with these columns.

    Raises:
        CorpusError: a file is missing, a directory or given twice; of two kinds; or columns are missing.
    """
    tables = [path for path in paths if table_kind(path) is not None]
    if tables and not columns:
        which = "say --columns, as in --columns 3 by number or --columns title,text by name"
        raise CorpusError(f"{tables[0]}: which columns make up a document? {which}")
    if columns and len(tables) < len(paths):
        others = ", ".join(str(path) for path in paths if path not in tables)
        raise CorpusError(f"{others}: --columns is for tables, whose names end in .tsv or .jsonl")
    if columns:
        return Documents(table_corpus(*paths, columns=columns), is_table=True)
    return Documents(text_corpus(*paths), is_table=False)


def split_documents(
    source: Documents, n_held_out: int | None, seed: int, empty: Tally | None = None
) -> tuple[list[str], list[str]]:
    """Documents to train on and to validate with, drawn from tables, or taken from the end of each file.

    Args:
        source: the documents.
        n_held_out: documents of tables, or lines of each file; none for one in 50, at most 2,000.
        seed: which are drawn.
        empty: where empty documents are counted.

    Raises:
        CorpusError: nothing would be left to train on.
    """
    found = list(source.read(empty))
    if source.is_table:
        held_out, _ = HeldOutSizes(validation=n_held_out, test=0).sizes(len(found))
        drawn = {*np.random.default_rng(seed).permutation(len(found))[:held_out].tolist()}
        rest = [document for i, document in enumerate(found) if i not in drawn]
        return rest, [found[i] for i in sorted(drawn)]
    halves = [_cut_end(text, n_held_out) for text in found]
    return [head for head, _ in halves], [tail for _, tail in halves]


def _cut_end(text: str, n_lines: int | None) -> tuple[str, str]:
    """A file without its last lines, and those."""
    lines = text.split("\n")
    held_out, _ = HeldOutSizes(validation=n_lines, test=0).sizes(len(lines))
    head, tail = "\n".join(lines[:-held_out]), "\n".join(lines[-held_out:])
    if not head.strip() or not tail.strip():
        raise CorpusError("the text is too short, or too blank at its end, to hold a part out; give --valid")
    return head, tail


def encode_document(subwords: Vocabulary, text: str) -> np.ndarray:
    """The ids of a document, however long it is."""
    # What follows a line break is cut for itself; but every text is given a space in front, to be taken out.
    space = len(subwords.encode_one("\n")) - 1
    first, *others = _stretches(text)
    ids = [subwords.encode_one(first), *(subwords.encode_one(each)[space:] for each in others)]
    return np.concatenate(ids)


def _stretches(text: str) -> Iterator[str]:
    """Parts of a text, each but the first beginning with a line break."""
    start = 0
    while start + STRETCH < len(text):
        end = text.find("\n", start + STRETCH)
        if end < 0:
            break
        yield text[start:end]
        start = end
    yield text[start:]
