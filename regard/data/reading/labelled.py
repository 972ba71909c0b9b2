"""Tables of labels and texts: in the columns `label` and `text`, or without a header with the label first."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from regard.data.reading import Corpus, refuse_repeated, table_corpus, text_corpus
from regard.data.reading.columns import label_columns
from regard.text.files.lines import OnInvalid
from regard.text.files.tables import Column, table_kind


def labelled_corpus(
    *paths: Path | str, columns: Sequence[Column] = (), on_invalid: OnInvalid = "refuse"
) -> Corpus:
    """A corpus of labels and texts, in these two columns, or in the usual ones.

    Raises:
        CorpusError: a file is missing, or lacks the usual columns.
    """
    return _joined(
        [
            table_corpus(path, columns=columns or label_columns(path), on_invalid=on_invalid)
            for path in refuse_repeated(paths)
        ],
        on_invalid,
    )


def unlabelled_corpus(
    *paths: Path | str, columns: Sequence[Column] = (), on_invalid: OnInvalid = "refuse"
) -> Corpus:
    """A corpus of texts alone: lines of plain files, and the texts of tables as above.

    Raises:
        CorpusError: a file is missing, or lacks the usual columns.
    """
    return _joined(
        [
            text_corpus(path, on_invalid=on_invalid)
            if table_kind(path) is None
            else table_corpus(path, columns=(columns or label_columns(path))[1:], on_invalid=on_invalid)
            for path in refuse_repeated(paths)
        ],
        on_invalid,
    )


def split_labels(cell: str, separator: str | None) -> list[str]:
    """The labels of a cell without duplicates; one label if there is no separator."""
    if separator is None:
        return [cell]
    return list(dict.fromkeys(label for part in cell.split(separator) if (label := part.strip())))


def _joined(corpora: list[Corpus], on_invalid: OnInvalid) -> Corpus:
    return Corpus(tuple(part for corpus in corpora for part in corpus.parts), on_invalid)
