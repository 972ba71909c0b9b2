"""Translate a corpus of any size with the workers of a Ray cluster: in order, every line exactly once.

docs/experiments.md says why Ray Data is not used for it.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.durable import open_atomically, write_atomically
from regard.engine.translator import OutputLine, mark_code
from regard.errors import ConfigError, CorpusError
from regard.scale.cluster import AUTO, import_ray, joined
from regard.scale.shipping import packed
from regard.scale.workers import SHARD_LINES, Shard, ShardKey, WorkerPool, WorkerSettings, cut
from regard.text.files import display_name, open_unpacked
from regard.text.files.lines import InputLine, numbered_lines

MANIFEST = "manifest.json"
_CHUNK = 1 << 18


@dataclass(frozen=True, slots=True)
class CorpusResult:
    """What `translate` returns."""

    n_lines: int
    n_unreadable: int
    """Lines that could not be read; their translations are empty."""
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
    settings: WorkerSettings | None = None,
) -> CorpusResult:
    """Translate files line by line: line i of the output belongs to line i of the files, one after another.

    Args:
        files: plain text in UTF-8, optionally compressed with gzip, xz or zstd.
        out: the file of translations; it appears when all are there.
        model: a model folder, or a run's; several are an ensemble. Other machines need not see it.
        address: `local`, `auto`, or HOST:PORT of a cluster's head.
        workers: the number of workers, with one engine each; by default as many as the cluster has room for.
        shards: a folder for finished shards: an interrupted run with the same folder continues.
        shard_lines: lines that a worker translates at a time.
        settings: how to translate.

    Raises:
        ConfigError: Ray is not installed, the address does not answer, or the shards are of another run.
        CorpusError: a file cannot be read, or workers died of some lines again and again.
        BundleError: a model folder is missing or damaged.
        RequestError: the model refuses the settings.
    """
    paths, out = [files] if isinstance(files, Path | str) else list(files), Path(out)
    models = [Path(model)] if isinstance(model, Path | str) else [Path(path) for path in model]
    run = CorpusRun(models, settings or WorkerSettings(), address=address, workers=workers, shards=shards)
    n_lines = n_unreadable = 0
    with open_atomically(out) as file:
        for block in run.written(lines_of(paths), shard_lines):
            file.writelines(f"{line.text}\n".encode() for line in block)
            n_lines, n_unreadable = n_lines + len(block), n_unreadable + sum(line.failed for line in block)
    return CorpusResult(n_lines, n_unreadable, out)


def lines_of(files: Iterable[Path | str]) -> Iterator[list[InputLine]]:
    """The lines of files, one file after another, decompressed where needed; `-` is standard input.

    Raises:
        CorpusError: a file cannot be read.
    """
    for path in files:
        with open_unpacked(path) as stream:
            yield from numbered_lines(iter(lambda: stream.read(_CHUNK), b""), display_name(path))


class CorpusRun:
    """The translation of one corpus."""

    def __init__(
        self,
        models: Sequence[Path],
        settings: WorkerSettings,
        *,
        address: str = AUTO,
        workers: int | None = None,
        shards: Path | str | None = None,
    ) -> None:
        """Check the arguments before anything is started.

        Raises:
            RegardError: see `translate`.
        """
        import_ray()
        self._models, self._settings = models, settings.portable()
        self._settings.writer(models)
        self._address, self._workers = address, workers
        fingerprint = self._settings.fingerprint([packed(model).key for model in models])
        self._is_temporary = shards is None
        self._finished = FinishedShards(
            Path(shards or tempfile.mkdtemp(prefix="regard-shards-")), fingerprint
        )

    @property
    def shards(self) -> Path:
        """The folder of finished shards; a temporary one is removed when all are done."""
        return self._finished.folder

    def written(
        self, blocks: Iterable[list[InputLine]], shard_lines: int = SHARD_LINES
    ) -> Iterator[list[OutputLine]]:
        """The translations of lines, in order, each as soon as all before it are done.

        Raises:
            RegardError: see `translate`.
        """
        with joined(self._address) as cluster:
            settings, ray = self._settings, None if cluster.is_local else import_ray()
            n_workers = cluster.room_for(
                "workers", self._workers, threads=settings.threads, gpu=settings.device == "cuda"
            )
            parcels = [packed(model, ray) for model in self._models]
            yield from self._in_order(
                cut(mark_code(blocks), shard_lines), WorkerPool(settings, parcels, n_workers)
            )
        if self._is_temporary:
            shutil.rmtree(self.shards, ignore_errors=True)

    def _in_order(self, shards: Iterator[Shard], pool: WorkerPool) -> Iterator[list[OutputLine]]:
        pending = deque[ShardKey]()

        def unfinished() -> Iterator[Shard]:
            for shard in shards:
                pending.append(shard.key)
                if shard.key not in self._finished:
                    yield shard

        def ready() -> Iterator[list[OutputLine]]:
            while pending and pending[0] in self._finished:
                yield self._finished.read(pending.popleft())

        for shard, written in pool.translated(unfinished()):
            self._finished.keep(shard.key, written)
            yield from ready()
        yield from ready()
        if pool.lost:
            where = ", ".join(key.where for key in pool.lost)
            rest = f"the rest is done: with --shards {self.shards} only these lines are tried again"
            raise CorpusError(f"{where}: every worker that took these lines died; {rest}", code="worker_died")


class FinishedShards:
    """The finished shards of a corpus: one file each, complete or absent, named after the lines' hash.

    manifest.json                       the model and all options: a run that continues must have the same
    00000001-<hash of its lines>.jsonl  one line for every line of the shard
    """

    def __init__(self, folder: Path, fingerprint: Mapping[str, Any]) -> None:
        """Open a folder, or create it.

        Args:
            folder: where the shards are.
            fingerprint: everything that a translation depends on, as JSON values.

        Raises:
            ConfigError: the folder holds something else, or cannot be written.
        """
        self.folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
            names = sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))
            if names and MANIFEST not in names:
                problem = f"{folder} holds other files ({names[0]}): choose another --shards folder"
                raise ConfigError(problem, code="folder_in_use")
            if names:
                self._refuse_other_runs(fingerprint)
            else:
                text = json.dumps(fingerprint, indent=2, ensure_ascii=False)
                write_atomically(folder / MANIFEST, text + "\n")
        except OSError as error:
            problem = f"{folder} cannot be used for shards: {error.strerror or error}"
            raise ConfigError(problem, code="unwritable_folder") from error

    def __contains__(self, key: ShardKey) -> bool:
        return self._path(key).is_file()

    def keep(self, key: ShardKey, written: list[OutputLine]) -> None:
        """Save the translations of a shard."""
        assert len(written) == key.n_lines, f"{key.where}: {len(written)} lines came back"
        lines = (json.dumps(line, ensure_ascii=False) for line in written)
        write_atomically(self._path(key), "".join(line + "\n" for line in lines))

    def read(self, key: ShardKey) -> list[OutputLine]:
        """The translations of a shard.

        Raises:
            CorpusError: the file is damaged.
        """
        path, remedy = self._path(key), "remove it, and it is made again"
        try:
            rows = [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n")[:-1]]
            written = [OutputLine(text, engine, tuple(notes), spoilt) for text, engine, notes, spoilt in rows]
        except (OSError, ValueError, TypeError) as error:
            raise CorpusError(f"{path}: cannot be read: {error}; {remedy}", code="damaged_shard") from error
        if len(written) != key.n_lines:
            sizes = f"has {len(written):,} lines, its shard has {key.n_lines:,}"
            raise CorpusError(f"{path}: {sizes}; {remedy}", code="damaged_shard")
        return written

    def _path(self, key: ShardKey) -> Path:
        return self.folder / f"{key.name}.jsonl"

    def _refuse_other_runs(self, fingerprint: Mapping[str, Any]) -> None:
        file = self.folder / MANIFEST
        try:
            before = json.loads(file.read_text(encoding="utf-8"))
        except ValueError as error:
            raise ConfigError(f"{file} is not JSON: {error}", code="damaged_shard") from error
        names = [name for name in {**before, **fingerprint} if before.get(name) != fingerprint.get(name)]
        if names:
            changes = [f"{name} was {before.get(name)!r} and is {fingerprint.get(name)!r}" for name in names]
            remedy = "these shards are of another run: choose another --shards folder"
            raise ConfigError([*changes, remedy], str(self.folder), code="other_run")
