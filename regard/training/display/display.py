"""Progress of a run: a live panel on a terminal, plain lines in a log."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from time import monotonic
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.progress import Progress
from rich.text import Text

from regard.look.figures.curves import is_number
from regard.look.trace.tokens import visible
from regard.tasks.task import Event, Listener
from regard.training.display.panel import Panel
from regard.training.display.standing import Standing, duration

REFRESHES = 2
"""Drawings per second. One takes about 5 ms, so the panel costs 1% of one core."""
EVERY = 5.0
"""Seconds between two lines of a log."""


class Display:
    """A listener that shows a run on a console: messages, a progress bar, and the training."""

    def __init__(self, console: Console | None = None) -> None:
        """By default it writes to stderr."""
        self.console = Console(stderr=True) if console is None else console
        self._open = ExitStack()
        self._show: Listener | None = None
        self._bar: tuple[Progress, Any] | None = None

    def __enter__(self) -> Display:
        return self

    def __exit__(self, *failure: Any) -> None:
        self._close()

    def __call__(self, event: Event) -> None:
        """Show an event."""
        if "activity" in event:
            self._progress(event)
        elif "started" in event:
            self._start(event)
        elif "finished" in event:
            self._close()
        elif self._show is not None:
            self._show(event)
        elif "message" in event:
            _print(self.console, event["message"])

    def _start(self, event: Event) -> None:
        self._close()
        facts = f"{event['parameters']:,} parameters, {event['precision']}, {event['device']}"
        _print(self.console, facts)
        if event["step"]:
            _print(self.console, f"resuming at step {event['step']:,}")
        standing = Standing(str(event["started"]), event["max_steps"], event["unit"])
        self._show = self._open.enter_context(open_display(self.console, standing))
        if self.console.is_interactive:  # a resumed run shows its curve from the beginning
            from regard.training.checkpoints.run_folder import JOURNAL, Journal

            for earlier in Journal(event["started"] / JOURNAL):
                self._show(earlier)

    def _progress(self, event: Event) -> None:
        if self._bar is None and self.console.is_interactive:
            bar = self._open.enter_context(Progress(console=self.console, transient=True))
            self._bar = bar, bar.add_task(event["activity"], total=event["total"])
        if self._bar is not None:
            bar, task = self._bar
            bar.update(task, completed=event["done"])
            if event["done"] >= event["total"]:
                self._close()

    def _close(self) -> None:
        self._open.close()
        self._show = self._bar = None


@contextmanager
def open_display(console: Console, standing: Standing) -> Iterator[Listener]:
    """Show the training on a console; yields a listener.

    Args:
        console: a terminal gets a live panel, anything else plain lines without escape codes.
        standing: the state of the run, which has heard nothing yet.
    """
    if console.is_interactive:
        panel = Panel(standing)
        # Other output to the terminal appears above the panel; output to a file must arrive there.
        with Live(
            panel,
            console=console,
            refresh_per_second=REFRESHES,
            vertical_overflow="crop",
            redirect_stdout=sys.stdout.isatty(),
            redirect_stderr=sys.stderr.isatty(),
        ):
            yield partial(_show_in_panel, console, panel)
    else:
        lines = _Lines(console, standing)
        try:
            yield lines.hear
        finally:
            lines.close()


def _show_in_panel(console: Console, panel: Panel, event: Event) -> None:
    panel.hear(event)
    if "message" in event:
        _print(console, event["message"])  # it stays, above the panel


def _print(console: Console, message: object) -> None:
    console.print(Text("\n".join(map(visible, str(message).split("\n")))), soft_wrap=True)


class _Lines:
    """Lines for a log: the state of the run every few seconds, and every validation."""

    def __init__(self, console: Console, standing: Standing) -> None:
        self.console, self.standing = console, standing
        self.since, self.pending = monotonic(), False

    def hear(self, event: dict[str, Any]) -> None:
        self.standing.hear(event)
        if "message" in event:
            _print(self.console, event["message"])
        if is_number(event.get("loss")):
            self.pending = True
            if monotonic() - self.since >= EVERY:
                self._step()
        if is_number(event.get("valid_loss")):
            self._validation(event)

    def close(self) -> None:
        """The last line has the last step."""
        if self.pending:
            self._step()

    def _step(self) -> None:
        now = self.standing
        words = [f"step {now.steps}"]
        if now.loss is not None:
            words.append(f"loss {now.loss:.3f}")
        words += [f"{name} {value}" for name, value in now.beside_the_loss]
        if now.speed is not None:
            words.append(f"{now.speed:,.0f} tokens/s")
        if now.rate is not None:
            words.append(f"learning rate {now.rate:.2e}")
        if now.valid_loss.best is not None:
            words.append(f"best valid loss {now.valid_loss.best:.3f}")
        if now.seconds_left is not None:
            words.append(f"about {duration(now.seconds_left)} left")
        self._print("  ".join(words))
        self.since, self.pending = monotonic(), False

    def _validation(self, event: dict[str, Any]) -> None:
        now = self.standing
        if now.averaged and "averaged" in event:
            self._print("averaged over {} checkpoints: valid loss {:.3f}".format(*now.averaged))
            return
        words = [f"step {now.step:,}  valid loss {now.valid_loss.last:.3f}"]
        if now.valid_accuracy.last is not None:
            words.append(f"accuracy {now.valid_accuracy.last:.1%}")
        if now.valid_bleu.last is not None:
            words.append(f"BLEU {now.valid_bleu.last:.2f}")
        words += [f"{name} {value}" for name, value in now.others.items()]
        if now.valid_loss.best_step == now.step:
            words.append("best so far")
        self._print("  ".join(words))
        if "sample" in event and now.sample.outputs:
            self._print(f"  source     {now.sample.source}")
            self._print(f"  output     {now.sample.outputs[-1][1]}")
            self._print(f"  reference  {now.sample.reference}")

    def _print(self, line: str) -> None:
        self.console.print(Text(line), soft_wrap=True)
