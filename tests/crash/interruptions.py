"""Interrupt a command at each of its file operations, and check what is there afterwards."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from regard.durable import ABANDONED, LEFTOVER
from regard.errors import RegardError
from tests.crash.file_layer import FileLayer, State, fails_once, full_from, read_state, write_state


@dataclass(frozen=True, kw_only=True)
class Scene:
    """A command in a folder. Each function takes the folder."""

    prepare: Callable[[Path], object] = lambda _: None
    """Make what is there before."""
    command: Callable[[Path], object]
    found: Callable[[Path], str]
    """What is there, in words, after reading all of it; raises an error where something is incomplete."""
    refusals: tuple[str, ...] = ()
    """Error codes with which `found` may refuse the state after a crash; the message names what to rename."""
    repeated: tuple[str, ...] = ()
    """Error codes with which the command may refuse to replace its own result."""
    does_without: bool = False
    """Whether the command may succeed without its files."""
    later: Callable[[Path], object] | None = None
    """A command of the next day, after which nothing temporary is left; by default the same."""


@dataclass(frozen=True)
class Recording:
    """What a command does when nothing interrupts it."""

    before: State
    operations: list[str]
    states: dict[State, str]
    """What crashes can leave."""
    result: str


@dataclass(frozen=True)
class Outcome:
    """One interruption, and what was there after it."""

    moment: str
    found: str


def record(scene: Scene, folder: Path) -> Recording:
    """Carry out a command once. When it is done, a power failure must not undo it."""
    write_state(frozenset(), folder)
    scene.prepare(folder)
    before = read_state(folder)
    with FileLayer(folder, record=True) as layer:
        scene.command(folder)
        durable = layer.durable()
    result = scene.found(folder)
    assert leftovers(folder) == []
    write_state(durable, folder)
    assert scene.found(folder) == result, "a power failure has undone what was done"
    return Recording(before, layer.operations, layer.states, result)


def crashed(scene: Scene, folder: Path, done: Recording, states: Iterable[State]) -> Iterator[Outcome]:
    """What a crash leaves is complete or refused, the command can be repeated, and leftovers are removed."""
    for state in states:
        with _described(moment := done.states[state]), mock.patch.object(os, "fsync"):
            write_state(state, folder)
            yield Outcome(moment, _found(scene, folder))
            _repeat(scene, folder, done)
            for path in folder.rglob("*"):
                os.utime(path, (time.time() - ABANDONED - 60,) * 2)
            (scene.later or scene.command)(folder)
            assert leftovers(folder) == []


def failed(scene: Scene, folder: Path, done: Recording, numbers: Iterable[int]) -> Iterator[Outcome]:
    """When an operation fails, an error says so, nothing is left behind, and the command can be repeated."""
    faults = {"fails": fails_once, "finds the disk full": full_from}
    for number, (words, fault) in ((number, fault) for number in numbers for fault in faults.items()):
        operation = done.operations[number]
        with _described(moment := f"{operation} {words}"), mock.patch.object(os, "fsync"):
            write_state(done.before, folder)
            error = None
            try:
                with warnings.catch_warnings(), FileLayer(folder, fault=fault(number)):
                    warnings.simplefilter("ignore")
                    scene.command(folder)
            except RegardError as refusal:
                error = refusal
                assert any(advice in str(error) for advice in ("free some space", "may be failing")), error
            # What could not be removed is still there.
            assert operation.startswith(("unlink", "rmdir")) or leftovers(folder) == []
            found = scene.found(folder)
            assert error is not None or found == done.result or scene.does_without, "there was no error"
            yield Outcome(moment, f"{found} ({error.code if error else 'no error'})")
            _repeat(scene, folder, done)


def _found(scene: Scene, folder: Path) -> str:
    """What is there; a refusal names what to rename, and that is done."""
    try:
        return scene.found(folder)
    except RegardError as error:
        if error.code not in scene.refusals:
            raise
        refusal = str(error)
    (aside,) = folder.glob(".*.old")
    assert f"{aside} holds the model that an interrupted save was about to replace" in refusal
    name = LEFTOVER.fullmatch(aside.name)
    assert name is not None
    aside.rename(folder / name[1])
    return f"{scene.found(folder)}, refused"


def _repeat(scene: Scene, folder: Path, done: Recording) -> None:
    try:
        scene.command(folder)
    except RegardError as error:
        if error.code not in scene.repeated:
            raise
    assert scene.found(folder) == done.result


def leftovers(folder: Path) -> list[str]:
    """Temporary files and folders."""
    paths = (path for path in folder.rglob(".*") if LEFTOVER.fullmatch(path.name))
    return [str(path.relative_to(folder)) for path in paths]


@contextmanager
def _described(moment: str) -> Iterator[None]:
    """Add the moment to an error."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"the interruption: {moment}")
        raise
