"""The exceptions of `regard`, one tree.

    RegardError
    ├── ConfigError     a setting is unknown, ill-typed or contradicts another
    ├── ShapeError      an argument has the wrong shape, dtype, size or value (also a ValueError)
    ├── CorpusError     a line of data cannot be used
    ├── BundleError     a model folder is incomplete, damaged or of another version
    └── RequestError    a request cannot be answered
        └── TooLongError    a text has more tokens than the model reads

A user can correct these mistakes, so each message says what is wrong, where, and what to do; the command line
prints it without a traceback. Internal invariants are assertions, and keep their traceback.

Every error has a `code`, such as `unknown_setting`: programs and tests compare the code, people read the
message. The code is stable; the wording may change.

A message names an option as Python's keyword in backticks: `beam_size`, or with a value `n_best=3`. The
command line and the HTTP API replace it by their own name for the option, with `with_options`.

Each error passes its arguments, not its finished message, to `Exception`: unpickling calls the class with
them.
"""

import errno
import re
from collections.abc import Callable, Sequence

_OPTION = re.compile(r"`([a-z_]+)(?:=([^`]*))?`")


class RegardError(Exception):
    """The root: catch it to catch every error of `regard`."""

    code = "error"
    """What is wrong, for programs."""

    def __init__(self, *args: object, code: str | None = None) -> None:
        super().__init__(*args)
        if code is not None:
            self.code = code


class _ProblemsError(RegardError):
    """Several problems reported together, so that one run shows everything to correct."""

    def __init__(
        self, problems: Sequence[str] | str, where: str | None = None, *, code: str | None = None
    ) -> None:
        self.problems = (problems,) if isinstance(problems, str) else tuple(problems)
        self.where = where
        assert self.problems, "an error needs at least one problem"
        super().__init__(self.problems, where, code=code)

    def __str__(self) -> str:
        count = len(self.problems)
        if self.where is None and count == 1:
            return self.problems[0]
        place = "" if self.where is None else f" in {self.where}"
        heading = f"{count} problem{'' if count == 1 else 's'}{place}"
        return "\n  ".join([heading, *self.problems])


class ConfigError(_ProblemsError):
    """Settings are unknown, ill-typed or contradict each other; `problems` lists every one of them."""

    code = "bad_setting"


class ShapeError(RegardError, ValueError):
    """An argument has the wrong shape, dtype, size or value.

    `got` may be anything that prints well: a shape, a dtype, a number or words.
    """

    code = "bad_argument"

    def __init__(self, argument: str, expected: object, got: object, *, code: str | None = None) -> None:
        self.argument = argument
        self.expected = expected
        self.got = got
        super().__init__(argument, expected, got, code=code)

    def __str__(self) -> str:
        return f"{self.argument}: expected {self.expected}, got {self.got}"


class CorpusError(RegardError):
    """A line of data cannot be used; the message opens with its file and line number."""

    code = "bad_data"


class BundleError(_ProblemsError):
    """A model folder is incomplete, damaged, foreign or of another version; `problems` lists it all."""

    code = "bad_model_folder"


class RequestError(RegardError):
    """A request cannot be answered as it was put."""

    code = "bad_request"


class TooLongError(RequestError):
    """A text has more tokens than the model reads."""

    code = "too_long"


_ADVICE = {
    errno.ENOSPC: "free some space, then try again",
    errno.EDQUOT: "free some space or raise the quota, then try again",
    errno.EIO: "the disk may be failing: copy what you need to another one",
}


def reason(error: OSError) -> str:
    """Why the system refused, and what to do, where that is known."""
    advice = _ADVICE.get(error.errno or 0)
    return f"{error.strerror or error}{f'; {advice}' if advice else ''}"


def with_options(words: str, named: Callable[[str, str], str]) -> str:
    """A message with each option in backticks replaced by another interface's name for it.

    Args:
        words: the message, with Python's keywords.
        named: takes an option and its value (unquoted, may be empty), and returns the replacement.
    """
    return _OPTION.sub(lambda found: named(found[1], (found[2] or "").strip("'")), words)
