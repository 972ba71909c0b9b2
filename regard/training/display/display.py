"""What a run shows while it goes on: a live panel on a terminal, plain lines in a log."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from time import monotonic
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.text import Text

from regard.look.figures.curves import is_number
from regard.look.trace.tokens import visible
from regard.training.display.panel import Panel
from regard.training.display.standing import Standing, duration

Tell = Callable[[dict[str, Any]], None]

REFRESHES = 2
"""A second: often enough to look alive. A drawing takes about 5 ms, so the panel costs 1% of one core."""
EVERY = 5.0
"""Seconds from one line of a log to the next."""


@contextmanager
def open_display(console: Console, standing: Standing) -> Iterator[Tell]:
    """Show a run on a console for as long as it lasts; what is yielded wants to hear every event.

    Args:
        console: a terminal gets one live panel, anything else plain lines without escape codes.
        standing: that of the run, which has heard nothing yet.
    """
    if console.is_interactive:
        panel = Panel(standing)
        # What others print to a terminal stays above the panel; what they send elsewhere must arrive there.
        with Live(
            panel,
            console=console,
            refresh_per_second=REFRESHES,
            vertical_overflow="crop",
            redirect_stdout=sys.stdout.isatty(),
            redirect_stderr=sys.stderr.isatty(),
        ):
            yield partial(_tell, console, panel)
    else:
        lines = _Lines(console, standing)
        try:
            yield lines.hear
        finally:
            lines.close()


def _tell(console: Console, panel: Panel, event: dict[str, Any]) -> None:
    panel.hear(event)
    if "said" in event:
        console.print(Text(visible(str(event["said"]))))  # it stays, above the panel


class _Lines:
    """Lines for a log: where the run stands, every few seconds, and every validation."""

    def __init__(self, console: Console, standing: Standing) -> None:
        self.console, self.standing = console, standing
        self.since, self.unsaid = monotonic(), False

    def hear(self, event: dict[str, Any]) -> None:
        self.standing.hear(event)
        if "said" in event:
            self._print(visible(str(event["said"])))
        if is_number(event.get("loss")):
            self.unsaid = True
            if monotonic() - self.since >= EVERY:
                self._step()
        if is_number(event.get("valid_loss")):
            self._validation(event)
        if isinstance(event.get("test"), dict):
            scores = [f"{name} {value:.2f}" for name, value in self.standing.test.items()]
            self._print("  ".join(["test", *scores]))

    def close(self) -> None:
        """A log ends with where the run stood."""
        if self.unsaid:
            self._step()

    def _step(self) -> None:
        now = self.standing
        words = [f"step {now.step:,} of {now.max_steps:,}"]
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
        self.since, self.unsaid = monotonic(), False

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
            words.append("the best so far")
        self._print("  ".join(words))
        if "sample" in event and now.sample.outputs:
            self._print(f"  source     {now.sample.source}")
            self._print(f"  output     {now.sample.outputs[-1][1]}")
            self._print(f"  reference  {now.sample.reference}")

    def _print(self, line: str) -> None:
        self.console.print(Text(line), soft_wrap=True)
