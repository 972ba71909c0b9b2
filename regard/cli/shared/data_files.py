"""Files and columns on the command line: options that take one file or several, and `--columns`."""

from __future__ import annotations

from collections import deque
from itertools import pairwise
from typing import Any

from typer.core import TyperCommand

from regard.text.files.tables import Column, table_kind

SETS, MANY = ("--valid", "--test"), "--pretrain"


class SetsCommand(TyperCommand):
    """A command whose `--valid` and `--test` take two parallel files or one table.

    The parser has only options with a fixed number of words, so the option is repeated before every file.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words, with options repeated."""
        return super().parse_args(ctx, repeat_for_pairs(args) if _takes_pairs(args) else repeat_for_all(args))


def _takes_pairs(words: list[str]) -> bool:
    """Whether the task is translation, whose sets may be two parallel files."""
    named = [after for word, after in pairwise(words) if word == "--task"]
    named += [word.removeprefix("--task=") for word in words if word.startswith("--task=")]
    return named in ([], ["translate"])


def repeat_for_all(words: list[str]) -> list[str]:
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


def repeat_for_pairs(words: list[str]) -> list[str]:
    """`--valid a.zh a.en` as `--valid a.zh --valid a.en`; a table, by the end of its name, is one file."""
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


def parse_columns(words: str | None) -> tuple[Column, ...]:
    """The columns of `--columns`: names, or numbers if all are numbers."""
    names = [name.strip() for name in words.split(",")] if words is not None else []
    return tuple(map(int, names)) if all(map(str.isdecimal, names)) else tuple(names)
