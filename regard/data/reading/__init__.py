"""Corpora: the files that a model is trained on, as rows of texts, read as often as one likes.

A row is one example: a pair of texts from two files in step, a text from one file, or some columns of a
table. Rows come in blocks, which know their file and line numbers, so that every problem can be told with its
place. Texts come without the spaces around them.

A corpus is read more than once (to clean it, to learn subwords, to encode it). Standard input and other pipes
can be read only once, so they are copied first (`spool.py`).
"""

from __future__ import annotations

import atexit
import gzip
import hashlib
import io
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

from regard.errors import CorpusError
from regard.text.files import STDIN, display_name, open_unpacked, path_problem
from regard.text.files.lines import Block, OnInvalid, Tally
from regard.text.files.parallel import read_parallel
from regard.text.files.tables import Column, TableKind, read_table, table_kind

Row = tuple[str, ...]
"""The texts of one example, one a side."""


@dataclass(frozen=True, slots=True)
class CorpusPart:
    """A table, or files that are read in step."""

    paths: tuple[Path, ...]
    names: tuple[str, ...]
    """What messages call the files."""
    columns: tuple[Column, ...] = ()
    """Of a table, which columns; empty for files in step."""
    kind: TableKind | None = None
    line_column: Column | None = None
    """Of a table that was made from the file of that name: which column has the number of the line."""

    @property
    def n_sides(self) -> int:
        """How many texts a row has."""
        return len(self.columns or self.paths)

    def blocks(self, repairs: Tally, on_invalid: OnInvalid) -> Iterator[Block]:
        """The rows, in blocks."""
        if not self.columns:
            return read_parallel(self.paths, repairs, names=self.names, on_invalid=on_invalid)
        (path,), (name,) = self.paths, self.names
        number = () if self.line_column is None else (self.line_column,)
        columns = (*self.columns, *number)
        blocks = read_table(path, columns, repairs, kind=self.kind, name=name, on_invalid=on_invalid)
        return map(_made_from, blocks) if number else blocks


@dataclass(frozen=True, slots=True)
class Corpus:
    """Rows of texts in files. Made by `parallel_corpus`, `text_corpus` and `table_corpus`."""

    parts: tuple[CorpusPart, ...]
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


def parallel_corpus(
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
    return Corpus((CorpusPart(*_files(paths, scratch)),), on_invalid)


def text_corpus(
    *paths: Path | str, scratch: Path | str | None = None, on_invalid: OnInvalid = "refuse"
) -> Corpus:
    """A corpus of single texts, one a line: all the lines of the first file, then those of the next.

    Raises:
        CorpusError: a file is missing, a directory or given twice; all such problems at once.
    """
    files = zip(*_files(refuse_repeated(paths), scratch), strict=True)
    return Corpus(tuple(CorpusPart((path,), (name,)) for path, name in files), on_invalid)


def table_corpus(
    *paths: Path | str,
    columns: Sequence[Column],
    kind: TableKind | None = None,
    scratch: Path | str | None = None,
    on_invalid: OnInvalid = "refuse",
) -> Corpus:
    """A corpus from tables, TSV or JSONL: these columns of all of them, by name, or by number without a head.

    Raises:
        CorpusError: a file is missing, a directory or given twice; all such problems at once.
    """
    if not columns or len({type(column) for column in columns}) > 1:
        raise CorpusError("the columns of a table are asked for by name, or all by number")
    files = zip(*_files(refuse_repeated(paths), scratch), paths, strict=True)
    return Corpus(
        tuple(
            CorpusPart((p,), (name,), tuple(columns), kind or table_kind(given)) for p, name, given in files
        ),
        on_invalid,
    )


def derived_corpus(
    paths: Mapping[Path, Path | str], columns: Sequence[Column], line_column: Column
) -> Corpus:
    """A corpus from tables of ours, JSONL, each made from a file by whose name and lines messages call it."""
    return Corpus(
        tuple(
            CorpusPart((path,), (display_name(origin),), tuple(columns), "jsonl", line_column)
            for path, origin in paths.items()
        )
    )


def refuse_repeated(paths: Sequence[Path | str]) -> Sequence[Path | str]:
    """The same files; raises CorpusError where one is given twice."""
    for first, second in combinations(map(Path, paths), 2):
        if first == second:
            raise CorpusError(f"{display_name(second)}: is given twice")
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
            f"{display_name(second)}: is the same file as {display_name(first)}; give a file for each side"
            for first, second in combinations(files, 2)
            if first == second or (STDIN not in (str(first), str(second)) and first.samefile(second))
        ]
    if problems:
        raise CorpusError("\n".join(problems))
    kept = tuple(path if path.is_file() else temporary_copy(path, scratch) for path in files)
    return kept, tuple(display_name(path) for path in files)


_CHUNK = 1 << 20


def temporary_copy(path: Path | str, scratch: Path | str | None = None) -> Path:
    """A copy of a pipe in a folder, the system's by default, that goes when the program ends.

    Raises:
        CorpusError: it cannot be read, or the folder cannot hold it.
    """
    place = Path(scratch or tempfile.gettempdir())
    try:
        folder = Path(tempfile.mkdtemp(prefix="regard-input-", dir=place))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        copy = folder / "input"
        with copy.open("xb", buffering=0) as file:
            _copy(path, file, place)
    except OSError as error:
        raise _refusal(path, place, error) from error
    return copy


def keep_stdin(place: Path, *, fixed: bool) -> Path:
    """The file that holds standard input, packed: what comes now or, if nothing does, what came before.

    Args:
        place: where the file is, or will be.
        fixed: whether there is a run that began with what is there, so that nothing else will do.

    Raises:
        CorpusError: nothing comes, now or before; something else comes than the run began with; it cannot be
            read, or there is no room for it.
    """
    partial = place.with_name(f".{place.name}.partial")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        came = _spool(partial)
        kept = place.is_file()
        if not came and not kept:
            raise CorpusError("standard input: nothing comes from it; pipe a table into it")
        if came and not (kept and _digest(partial) == _digest(place)):
            if kept and fixed:
                told = f"standard input: is not what the run began with, which is in {place}"
                raise CorpusError(f"{told}; choose another folder with --out")
            partial.replace(place)
    except OSError as error:
        raise _refusal(STDIN, place.parent, error) from error
    finally:
        partial.unlink(missing_ok=True)
    return place


def _spool(place: Path) -> bool:
    """Copy standard input to a packed file; whether anything came."""
    if sys.stdin is None or sys.stdin.isatty():  # nobody types a corpus
        return False
    with place.open("wb") as file:
        # Written once and read a few times: quick is worth more than small.
        with gzip.GzipFile("", "wb", compresslevel=1, fileobj=file, mtime=0) as packed:
            count = _copy(STDIN, packed, place.parent)
        file.flush()
        os.fsync(file.fileno())
    return count > 0


def _copy(path: Path | str, file: io.RawIOBase | io.BufferedIOBase, place: Path) -> int:
    """Copy what a pipe gives, unpacked; how many bytes came."""
    count = 0
    with open_unpacked(path) as stream:
        while data := stream.read(_CHUNK):
            try:
                file.write(data)
            except OSError as error:  # not the reader's, who would say that the input is at fault
                raise _refusal(path, place, error) from error
            count += len(data)
    return count


def _digest(path: Path) -> bytes:
    """Of what is in a packed file, which another zlib may have packed otherwise."""
    digest = hashlib.blake2b()
    with open_unpacked(path) as stream:
        while data := stream.read(_CHUNK):
            digest.update(data)
    return digest.digest()


def _refusal(path: Path | str, place: Path, error: OSError) -> CorpusError:
    return CorpusError(f"{display_name(path)}: cannot be copied to {place}: {error.strerror or error}")
