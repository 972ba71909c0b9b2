"""Orders whose workers die at a certain line: of an order, or killed from outside."""

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from regard.scale.order import Order

EXACT = "float32"  # at int8, rounding can depend on what else is in a batch


@dataclass(frozen=True, kw_only=True, slots=True)
class Watched(Order):
    """Notes down every shard that is begun, by the text of its first line."""

    folder: Path

    def writer(self, models):
        write = Order.writer(self, models)

        def watched(lines):
            with (self.folder / "begun").open("a", encoding="utf-8") as log:
                log.write(lines[0].text + "\n")
            self.meet(lines)
            return write(lines)

        return watched

    def meet(self, lines):
        """What happens before lines are translated."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Waiting(Watched):
    """The first worker that comes to a line says which process it is, and waits to be killed."""

    line: str

    def meet(self, lines):
        pid = self.folder / "pid"
        if self.line in [line.text for line in lines] and not pid.exists():
            pid.with_suffix(".new").write_text(str(os.getpid()))
            pid.with_suffix(".new").rename(pid)
            time.sleep(60)


@dataclass(frozen=True, kw_only=True, slots=True)
class Deadly(Watched):
    """Every worker that comes to a line dies of it."""

    line: str

    def meet(self, lines):
        if self.line in [line.text for line in lines]:
            os.kill(os.getpid(), signal.SIGKILL)


class Unstartable(Order):
    """Whoever reads it dies of it."""

    def __reduce__(self):
        return os._exit, (1,)


class Outdated(Order):
    """Whoever reads it is of an older version."""

    def __reduce__(self):
        return _older, ()


def _older():
    from regard.scale import crew

    crew.__version__ = "0.0.1"
    return Order()
