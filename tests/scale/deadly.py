"""Settings whose workers die at a certain line, by themselves or killed from outside."""

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from regard.scale.workers import WorkerSettings

EXACT = "float32"  # at int8, rounding can depend on what else is in a batch


@dataclass(frozen=True, kw_only=True, slots=True)
class Watched(WorkerSettings):
    """Logs every shard that is begun, by the text of its first line."""

    folder: Path

    def writer(self, models):
        write = WorkerSettings.writer(self, models)

        def watched(lines):
            with (self.folder / "begun").open("a", encoding="utf-8") as log:
                log.write(lines[0].text + "\n")
            self.meet(lines)
            return write(lines)

        return watched

    def meet(self, lines):
        """Called before lines are translated."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Waiting(Watched):
    """The first worker that gets to a line writes its process ID, and waits to be killed."""

    line: str

    def meet(self, lines):
        pid = self.folder / "pid"
        if self.line in [line.text for line in lines] and not pid.exists():
            pid.with_suffix(".new").write_text(str(os.getpid()))
            pid.with_suffix(".new").rename(pid)
            time.sleep(60)


@dataclass(frozen=True, kw_only=True, slots=True)
class Deadly(Watched):
    """Every worker that gets to a line dies of it."""

    line: str

    def meet(self, lines):
        if self.line in [line.text for line in lines]:
            os.kill(os.getpid(), signal.SIGKILL)


class Unstartable(WorkerSettings):
    """A process that unpickles it exits."""

    def __reduce__(self):
        return os._exit, (1,)


class Outdated(WorkerSettings):
    """A process that unpickles it has an older version."""

    def __reduce__(self):
        return _older, ()


def _older():
    from regard.scale import workers

    workers.__version__ = "0.0.1"
    return WorkerSettings()
