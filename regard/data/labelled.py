"""Tables of a label and a text: TSV, the label first, or TSV with a head or JSONL with `label` and `text`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from regard.data.corpus import Corpus, plain, table
from regard.errors import CorpusError
from regard.text.lines import read_lines
from regard.text.tables import Column, kind_of

NAMES = ("label", "text")


def labelled(*paths: Path | str, columns: Sequence[Column] = ()) -> Corpus:
    """A corpus of labels and texts, by these two columns, or by those that are usual.

    Raises:
        CorpusError: a file is missing, or has not the columns that are usual.
    """
    return _joined([table(path, columns=columns or _usual(path)) for path in _once(paths)])


def unlabelled(*paths: Path | str, columns: Sequence[Column] = ()) -> Corpus:
    """A corpus of texts alone: lines of plain files, and the second column of tables as above.

    Raises:
        CorpusError: a file is missing, or has not the columns that are usual.
    """
    return _joined(
        [
            plain(path) if kind_of(path) is None else table(path, columns=(columns or _usual(path))[1:])
            for path in _once(paths)
        ]
    )


def labels_in(cell: str, separator: str | None) -> list[str]:
    """The labels of a row, each once; without a separator, it has one."""
    if separator is None:
        return [cell]
    return list(dict.fromkeys(label for part in cell.split(separator) if (label := part.strip())))


def _joined(corpora: list[Corpus]) -> Corpus:
    return Corpus(tuple(part for corpus in corpora for part in corpus.parts))


def _once(paths: Sequence[Path | str]) -> Sequence[Path | str]:
    if twice := [str(path) for i, path in enumerate(paths) if path in paths[:i]]:
        raise CorpusError(f"{twice[0]}: is given twice")
    return paths


def _usual(path: Path | str) -> Sequence[Column]:
    if kind_of(path) == "jsonl":
        return NAMES
    # A table with more columns may have label and text anywhere: nobody should have to guess.
    for block in islice(read_lines(path) if Path(path).is_file() else [], 1):
        fields = block.columns[0][0].split("\t")
        n_fields = len(fields)
        if set(NAMES) <= set(fields):
            return NAMES  # a head, and no text that is labelled "label"
        if n_fields != len(NAMES):
            wanted = "a label and a text are wanted, parted by a tab"
            ways = "say which columns they are, by number or by name, as in --columns 1,3"
            raise CorpusError(f"{path}:1: has {n_fields} field{'s' * (n_fields != 1)}, and {wanted}; {ways}")
    return 1, 2
