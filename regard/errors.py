"""Everything that `regard` refuses, as one tree.

    RegardError
    ├── ConfigError     a setting is unknown, ill-typed or contradicts another
    ├── ShapeError      an argument has the wrong shape, dtype, size or value (also a ValueError)
    ├── CorpusError     a line of data cannot be used
    ├── BundleError     a model folder is incomplete, damaged or of another version
    └── RequestError    a request cannot be answered
        └── TooLongError    a text has more tokens than the model reads

These are mistakes that a user can mend, so each message says what, where, and what to do; the command line
prints them without a traceback. Mistakes of our own are assertions, and keep theirs.

Where a message names an option, it does so as Python's keyword between backticks: `beam_size`, or with a
value `n_best=3`. The command line has a flag for it and a request a field, so each road puts its own name
there, by `with_options`.

Each error hands its arguments, and not its finished message, to `Exception`: that is what an exception is
rebuilt from when it travels between processes.
"""

import re
from collections.abc import Callable, Sequence

_OPTION = re.compile(r"`([a-z_]+)(?:=([^`]*))?`")


class RegardError(Exception):
    """The root: catch it to catch everything that `regard` refuses."""


class _ProblemsError(RegardError):
    """Several problems reported together, so that one run shows all that there is to mend."""

    def __init__(self, problems: Sequence[str] | str, where: str | None = None) -> None:
        self.problems = (problems,) if isinstance(problems, str) else tuple(problems)
        self.where = where
        assert self.problems, "an error needs at least one problem"
        super().__init__(self.problems, where)

    def __str__(self) -> str:
        count = len(self.problems)
        if self.where is None and count == 1:
            return self.problems[0]
        place = "" if self.where is None else f" in {self.where}"
        heading = f"{count} problem{'' if count == 1 else 's'}{place}"
        return "\n  ".join([heading, *self.problems])


class ConfigError(_ProblemsError):
    """Settings are unknown, ill-typed or contradict each other; `problems` lists every one of them."""


class ShapeError(RegardError, ValueError):
    """An argument has the wrong shape, dtype, size or value.

    `got` may be anything that prints well: a shape, a dtype, a number or words.
    """

    def __init__(self, argument: str, expected: object, got: object) -> None:
        self.argument = argument
        self.expected = expected
        self.got = got
        super().__init__(argument, expected, got)

    def __str__(self) -> str:
        return f"{self.argument}: expected {self.expected}, got {self.got}"


class CorpusError(RegardError):
    """A line of data cannot be used; the message opens with its file and line number."""


class BundleError(_ProblemsError):
    """A model folder is incomplete, damaged, foreign or of another version; `problems` lists it all."""


class RequestError(RegardError):
    """A request cannot be answered as it was put."""


class TooLongError(RequestError):
    """A text has more tokens than the model reads."""


def with_options(words: str, named: Callable[[str, str], str]) -> str:
    """What an error says, with each option that it names as another road has it.

    Args:
        words: what it says to Python.
        named: from an option and its value, without quotes and perhaps empty, to what stands there instead.
    """
    return _OPTION.sub(lambda found: named(found[1], (found[2] or "").strip("'")), words)
