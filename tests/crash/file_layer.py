"""A file layer for crash tests: it records what crashes would leave at each operation, or lets one fail.

Inside `with FileLayer(folder)`, Python's functions that change files are replaced, and every change in the
folder is an operation: create, truncate, write, fsync, rename, unlink, mkdir, rmdir. A model of the folder
knows what is on disk for certain, so that one run gives the states after all crashes:

- the process is killed: everything is there that it did, half of a write included;
- the power fails and names are kept: files have the content of their last fsync;
- the power fails and names are lost: folders, too, have the entries of their last fsync.

At the end the model must equal the folder: nothing writes past this layer, such as a library in C.
"""

from __future__ import annotations

import builtins
import errno
import io
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest import mock

AVAILABLE = sys.platform == "linux"
"""The layer finds the path of an open file in /proc."""

KILLED, DATA_LOST, NAMES_LOST = "killed", "power failure, names kept", "power failure, names lost"
NEEDS_SPACE = {"create", "write", "fsync", "mkdir"}

State = frozenset[tuple[str, bytes | None]]
"""Everything in a folder: relative paths with contents; None is a folder."""
Fault = Callable[[int, str], int | None]
"""Takes the number and the kind of an operation; returns the error that it fails with, if any."""


def fails_once(number: int) -> Fault:
    """One operation fails with an input/output error, a write after its first half."""
    return lambda n, _: errno.EIO if n == number else None


def full_from(number: int) -> Fault:
    """The disk is full from an operation on."""
    return lambda n, kind: errno.ENOSPC if n >= number and kind in NEEDS_SPACE else None


def read_state(folder: Path) -> State:
    """The state of a folder."""
    return frozenset(
        (str(path.relative_to(folder)), None if path.is_dir() else path.read_bytes())
        for path in folder.rglob("*")
    )


def write_state(state: State, folder: Path) -> None:
    """Replace everything in a folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, content in sorted(state, key=lambda entry: entry[0]):
        if content is None:
            (folder / name).mkdir()
        else:
            (folder / name).write_bytes(content)


class _File:
    """The model of a file: its content, and what of it is on disk for certain."""

    def __init__(self, content: bytes = b"", synced: bytes = b"") -> None:
        self.content, self.synced = content, synced

    def sync(self) -> None:
        self.synced = self.content


class _Folder:
    """The model of a folder: its entries, and those that are on disk for certain."""

    def __init__(self) -> None:
        self.content: dict[str, _File | _Folder] = {}
        self.synced: dict[str, _File | _Folder] = {}

    def sync(self) -> None:
        self.synced = dict(self.content)

    def state(self, crash: str, prefix: str = "") -> Iterator[tuple[str, bytes | None]]:
        for name, node in (self.synced if crash == NAMES_LOST else self.content).items():
            if isinstance(node, _File):
                yield prefix + name, node.content if crash == KILLED else node.synced
            else:
                yield prefix + name, None
                yield from node.state(crash, f"{prefix}{name}/")


class _RawFile(io.FileIO):
    """An open file whose writes are operations of a layer."""

    def __init__(self, layer: FileLayer, *arguments: Any, **options: Any) -> None:
        self.layer = layer
        super().__init__(*arguments, **options)

    def write(self, data: Any) -> int:
        return self.layer._write(self, bytes(data))


class FileLayer:
    """Replaces the functions that change files in a folder while its block runs."""

    def __init__(self, root: Path, *, fault: Fault = lambda *_: None, record: bool = False) -> None:
        """Let operations fail as `fault` says; with `record`, collect the states after every crash."""
        self.root, self.fault, self.record = root.resolve(), fault, record
        self.operations: list[str] = []
        self.states: dict[State, str] = {}
        """Distinct states, each with the first crash that leaves it."""
        self._model = _Folder()
        self._real = {name: getattr(os, name) for name in _REPLACED}
        self._stack = ExitStack()

    def __enter__(self) -> FileLayer:
        self._model = _model_of(self.root)
        for name in _REPLACED:
            self._stack.enter_context(mock.patch.object(os, name, getattr(self, f"_{name}")))
        # `tempfile` looks it up in `_io`.
        for module in (builtins, io, sys.modules["_io"]):
            self._stack.enter_context(mock.patch.object(module, "open", self._open_file))
        self._note("the start")
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
        own, real = frozenset(self._model.state(KILLED)), read_state(self.root)
        passed = sorted({name for name, _ in own ^ real})
        assert own == real, f"written past the file layer: {', '.join(passed)}"

    def durable(self) -> State:
        """What is in the folder after a power failure at this moment, names lost."""
        return frozenset(self._model.state(NAMES_LOST))

    # --- the model ----------------------------------------------------------------------------------------

    def _place(self, path: Any, dir_fd: int | None = None) -> tuple[str, ...] | None:
        """The parts of a path in the folder; None for a path elsewhere."""
        if isinstance(path, int):
            path = Path(f"/proc/self/fd/{path}").readlink()
        elif dir_fd is not None:
            path = Path(f"/proc/self/fd/{dir_fd}").readlink() / os.fsdecode(path)
        parent, name = os.path.split(os.path.abspath(os.fsdecode(path)))  # noqa: PTH100
        whole = Path(os.path.realpath(parent), name)
        return whole.relative_to(self.root).parts if whole.is_relative_to(self.root) else None

    def _node(self, place: tuple[str, ...]) -> Any:
        """The node at a place; None if there is none."""
        node: Any = self._model
        for name in place:
            node = node.content.get(name) if isinstance(node, _Folder) else None
        return node

    def _put(self, place: tuple[str, ...], node: Any) -> None:
        self._node(place[:-1]).content[place[-1]] = node

    def _take(self, place: tuple[str, ...]) -> Any:
        return self._node(place[:-1]).content.pop(place[-1])

    def _note(self, moment: str) -> None:
        if self.record:
            for crash in (KILLED, DATA_LOST, NAMES_LOST):
                self.states.setdefault(frozenset(self._model.state(crash)), f"{crash} {moment}")

    def _begin(self, kind: str, place: tuple[str, ...]) -> OSError | None:
        """Count an operation; returns the error that it must fail with."""
        self.operations.append(f"{kind} {'/'.join(place)}")
        code = self.fault(len(self.operations) - 1, kind)
        return OSError(code, os.strerror(code), str(self.root.joinpath(*place))) if code else None

    def _operate(
        self, kind: str, place: tuple[str, ...], act: Callable[[], Any], change: Callable[[], Any]
    ) -> Any:
        """Carry out an operation in the folder and in the model, unless it must fail."""
        if error := self._begin(kind, place):
            raise error
        result = act()
        change()
        self._note(f"after {self.operations[-1]}")
        return result

    # --- open files ---------------------------------------------------------------------------------------

    def _open_file(
        self,
        file: Any,
        mode: str = "r",
        buffering: int = -1,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
        closefd: bool = True,
        opener: Any = None,
    ) -> Any:
        """`open`: of a file in the folder that is opened for writing, every write is an operation."""
        place = self._place(file) if set(mode) & set("wax+") else None
        if place is None:
            text = (encoding, errors, newline)
            return _OPEN(file, mode, buffering, *text, closefd, opener)
        raw_mode = mode.replace("b", "").replace("t", "")

        def opened() -> _RawFile:
            return _RawFile(self, file, raw_mode, closefd=closefd, opener=opener)

        raw = opened() if isinstance(file, int) else self._opened(place, opened, "w" in mode, "r" not in mode)
        if buffering == 0:
            return raw
        buffered = (io.BufferedRandom if "+" in mode else io.BufferedWriter)(
            raw, buffering if buffering > 1 else io.DEFAULT_BUFFER_SIZE
        )
        return buffered if "b" in mode else io.TextIOWrapper(buffered, encoding, errors, newline)

    def _opened(self, place: tuple[str, ...], act: Callable[[], Any], truncates: bool, creates: bool) -> Any:
        """Open a file, which may be an operation."""
        node = self._node(place)
        if node is None and creates:
            return self._operate("create", place, act, lambda: self._put(place, _File()))
        if isinstance(node, _File) and node.content and truncates:
            return self._operate("truncate", place, act, lambda: setattr(node, "content", b""))
        return act()

    def _write(self, raw: _RawFile, data: bytes) -> int:
        """Write in two halves: a crash or an error may come between them."""
        place = self._place(raw.fileno())
        if place is None:
            return io.FileIO.write(raw, data)
        node = self._node(place) or _File()  # a file without a name
        error = self._begin("write", place)
        for half in (data[: len(data) // 2], data[len(data) // 2 :]):
            start = len(node.content) if "a" in raw.mode else raw.tell()
            assert io.FileIO.write(raw, half) == len(half), "a short write"
            node.content = node.content[:start] + half + node.content[start + len(half) :]
            if error:
                raise error
            self._note(f"within or after {self.operations[-1]}")
        return len(data)

    # --- functions of `os` --------------------------------------------------------------------------------

    def _open(self, path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        def act() -> int:
            return self._real["open"](path, flags, mode, dir_fd=dir_fd)

        place = self._place(path, dir_fd) if flags & (os.O_WRONLY | os.O_RDWR) else None
        if place is None:
            return act()
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            return self._operate("create", (*place, "(without a name)"), act, lambda: None)
        return self._opened(place, act, bool(flags & os.O_TRUNC), bool(flags & os.O_CREAT))

    def _fsync(self, fd: int) -> None:
        place = self._place(fd)
        if place is None:
            return self._real["fsync"](fd)
        # The disk of the machine need not wait: only the model forgets.
        return self._operate("fsync", place, lambda: None, (self._node(place) or _File()).sync)

    def _truncate(self, path: Any, length: int) -> None:
        place = self._place(path)
        if place is None:
            return self._real["truncate"](path, length)
        node = self._node(place)

        def change() -> None:
            node.content = node.content[:length].ljust(length, b"\0")

        return self._operate("truncate", place, lambda: self._real["truncate"](path, length), change)

    def _move(self, name: str, source: Any, target: Any, **options: Any) -> None:
        def act() -> None:
            self._real[name](source, target, **options)

        old, new = self._place(source), self._place(target)
        if old is None or new is None or self._node(old) is None:
            assert old is None or self._node(old) is None, f"{source} is moved out of the folder"
            return act()
        return self._operate("rename", old, act, lambda: self._put(new, self._take(old)))

    def _rename(self, source: Any, target: Any, **options: Any) -> None:
        self._move("rename", source, target, **options)

    def _replace(self, source: Any, target: Any, **options: Any) -> None:
        self._move("replace", source, target, **options)

    def _change(self, kind: str, name: str, path: Any, *arguments: Any, dir_fd: int | None = None) -> None:
        def act() -> None:
            self._real[name](path, *arguments, dir_fd=dir_fd)

        place = self._place(path, dir_fd)
        if place is None or (self._node(place) is None) != (kind == "mkdir"):
            return act()  # elsewhere, or it raises
        change = (lambda: self._put(place, _Folder())) if kind == "mkdir" else (lambda: self._take(place))
        return self._operate(kind, place, act, change)

    def _unlink(self, path: Any, **options: Any) -> None:
        self._change("unlink", "unlink", path, **options)

    def _remove(self, path: Any, **options: Any) -> None:
        self._change("unlink", "remove", path, **options)

    def _rmdir(self, path: Any, **options: Any) -> None:
        self._change("rmdir", "rmdir", path, **options)

    def _mkdir(self, path: Any, mode: int = 0o777, **options: Any) -> None:
        self._change("mkdir", "mkdir", path, mode, **options)


_OPEN = builtins.open
_REPLACED = ("open", "fsync", "truncate", "rename", "replace", "unlink", "remove", "rmdir", "mkdir")


def _model_of(folder: Path) -> _Folder:
    """The model of a folder that is on disk for certain."""
    model = _Folder()
    for path in folder.iterdir():
        content = b"" if path.is_dir() else path.read_bytes()
        model.content[path.name] = _model_of(path) if path.is_dir() else _File(content, content)
    model.sync()
    return model
