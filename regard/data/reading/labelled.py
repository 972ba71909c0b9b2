"""Tables of labels and texts: TSV with the label first, or with a header; or JSONL: `label` and `text`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from regard.config.checking import counted
from regard.data.reading import Corpus, refuse_repeated, table_corpus, text_corpus
from regard.errors import CorpusError, RequestError
from regard.text.files.lines import read_lines
from regard.text.files.tables import Column, json_object, names_in, table_kind, table_kind_by_content

NAMES = ("label", "text")


def labelled_corpus(*paths: Path | str, columns: Sequence[Column] = ()) -> Corpus:
    """A corpus of labels and texts, in these two columns, or in the usual ones.

    Raises:
        CorpusError: a file is missing, or lacks the usual columns.
    """
    return _joined([table_corpus(path, columns=columns or _usual(path)) for path in refuse_repeated(paths)])


def unlabelled_corpus(*paths: Path | str, columns: Sequence[Column] = ()) -> Corpus:
    """A corpus of texts alone: lines of plain files, and the texts of tables as above.

    Raises:
        CorpusError: a file is missing, or lacks the usual columns.
    """
    return _joined(
        [
            text_corpus(path)
            if table_kind(path) is None
            else table_corpus(path, columns=(columns or _usual(path))[1:])
            for path in refuse_repeated(paths)
        ]
    )


def split_labels(cell: str, separator: str | None) -> list[str]:
    """The labels of a cell without duplicates; one label if there is no separator."""
    if separator is None:
        return [cell]
    return list(dict.fromkeys(label for part in cell.split(separator) if (label := part.strip())))


def _joined(corpora: list[Corpus]) -> Corpus:
    return Corpus(tuple(part for corpus in corpora for part in corpus.parts))


def _usual(path: Path | str) -> Sequence[Column]:
    """The usual columns of label and text.

    Raises:
        CorpusError: the table has others, so that the choice is unclear.
    """
    is_jsonl = (table_kind(path) or table_kind_by_content(path)) == "jsonl"
    number, line = _first_line(path) if Path(path).is_file() else (0, "")
    if not line:
        return NAMES if is_jsonl else (1, 2)
    try:
        fields = names_in(json_object(line)) if is_jsonl else line.split("\t")
    except RequestError as error:
        raise CorpusError(f"{path}:{number}: {error}", code=error.code) from None
    if set(NAMES) <= set(fields):
        return NAMES  # in a TSV, this is a header
    if len(fields) == len(NAMES) and not is_jsonl:
        return 1, 2
    raise CorpusError(f"{path}:{number}: {_unusual(fields, is_jsonl=is_jsonl)}", code="unclear_columns")


def _first_line(path: Path | str) -> tuple[int, str]:
    """The first line that is not blank, and its number."""
    lines = (pair for block in read_lines(path) for pair in enumerate(block.columns[0], block.first))
    return next(((number, line) for number, line in lines if line.strip()), (0, ""))


def _unusual(fields: list[str], *, is_jsonl: bool) -> str:
    if is_jsonl:
        problem = f"there are no fields label and text; the fields are {', '.join(fields)}"
        return f"{problem}; choose two, the label first, as in --columns class,body"
    if len(fields) == 1 and "," in fields[0]:
        return "has no tab; tabs separate fields, not commas"
    problem = f"has {counted(len(fields), 'field')} instead of a label and a text"
    return f"{problem}; choose columns by number or by name, as in --columns 1,3"
