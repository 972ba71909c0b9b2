"""The program `regard` in this process: as quick as a function call, and all that a process would show."""

import io
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from subprocess import CompletedProcess

from regard.cli import main


@contextmanager
def _warnings_printed() -> Iterator[None]:
    """Warnings go to stderr, as in a process; pytest would raise them."""
    usual = warnings.formatwarning
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.showwarning = lambda *warning: print(warnings.formatwarning(*warning[:4]), file=sys.stderr)
        try:
            yield
        finally:
            warnings.formatwarning = usual


def run_regard(*words: object, folder: Path | None = None, stdin: bytes = b"") -> CompletedProcess[str]:
    """Type `regard` and some words in a folder. The result is like that of `subprocess.run`."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    arguments, status, usual = [os.fspath(word) for word in words], 0, sys.stdin
    sys.stdin = io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8")
    try:
        with chdir(folder or Path.cwd()), redirect_stdout(out), redirect_stderr(err), _warnings_printed():
            main(arguments)
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    finally:
        sys.stdin = usual
    printed = (stream.buffer.getvalue().decode() for stream in (out, err))
    return CompletedProcess(["regard", *arguments], status, *printed)
