"""Files and columns on the command line: options that take one file or several, and `--columns`."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import Any

from regard.cli.shared.command import Command
from regard.config import written_task
from regard.text.files import STDIN
from regard.text.files.tables import Column, table_kind

SETS, MANY = ("--valid", "--test"), "--pretrain"


class SetsCommand(Command):
    """A command whose `--valid` and `--test` take two parallel files or one table; `--pretrain`, any number.

    The parser has only options with a fixed number of words, so the option is repeated before every file.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words, with options repeated."""
        words = repeat_for_all(args)
        return super().parse_args(ctx, repeat_for_pairs(words) if task_in(words) == "translate" else words)


def task_in(words: list[str]) -> str:
    """The task of a command line: named by `--task`, by `--set task.name=…`, or in the file of `--config`."""
    words = words[: words.index("--")] if "--" in words else words
    named, files = values_of("--task", words), values_of("--config", words)
    written = written_task(files[-1] if files else None, values_of("--set", words))
    return named[-1] if named else written or "translate"


def values_of(option: str, words: list[str]) -> list[str]:
    """The values of an option, written `--option value` or `--option=value`, in order."""
    after = {i + 1 for i, word in enumerate(words) if word == option}
    return [
        word.removeprefix(f"{option}=")
        for i, word in enumerate(words)
        if i in after or word.startswith(f"{option}=")
    ]


def repeat_for_all(words: list[str]) -> list[str]:
    """`--pretrain a b` as `--pretrain a --pretrain b`: it takes every word up to the next option."""
    done: list[str] = []
    takes = False
    for i, word in enumerate(words):
        if word == "--":
            return [*done, *words[i:]]
        if word.startswith("-") and word != STDIN:
            takes = word.partition("=")[0] == MANY
        elif takes and done[-1] != MANY:
            done.append(MANY)
        done.append(word)
    return done


def repeat_for_pairs(words: list[str]) -> list[str]:
    """`--valid a.zh a.en` as `--valid a.zh --valid a.en`; a table, by its name, or a folder stands alone."""
    waiting, done = deque(words), list[str]()
    while waiting and (not done or done[-1] != "--"):
        done.append(waiting.popleft())
        option, equals, file = done[-1].partition("=")
        if option not in SETS or not (equals or waiting):
            continue
        if not equals:
            file = waiting.popleft()
            done.append(file)
        one = table_kind(file) is not None or Path(file).is_dir()
        if not one and waiting and not waiting[0].startswith("-"):
            done += [option, waiting.popleft()]
    return [*done, *waiting]


def parse_columns(words: str | None) -> tuple[Column, ...]:
    """The columns of `--columns`: names, or numbers if all are numbers."""
    names = [name.strip() for name in words.split(",")] if words is not None else []
    return tuple(map(int, names)) if all(map(str.isdecimal, names)) else tuple(names)
