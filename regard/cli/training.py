"""How a run of any task goes on the command line: claimed, watched, ended, whatever it learns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import typer

from regard.config import RunConfig
from regard.config.checking import counted
from regard.errors import ConfigError

if TYPE_CHECKING:  # the verb's help must not wait for torch
    from regard.training.distributed.world import World
    from regard.training.loop import Listener, Run
    from regard.training.task_run import TaskRun

DIVERGED = 2
INTERRUPTED = 130
"""Exit status of a run that was stopped before its end: what comes after `&&` must not start."""
R = TypeVar("R", bound="TaskRun")


@contextmanager
def joined(run: Path, config: RunConfig, device: str) -> Iterator[World]:
    """This process among those that train together, the folder claimed for them."""
    from regard.host import keep_freed_memory
    from regard.training.distributed.world import join_world

    keep_freed_memory()
    try:
        with join_world(device) as world, _claimed(run, config) if world.is_main else nullcontext():
            try:
                yield world
            except KeyboardInterrupt:
                if world.is_main:
                    say("stopped; the same command takes it up again")
                raise
    except OSError as error:
        raise ConfigError(f"{error.filename or run}: {error.strerror or error}") from error


def carried_out(task: R, log_to: list[str], conclude: Callable[[R], None]) -> None:
    """Train; then conclude, on the first process, unless somebody asked to stop."""
    from regard.training.ending import ASKED_TO_STOP, DivergedError

    world = task.world
    try:
        reason = task.train(lambda run: _watched(run, log_to) if world.is_main else nullcontext(()))
    except DivergedError:
        if world.is_main:  # it happened to all processes, and one tells it
            raise
        raise typer.Exit(DIVERGED) from None
    stopped = reason == ASKED_TO_STOP
    if world.is_main:
        say(f"{reason}, after {task.run.progress.seconds:,.0f} s of training")
        if stopped:
            say("the same command goes on from here")
        else:
            _tell_warm_up(task.run)
            conclude(task)
    if stopped:
        raise typer.Exit(INTERRUPTED)


def _tell_warm_up(run: Run) -> None:
    """A short run of a preset for long ones ends before it has learned at its full rate."""
    steps, warmup = run.progress.step, run.config.training.warmup_steps
    if steps < warmup:
        say(
            f"the learning rate was still rising, for training.warmup_steps is {warmup:,}, and the run "
            f"took {counted(steps, 'step')}; one as short as this may learn more with fewer"
        )


def say(words: str) -> None:
    """Tell the reader, on stderr."""
    typer.echo(words, err=True)


@contextmanager
def _claimed(run: Path, config: RunConfig) -> Iterator[None]:
    """The folder, as this run's and for this process alone; another's is left as it is."""
    from regard.training.checkpoints.folder import claim, refuse_other
    from regard.training.checkpoints.lock import locked

    refuse_other(run, config)
    with locked(run, say):
        claim(run, config)
        yield


@contextmanager
def _watched(run: Run, log_to: list[str]) -> Iterator[list[Listener]]:
    """A display and the trackers that were asked for, for as long as a run lasts."""
    from rich.console import Console

    from regard.training.checkpoints.journal import Journal
    from regard.training.display.display import open_display
    from regard.training.display.standing import Standing
    from regard.training.display.trackers import open_tracker

    model, console = run.model, Console(stderr=True)
    say(f"{model.n_parameters:,} parameters, {model.compute_dtype}, {run.world.device.type}")
    if run.progress.step:
        say(f"going on from step {run.progress.step:,}")
    with ExitStack() as stack:
        trackers = [stack.enter_context(open_tracker(name, run.folder, run.config)) for name in log_to]
        standing = Standing(
            str(run.folder), run.config.training.max_steps, lambda: run.share_done, run.data.unit
        )
        display = stack.enter_context(open_display(console, standing))
        if console.is_interactive:  # a run that goes on shows where it was
            for event in Journal(run.folder / "journal.jsonl"):
                display(event)
        yield [display, *trackers]
