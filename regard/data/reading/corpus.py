"""Corpora: the files that a model is trained on, as rows of texts, read as often as one likes.

A row is one example: a pair of texts from two files in step, a text from one file, or some columns of a
table. Rows come in blocks, which know their file and line numbers, so that every problem can be told with its
place. Texts come without the spaces around them.

A corpus is read more than once (to clean it, to learn subwords, to encode it). Standard input and other pipes
can be read only once, so they are copied first (`spool.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

from regard.data.reading.spool import temporary_copy
from regard.errors import CorpusError
from regard.text.files.in_step import read_in_step
from regard.text.files.lines import Block, OnInvalid
from regard.text.files.opening import STDIN, name_of, path_problem
from regard.text.files.tables import Column, Kind, kind_of, read_table
from regard.text.files.tally import Tally

Row = tuple[str, ...]
"""The texts of one example, one a side."""


@dataclass(frozen=True, slots=True)
class Part:
    """A table, or files that are read in step."""

    paths: tuple[Path, ...]
    names: tuple[str, ...]
    """What messages call the files."""
    columns: tuple[Column, ...] = ()
    """Of a table, which columns; empty for files in step."""
    kind: Kind | None = None
    line_column: Column | None = None
    """Of a table that was made from the file of that name: which column has the number of the line."""

    @property
    def n_sides(self) -> int:
        """How many texts a row has."""
        return len(self.columns or self.paths)

    def blocks(self, repairs: Tally, on_invalid: OnInvalid) -> Iterator[Block]:
        """The rows, in blocks."""
        if not self.columns:
            return read_in_step(self.paths, repairs, names=self.names, on_invalid=on_invalid)
        (path,), (name,) = self.paths, self.names
        number = () if self.line_column is None else (self.line_column,)
        columns = (*self.columns, *number)
        blocks = read_table(path, columns, repairs, kind=self.kind, name=name, on_invalid=on_invalid)
        return map(_made_from, blocks) if number else blocks


@dataclass(frozen=True, slots=True)
class Corpus:
    """Rows of texts in files. Made by `parallel`, `plain` and `table`."""

    parts: tuple[Part, ...]
    on_invalid: OnInvalid = "refuse"
    """What to do about a line that is not UTF-8: refuse the file, or drop the line and count it."""

    @property
    def n_sides(self) -> int:
        """How many texts a row has: two for pairs."""
        return self.parts[0].n_sides

    @property
    def paths(self) -> tuple[Path, ...]:
        """Every file, in order: what the content of the corpus is told by."""
        return tuple(path for part in self.parts for path in part.paths)

    @property
    def names(self) -> tuple[str, ...]:
        """Every file as messages call it."""
        return tuple(name for part in self.parts for name in part.names)

    def blocks(self, repairs: Tally | None = None) -> Iterator[Block]:
        """Every row, in blocks, with those that are spoilt; from the beginning at each call.

        Raises:
            CorpusError: a file is empty, cannot be read or is not UTF-8; files are of different length.
        """
        repairs = Tally() if repairs is None else repairs
        for part in self.parts:
            empty = True
            for block in part.blocks(repairs, self.on_invalid):
                stripped = tuple([text.strip() for text in column] for column in block.columns)
                yield replace(block, columns=stripped)
                empty = False
            if empty:
                rows = "has no rows" if part.columns else "is empty"
                raise CorpusError(f"{part.names[0]}: the file {rows}")

    def rows(self, repairs: Tally | None = None) -> Iterator[Row]:
        """Every row that is not spoilt, empty texts and all."""
        for block in self.blocks(repairs):
            for i, row in enumerate(zip(*block.columns, strict=True)):
                if i not in block.spoilt:
                    yield row


def parallel(
    *paths: Path | str, scratch: Path | str | None = None, on_invalid: OnInvalid = "refuse"
) -> Corpus:
    """A corpus from files in step: line i of the first belongs to line i of the others.

    Args:
        paths: one file a side, plain or packed; `-` is standard input.
        scratch: the folder for a copy of standard input; by default the system's.
        on_invalid: what to do about a line that is not UTF-8.

    Raises:
        CorpusError: a file is missing, a directory or given twice; all such problems at once.
    """
    return Corpus((Part(*_files(paths, scratch)),), on_invalid)


def plain(*paths: Path | str, scratch: Path | str | None = None, on_invalid: OnInvalid = "refuse") -> Corpus:
    """A corpus of single texts, one a line: all the lines of the first file, then those of the next.

    Raises:
        CorpusError: a file is missing, a directory or given twice; all such problems at once.
    """
    files = zip(*_files(once(paths), scratch), strict=True)
    return Corpus(tuple(Part((path,), (name,)) for path, name in files), on_invalid)


def table(
    *paths: Path | str,
    columns: Sequence[Column],
    kind: Kind | None = None,
    scratch: Path | str | None = None,
    on_invalid: OnInvalid = "refuse",
) -> Corpus:
    """A corpus from tables, TSV or JSONL: these columns of all of them, by name, or by number without a head.

    Raises:
        CorpusError: a file is missing, a directory or given twice; all such problems at once.
    """
    if not columns or len({type(column) for column in columns}) > 1:
        raise CorpusError("the columns of a table are asked for by name, or all by number")
    files = zip(*_files(once(paths), scratch), paths, strict=True)
    return Corpus(
        tuple(Part((p,), (name,), tuple(columns), kind or kind_of(given)) for p, name, given in files),
        on_invalid,
    )


def made(paths: Mapping[Path, Path | str], columns: Sequence[Column], line_column: Column) -> Corpus:
    """A corpus from tables of ours, JSONL, each made from a file by whose name and lines messages call it."""
    return Corpus(
        tuple(
            Part((path,), (name_of(origin),), tuple(columns), "jsonl", line_column)
            for path, origin in paths.items()
        )
    )


def once(paths: Sequence[Path | str]) -> Sequence[Path | str]:
    """The same files; raises CorpusError where one is given twice."""
    for first, second in combinations(map(Path, paths), 2):
        if first == second:
            raise CorpusError(f"{name_of(second)}: is given twice")
        if first.is_file() and second.is_file() and first.samefile(second):
            raise CorpusError(f"{second}: is given twice, as {first}, too")
    return paths


def refuse_shared_files(corpora: Mapping[str, Corpus]) -> None:
    """Raise if two corpora, such as training and validation, have a file in common.

    Raises:
        CorpusError: with every such file.
    """
    problems = [
        f"{name}: is given for {one} and for {other}; what a model was trained on cannot score it"
        for (one, first), (other, second) in combinations(corpora.items(), 2)
        for path, name in zip(first.paths, first.names, strict=True)
        if any(path.samefile(another) for another in second.paths)
    ]
    if problems:
        raise CorpusError("\n".join(problems))


def _made_from(block: Block) -> Block:
    """A block whose last column tells which lines its rows were made from."""
    *columns, numbers = block.columns
    return replace(block, columns=tuple(columns), made_from=[*map(int, numbers)])


def _files(
    paths: Iterable[Path | str], scratch: Path | str | None
) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    """The files of a corpus and their names, all of them there, none twice, and all fit to be read again."""
    files = [Path(path) for path in paths]
    assert files, "a corpus needs a file"
    problems = [problem for path in dict.fromkeys(files) if (problem := path_problem(path))]
    if not problems:
        problems = [
            f"{name_of(second)}: is the same file as {name_of(first)}; each side needs a file of its own"
            for first, second in combinations(files, 2)
            if first == second or (STDIN not in (str(first), str(second)) and first.samefile(second))
        ]
    if problems:
        raise CorpusError("\n".join(problems))
    kept = tuple(path if path.is_file() else temporary_copy(path, scratch) for path in files)
    return kept, tuple(name_of(path) for path in files)
