"""The files that `regard train` is told to use: two in step or a table for each set, and their languages.

A set is two files, of which line i of one translates line i of the other, or one table with --columns. What
is trained on may be a table from standard input, `-`.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typer.core import TyperCommand

from regard.cli.training import say
from regard.errors import ConfigError
from regard.text.files import STDIN, display_name, path_problem
from regard.text.files.tables import Column, table_kind
from regard.text.languages import known_code, language_in, language_of

if TYPE_CHECKING:
    from regard.data.reading import Corpus

SETS, MANY = ("--valid", "--test"), "--pretrain"
_COLUMNS = "--columns SRC,TGT, as in --columns zh,en by name or --columns 1,2 by number"


class SetsCommand(TyperCommand):
    """A command whose --valid and --test take two files in step, or one table.

    The parser knows options that always take the same number of words; so a second file gets the name of
    its option, too.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse what `each_named` makes of the words."""
        return super().parse_args(ctx, each_named(args) if in_pairs(args) else all_named(args))


def in_pairs(words: list[str]) -> bool:
    """Whether sets may be two files in step: other tasks than translation take their files one by one."""
    named = [after for word, after in pairwise(words) if word == "--task"]
    named += [word.removeprefix("--task=") for word in words if word.startswith("--task=")]
    return named in ([], ["translate"])


def all_named(words: list[str]) -> list[str]:
    """`--pretrain a b` as `--pretrain a --pretrain b`: it takes every word up to the next option."""
    done: list[str] = []
    takes = False
    for word in words:
        if word.startswith("-"):
            takes = word == MANY
        elif takes and done[-1] != MANY:
            done.append(MANY)
        done.append(word)
    return done


def each_named(words: list[str]) -> list[str]:
    """`--valid a.zh a.en` as `--valid a.zh --valid a.en`; a table, told by its name, stands alone."""
    waiting, done = deque(words), list[str]()
    while waiting and (not done or done[-1] != "--"):
        done.append(waiting.popleft())
        option, equals, file = done[-1].partition("=")
        if option not in SETS or not (equals or waiting):
            continue
        if not equals:
            file = waiting.popleft()
            done.append(file)
        if table_kind(file) is None and waiting and not waiting[0].startswith("-"):
            done += [option, waiting.popleft()]
    return [*done, *waiting]


@dataclass(frozen=True, slots=True)
class NamedSets:
    """The sets that a command line names, none of them opened yet; ConfigError with all that is wrong."""

    train: tuple[Path, ...]
    valid: tuple[Path, ...] = ()
    test: tuple[Path, ...] = ()
    columns: tuple[Column, ...] = ()

    def __post_init__(self) -> None:
        given = dict(zip(SETS, (self.valid, self.test), strict=True))
        problems = _training_problems(self.train, bool(self.columns))
        for option, files in given.items():
            problems += _set_problems(option, files, bool(self.columns))
        if self.columns and 1 not in map(len, (self.train, *given.values())):
            problems.append("--columns is for a table: one file, or - for standard input")
        if problems := problems or _column_problems(self.columns):
            raise ConfigError(problems)

    @property
    def from_stdin(self) -> bool:
        """Whether what is trained on comes from standard input."""
        return str(self.train[0]) == STDIN

    def corpora(self) -> dict[str, Corpus]:
        """Every set that is a file or two, by its name in messages.

        Raises:
            CorpusError: a file is not there, or given twice.
        """
        from regard.data.reading import parallel_corpus, refuse_shared_files, table_corpus

        train = () if self.from_stdin else self.train
        sets = {"training": train, "validation": self.valid, "the test": self.test}
        made = {
            name: table_corpus(*files, columns=self.columns) if len(files) == 1 else parallel_corpus(*files)
            for name, files in sets.items()
            if files
        }
        refuse_shared_files(made)
        return made

    def languages(self, source: str | None, target: str | None) -> tuple[str, str]:
        """The two languages, from the flags or else from the names of columns or files; a clash is told."""
        if len(self.train) == 1:
            told = [(f"column {column}", language_in(str(column))) for column in self.columns]
        else:
            told = [(str(file), language_of(file)) for file in self.train]
        found, problems = [], []
        for (name, code), word, flag in zip(told, (source, target), ("--from", "--to"), strict=True):
            found.append((known_code(word) or word) if word else code or "")
            if not found[-1]:
                hint = f"say it with {flag}, as in {flag} en"
                missing = path_problem(name) if len(self.train) > 1 else None
                problems.append(missing or f"{name}: the name does not tell its language; {hint}")
            elif code and code.split("-")[0] != found[-1].split("-")[0]:
                say(f"{name}: the name tells {code}, and it is taken for {found[-1]}, as was asked")
        if problems:
            raise ConfigError(problems)
        return found[0], found[1]


def columns_of(words: str | None) -> tuple[Column, ...]:
    """What --columns says: names, or numbers where they all are."""
    names = [name.strip() for name in words.split(",")] if words is not None else []
    return tuple(map(int, names)) if all(map(str.isdecimal, names)) else tuple(names)


def _training_problems(files: tuple[Path, ...], columns: bool) -> list[str]:
    if len(files) == 2 and STDIN in map(str, files):
        return [
            f"standard input gives both sides, as a table; leave out the file beside it, and say {_COLUMNS}"
        ]
    if len(files) == 1 and not columns and (str(files[0]) == STDIN or table_kind(files[0])):
        return [f"{display_name(files[0])}: which of its columns? Say {_COLUMNS}"]
    if len(files) == 2 or (len(files) == 1 and columns):
        return []
    return ["give two files, SRC and TGT, a table with --columns SRC,TGT, or --builtin numerals"]


def _set_problems(option: str, files: tuple[Path, ...], columns: bool) -> list[str]:
    if STDIN in map(str, files):
        return [f"{option} takes files; standard input is for what is trained on"]
    if len(files) > 2 or (len(files) == 1 and not table_kind(files[0])):
        return [f"{option} takes two files, SRC and TGT, or a table whose name ends in .tsv or .jsonl"]
    if len(files) == 1 and not columns:
        return [f"{files[0]}: which of its columns? Say {_COLUMNS}"]
    return []


def _column_problems(columns: tuple[Column, ...]) -> list[str]:
    if columns and (len(columns) != 2 or not all(columns) or columns[0] == columns[1]):
        return [f"--columns {','.join(map(str, columns))} are not two different columns; say {_COLUMNS}"]
    return []
