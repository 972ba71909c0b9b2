"""Corpora: files of text as rows, which can be read any number of times.

A row is one example: a pair of texts from two parallel files, a text from one file, or columns of a table.
Rows come in blocks with file and line numbers, so that errors can name the place. Texts are stripped of
surrounding spaces.

A corpus is read more than once (to clean it, to learn subwords, to encode it). Standard input and other pipes
can be read only once, so they are copied to a file first: until the program ends (`temporary_copy`), or as
long as there is a run that may continue with it (`keep_stdin`).
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
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import cast

from regard.durable import make_folder, sync_folder, temporary_file
from regard.errors import CorpusError, reason
from regard.text.files import STDIN, display_name, open_unpacked, path_problem
from regard.text.files.lines import Block, OnInvalid, Tally
from regard.text.files.parallel import read_parallel
from regard.text.files.tables import Column, TableKind, read_table, table_kind

Row = tuple[str, ...]
"""The texts of one example, one per side."""


@dataclass(frozen=True, slots=True)
class CorpusPart:
    """A table, or parallel files."""

    paths: tuple[Path, ...]
    names: tuple[str, ...]
    """The names of the files in messages."""
    columns: tuple[Column, ...] = ()
    """The columns of a table; empty for parallel files."""
    kind: TableKind | None = None
    line_column: Column | None = None
    """The column of a derived table that holds the line number in the original file."""
    repaired: Tally = field(default_factory=Tally)
    """What was repaired when a table was derived."""
    skipped: Tally = field(default_factory=Tally)
    """Rows that were dropped when a table was derived."""

    @property
    def n_sides(self) -> int:
        """Number of texts in a row."""
        return len(self.columns or self.paths)

    def blocks(self, repairs: Tally, on_invalid: OnInvalid) -> Iterator[Block]:
        """The rows, in blocks."""
        repairs.add_tally(self.repaired)
        if not self.columns:
            return read_parallel(self.paths, repairs, names=self.names, on_invalid=on_invalid)
        (path,), (name,) = self.paths, self.names
        number = () if self.line_column is None else (self.line_column,)
        columns = (*self.columns, *number)
        blocks = read_table(path, columns, repairs, kind=self.kind, name=name, on_invalid=on_invalid)
        return map(_with_source_lines, blocks) if number else blocks


@dataclass(frozen=True, slots=True)
class Corpus:
    """Rows of texts in files; see `parallel_corpus`, `text_corpus` and `table_corpus`."""

    parts: tuple[CorpusPart, ...]
    on_invalid: OnInvalid = "refuse"
    """What to do with a row that cannot be read: refuse the file, or drop and count the row."""

    @property
    def n_sides(self) -> int:
        """Number of texts in a row: two for pairs."""
        return self.parts[0].n_sides

    @property
    def paths(self) -> tuple[Path, ...]:
        """All files, in order: the files covered by the content hash."""
        return tuple(path for part in self.parts for path in part.paths)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all files in messages."""
        return tuple(name for part in self.parts for name in part.names)

    @property
    def skipped(self) -> Tally:
        """Rows of the original files that were dropped when tables were derived from them."""
        skipped = Tally()
        for part in self.parts:
            skipped.add_tally(part.skipped)
        return skipped

    def blocks(self, repairs: Tally | None = None) -> Iterator[Block]:
        """All rows in blocks, unusable ones included; every call starts from the beginning.

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
                problem = "has no rows" if part.columns else "is empty"
                raise CorpusError(f"{part.names[0]}: the file {problem}", code="empty_file")

    def rows(self, repairs: Tally | None = None, unread: Tally | None = None) -> Iterator[Row]:
        """All usable rows, including those with empty texts; `unread` counts the others."""
        for block in self.blocks(repairs):
            for i, row in enumerate(zip(*block.columns, strict=True)):
                if i not in block.unusable:
                    yield row
                elif unread is not None:
                    unread.add(block.unusable[i], block.name, block.line(i))


def parallel_corpus(
    *paths: Path | str, scratch: Path | str | None = None, on_invalid: OnInvalid = "refuse"
) -> Corpus:
    """A corpus of parallel files: line i of the first matches line i of the others.

    Args:
        paths: one file per side, plain or compressed; `-` is standard input.
        scratch: the folder for a copy of standard input; by default the system's.
        on_invalid: what to do with a line that cannot be read.

    Raises:
        CorpusError: files are missing, directories or given twice; all such problems at once.
    """
    return Corpus((CorpusPart(*_files(paths, scratch)),), on_invalid)


def text_corpus(
    *paths: Path | str, scratch: Path | str | None = None, on_invalid: OnInvalid = "refuse"
) -> Corpus:
    """A corpus of single texts, one per line: all lines of the first file, then those of the next.

    Raises:
        CorpusError: files are missing, directories or given twice; all such problems at once.
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
    """A corpus of tables: the same columns of all, by name, or by number without a header.

    Raises:
        CorpusError: files are missing, directories or given twice; all such problems at once.
    """
    if not columns or len({type(column) for column in columns}) > 1:
        problem = "name all columns of a table, or give the numbers of all"
        raise CorpusError(problem, code="mixed_columns")
    files = zip(*_files(refuse_repeated(paths), scratch), paths, strict=True)
    return Corpus(
        tuple(
            CorpusPart((p,), (name,), tuple(columns), kind or table_kind(given)) for p, name, given in files
        ),
        on_invalid,
    )


def derived_corpus(
    paths: Mapping[Path, Path | str],
    columns: Sequence[Column],
    line_column: Column,
    repaired: Sequence[Tally] = (),
    skipped: Sequence[Tally] = (),
) -> Corpus:
    """A corpus of JSONL tables, each derived from a file whose name and line numbers messages use.

    Args:
        paths: the tables, and the files that they were derived from.
        columns: the columns of the texts.
        line_column: the column of the line numbers.
        repaired: what was repaired in each file; by default nothing.
        skipped: which rows of each file were dropped; by default none.
    """
    repairs, drops = (tallies or [Tally() for _ in paths] for tallies in (repaired, skipped))
    return Corpus(
        tuple(
            CorpusPart((path,), (display_name(origin),), tuple(columns), "jsonl", line_column, repair, drop)
            for (path, origin), repair, drop in zip(paths.items(), repairs, drops, strict=True)
        )
    )


def refuse_repeated(paths: Sequence[Path | str]) -> Sequence[Path | str]:
    """The same files; raises CorpusError if one is given twice."""
    for first, second in combinations(map(Path, paths), 2):
        if first == second:
            raise CorpusError(f"{display_name(second)}: is given twice", code="repeated_file")
        if first.is_file() and second.is_file() and first.samefile(second):
            raise CorpusError(f"{second}: is given twice, also as {first}", code="repeated_file")
    return paths


def refuse_shared_files(corpora: Mapping[str, Corpus]) -> None:
    """Raise if two corpora, such as training and validation, have a file in common.

    Raises:
        CorpusError: with every such file.
    """
    problems = [
        f"{name}: is given for {one} and for {other}; a model cannot be scored on its training data"
        for (one, first), (other, second) in combinations(corpora.items(), 2)
        for path, name in zip(first.paths, first.names, strict=True)
        if any(path.samefile(another) for another in second.paths)
    ]
    if problems:
        raise CorpusError("\n".join(problems), code="repeated_file")


def _with_source_lines(block: Block) -> Block:
    """A block with the line numbers in its last column as the lines of its rows."""
    *columns, numbers = block.columns
    return replace(block, columns=tuple(columns), lines=[*map(int, numbers)], derived=True)


def _files(
    paths: Iterable[Path | str], scratch: Path | str | None
) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    """The files of a corpus and their names; pipes are copied, so that all can be read again."""
    files = [Path(path) for path in paths]
    assert files, "a corpus needs a file"
    problems = [problem for path in dict.fromkeys(files) if (problem := path_problem(path))]
    code = "missing_file" if problems else "repeated_file"
    if not problems:
        problems = [
            f"{display_name(second)}: is the same file as {display_name(first)}; give a file for each side"
            for first, second in combinations(files, 2)
            if first == second or (STDIN not in (str(first), str(second)) and first.samefile(second))
        ]
    if problems:
        raise CorpusError("\n".join(problems), code=code)
    kept = tuple(path if path.is_file() else temporary_copy(path, scratch) for path in files)
    return kept, tuple(display_name(path) for path in files)


_CHUNK = 1 << 20


def temporary_copy(path: Path | str, scratch: Path | str | None = None) -> Path:
    """A copy of a pipe, deleted when the program ends; `scratch` is by default the system's folder.

    Raises:
        CorpusError: it cannot be read, or the folder has no room for it.
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
    """Keep standard input in a compressed file; returns it. Without input, an earlier file is used.

    Args:
        place: where the file is, or will be.
        fixed: whether a run has begun with the earlier file, so that the input must be the same.

    Raises:
        CorpusError: there is no input, now or earlier; the input is not that of the run; it cannot be read,
            or there is no room for it.
    """
    try:
        make_folder(place.parent)
        with temporary_file(place) as partial:
            came = _spool(partial)
            kept = place.is_file()
            if not came and not kept:
                raise CorpusError("standard input: is empty; pipe a table into it", code="empty_file")
            if came and not (kept and _digest(partial) == _digest(place)):
                if kept and fixed:
                    problem = f"standard input: is not what the run began with, which is in {place}"
                    raise CorpusError(f"{problem}; choose another folder with --out", code="data_changed")
                partial.replace(place)
                sync_folder(place.parent)
    except OSError as error:
        raise _refusal(STDIN, place.parent, error) from error
    return place


def _spool(place: Path) -> bool:
    """Copy standard input to a compressed file; returns whether there was any."""
    if sys.stdin is None or sys.stdin.isatty():  # a corpus is never typed
        return False
    with place.open("wb") as file:
        # Written once and read a few times: speed matters more than size.
        with gzip.GzipFile("", "wb", compresslevel=1, fileobj=file, mtime=0) as compressed:
            count = _copy(STDIN, compressed, place.parent)
        file.flush()
        os.fsync(file.fileno())
    return count > 0


def _copy(path: Path | str, file: io.RawIOBase | io.BufferedIOBase, place: Path) -> int:
    """Copy a pipe, decompressed; returns the number of bytes."""
    count = 0
    with open_unpacked(path) as stream:
        # read1, because read would wait for a whole chunk, deaf to signals, where a pipe has no more yet.
        while data := cast(io.BufferedReader, stream).read1(_CHUNK):
            try:
                file.write(data)
            except OSError as error:  # caught here, since the reader would blame the input
                raise _refusal(path, place, error) from error
            count += len(data)
    return count


def _digest(path: Path) -> bytes:
    """A hash of the decompressed content: another zlib may compress differently."""
    digest = hashlib.blake2b()
    with open_unpacked(path) as stream:
        while data := stream.read(_CHUNK):
            digest.update(data)
    return digest.digest()


def _refusal(path: Path | str, place: Path, error: OSError) -> CorpusError:
    problem = f"{display_name(path)}: cannot be copied to {place}: {reason(error)}"
    return CorpusError(problem, code="unwritable_folder")
