"""A corpus of any size through the workers of a Ray cluster: in order, nothing lost, nothing twice.

Ray Data would read, map and write; what it could not do is told in docs/experiments.md.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.durable import open_atomically
from regard.engine.line_by_line import Written
from regard.errors import CorpusError
from regard.scale.cluster import AUTO, joined, ray_or_refuse
from regard.scale.ledger import Ledger
from regard.scale.order import Order
from regard.scale.shards import SHARD_LINES, Shard, Ticket, cut, lines_of
from regard.scale.shipping import packed
from regard.text.files.lines import InputLine


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a corpus."""

    n_lines: int
    n_spoilt: int
    """Lines that could not be read, and whose translations are empty."""
    out: Path


def translate(
    files: Path | str | Sequence[Path | str],
    out: Path | str,
    *,
    model: Path | str | Sequence[Path | str],
    address: str = AUTO,
    workers: int | None = None,
    shards: Path | str | None = None,
    shard_lines: int = SHARD_LINES,
    order: Order | None = None,
) -> Outcome:
    """Translate files line by line: line i of the output belongs to line i of the files, one after another.

    Args:
        files: plain text in UTF-8, or the same packed with gzip, xz or zstd.
        out: where the translations go; it appears when all are there.
        model: a model folder, or a run's; several are an ensemble. Other machines need not see it.
        address: `local`, `auto`, or HOST:PORT of a cluster's head.
        workers: how many to start, one engine each; by default as many as there is room for.
        shards: a folder for what is done: with the same one, a run that was cut goes on where it stopped.
        shard_lines: lines that a worker takes on at a time.
        order: how to translate.

    Raises:
        ConfigError: Ray is not installed, nobody answers, or the shards are of another run.
        CorpusError: a file cannot be read, or lines end their workers again and again.
        BundleError: a model folder is missing or damaged.
        RequestError: what is asked for cannot be done.
    """
    named, out = [files] if isinstance(files, Path | str) else list(files), Path(out)
    models = [Path(model)] if isinstance(model, Path | str) else [Path(each) for each in model]
    run = CorpusRun(models, order or Order(), address=address, workers=workers, shards=shards)
    n_lines = n_spoilt = 0
    with open_atomically(out) as file:
        for block in run.written(lines_of(named), shard_lines):
            file.writelines(f"{each.text}\n" for each in block)
            n_lines, n_spoilt = n_lines + len(block), n_spoilt + sum(each.spoilt for each in block)
    return Outcome(n_lines, n_spoilt, out)


class CorpusRun:
    """One way through a corpus."""

    def __init__(
        self,
        models: Sequence[Path],
        order: Order,
        *,
        address: str = AUTO,
        workers: int | None = None,
        shards: Path | str | None = None,
    ) -> None:
        """Check what is asked for, before anything is started.

        Raises:
            RegardError: see `translate`.
        """
        ray_or_refuse()
        self._models, self._order = models, order.carried()
        self._order.writer(models)
        self._address, self._workers = address, workers
        about = self._order.decides([packed(model).key for model in models])
        self._for_now = shards is None
        self._ledger = Ledger(Path(shards or tempfile.mkdtemp(prefix="regard-shards-")), about)

    @property
    def shards(self) -> Path:
        """Where what is done is kept; where no folder was named, until all is done."""
        return self._ledger.folder

    def written(
        self, blocks: Iterable[list[InputLine]], shard_lines: int = SHARD_LINES
    ) -> Iterator[list[Written]]:
        """What becomes of each line, in the order of the lines, as soon as all before it are done.

        Raises:
            RegardError: see `translate`.
        """
        with joined(self._address) as cluster:
            import ray

            from regard.scale.crew import Crew

            gpu = self._order.device == "cuda"
            n_workers = cluster.fitting(self._workers, "workers", threads=self._order.threads, gpu=gpu)
            parcels = [packed(model, None if cluster.is_local else ray) for model in self._models]
            yield from self._in_order(cut(blocks, shard_lines), Crew(self._order, parcels, n_workers))
        if self._for_now:
            shutil.rmtree(self.shards, ignore_errors=True)

    def _in_order(self, shards: Iterator[Shard], crew: Any) -> Iterator[list[Written]]:
        awaited = deque[Ticket]()

        def missing() -> Iterator[Shard]:
            for shard in shards:
                awaited.append(shard.ticket)
                if shard.ticket not in self._ledger:
                    yield shard

        def ready() -> Iterator[list[Written]]:
            while awaited and awaited[0] in self._ledger:
                yield self._ledger.read(awaited.popleft())

        for shard, written in crew.done(missing()):
            self._ledger.keep(shard.ticket, written)
            yield from ready()
        yield from ready()
        if crew.lost:
            where = ", ".join(ticket.where for ticket in crew.lost)
            kept = f"all else is done: with --shards {self.shards} only these are tried again"
            raise CorpusError(f"{where}: every worker that took these lines on died; {kept}")
