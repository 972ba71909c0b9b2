"""Workers of a Ray cluster, with one engine each, and the shards of a corpus that they translate.

A worker has one shard at a time, so it is known which shard a worker died of. A worker that dies is replaced,
and its shard is given to another.
"""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from regard.engine.loading import EngineName
from regard.engine.phrases.glossary import read_glossary
from regard.engine.translator import LineTranslator, OutputLine
from regard.errors import ConfigError, RegardError
from regard.exchange.ctranslate2.weights_file import Quantisation
from regard.loaded import load
from regard.scale.cluster import import_ray
from regard.scale.shipping import Parcel, unpacked
from regard.text.files.lines import InputLine
from regard.version import __version__

SHARD_LINES = 2048
"""Lines of a shard: enough to sort by length, and at most about a minute of work, which a worker may lose."""
SHARD_CHARACTERS = 1 << 20
"""A shard of this many characters takes no more lines."""
TRIES = 3
"""A shard is given up after this many workers died of it; so is a run when this many fail to start."""


class ShardKey(NamedTuple):
    """What identifies a shard while its lines are elsewhere."""

    name: str
    """Its number and the hash of its lines."""
    n_lines: int
    where: str
    """Its file and lines, for messages."""


@dataclass(frozen=True)
class Shard:
    """Consecutive lines of a corpus."""

    number: int
    lines: tuple[InputLine, ...]

    @cached_property
    def key(self) -> ShardKey:
        """What identifies it."""
        digest = sha256(json.dumps(self.lines).encode("utf-8", "surrogatepass")).hexdigest()
        first, last = self.lines[0], self.lines[-1]
        end = f"{last.number}" if first.name == last.name else f"{last.name}:{last.number}"
        where = f"{first.name or 'texts'}:{first.number}-{end}"
        return ShardKey(f"{self.number:08}-{digest[:32]}", len(self.lines), where)


def cut(blocks: Iterable[list[InputLine]], max_lines: int = SHARD_LINES) -> Iterator[Shard]:
    """Cut lines into shards, in order; the cuts depend on the lines alone."""
    number, held, characters = 1, list[InputLine](), 0
    for line in (line for block in blocks for line in block):
        held.append(line)
        characters += len(line.text)
        if len(held) >= max_lines or characters >= SHARD_CHARACTERS:
            yield Shard(number, tuple(held))
            number, held, characters = number + 1, [], 0
    if held:
        yield Shard(number, tuple(held))


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkerSettings:
    """How workers translate lines."""

    engine: EngineName = "auto"
    device: str = "auto"
    """`cuda` gives every worker a GPU; otherwise none has one."""
    threads: int = 1
    """CPU cores of one worker."""
    quantisation: Quantisation | None = None
    scores: bool = False
    as_json: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)
    """Fields of `TranslateOptions`; `whole_lines` is true by default."""

    def portable(self) -> WorkerSettings:
        """The settings for other machines: with the glossary's content, and with a device that all have.

        Raises:
            CorpusError: the glossary cannot be read.
        """
        options = {"whole_lines": True, **self.options}
        if isinstance(glossary := options.get("glossary"), str | Path):
            options["glossary"] = read_glossary(glossary)
        return replace(self, options=options, device="cpu" if self.device == "auto" else self.device)

    def writer(self, models: Sequence[Path]) -> LineTranslator:
        """The translator of lines; it loads its engine at the first line.

        Raises:
            BundleError: a model folder is missing or damaged.
            ConfigError: the engine cannot run the model.
            RequestError: the options do not fit the model.
        """
        loaded = load(
            models if len(models) > 1 else models[0],
            engine=self.engine,
            device=self.device,
            threads=self.threads,
            quantisation=self.quantisation,
        )
        return LineTranslator(
            loaded.translator(**self.options),
            scores=self.scores,
            as_json=self.as_json,
        )

    def fingerprint(self, model_keys: Sequence[str]) -> dict[str, Any]:
        """Everything that a translation depends on, as JSON values; the keys identify the models."""
        options = {name: value for name, value in self.options.items() if value not in (None, ())}
        return {
            "regard": __version__,
            "models": list(model_keys),
            "engine": self.engine,
            "device": self.device,
            "quantisation": self.quantisation,
            "scores": self.scores,
            "as_json": self.as_json,
            "options": {name: _json_value(value) for name, value in sorted(options.items())},
        }


def _json_value(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(sorted(value.items()))
    if isinstance(value, list | tuple):
        return [_json_value(item) for item in value]
    return value if isinstance(value, str | int | float | bool) else repr(value)


class Worker:
    """A process of the cluster with its own engine."""

    def __init__(self, settings: WorkerSettings, parcels: Sequence[Parcel]) -> None:
        self._settings, self._parcels = settings, parcels
        self._writer: LineTranslator | None = None

    def begin(self) -> str:
        """The version of regard on this machine."""
        return __version__

    def write(self, lines: Sequence[InputLine]) -> list[OutputLine]:
        """The translations of lines."""
        if self._writer is None:
            self._writer = self._settings.writer([unpacked(parcel) for parcel in self._parcels])
        return self._writer(lines)


class WorkerPool:
    """Workers that translate shards in parallel."""

    def __init__(self, settings: WorkerSettings, parcels: Sequence[Parcel], n_workers: int) -> None:
        self._ray = import_ray()
        self._settings, self._parcels, self._n_workers = settings, parcels, n_workers
        self._busy: dict[Any, tuple[Any, Shard | None]] = {}
        """Pending results of Ray: the worker, and its shard, or None while the worker starts."""
        self._deaths: Counter[str] = Counter()
        self._failed_starts = 0
        self.lost: list[ShardKey] = []
        """Shards that were given up."""

    def translated(self, shards: Iterator[Shard]) -> Iterator[tuple[Shard, list[OutputLine]]]:
        """The translations of every shard, in the order in which they are finished.

        Raises:
            RegardError: the model refuses the options, or workers cannot start.
        """
        idle = deque[Any]()
        waiting = deque(islice(shards, self._n_workers))
        for _ in waiting:
            self._start()
        try:
            while self._busy:
                (ended,), _ = self._ray.wait(list(self._busy), num_returns=1)
                worker, shard = self._busy.pop(ended)
                result = self._result(ended, worker, shard)
                if result is not None:
                    idle.append(worker)
                elif shard is not None and shard.key not in self.lost:
                    waiting.appendleft(shard)
                waiting.extend(islice(shards, not waiting))
                if result is None and waiting:
                    self._start()
                while idle and waiting:
                    self._give(idle.popleft(), waiting.popleft())
                    waiting.extend(islice(shards, not waiting))
                if result is not None and shard is not None:
                    yield shard, result
        finally:
            for worker in [*idle, *(worker for worker, _ in self._busy.values())]:
                self._ray.kill(worker)

    def _start(self) -> None:
        settings = self._settings
        resources = {"num_gpus": 1} if settings.device == "cuda" else {"num_cpus": settings.threads}
        worker: Any = self._ray.remote(Worker).options(**resources).remote(settings, self._parcels)
        self._busy[worker.begin.remote()] = worker, None

    def _give(self, worker: Any, shard: Shard) -> None:
        self._busy[worker.write.remote(shard.lines)] = worker, shard

    def _result(self, ended: Any, worker: Any, shard: Shard | None) -> list[OutputLine] | None:
        """A worker's translations, none after its start; None if it died."""
        from ray.exceptions import RayError, RayTaskError

        try:
            value = self._ray.get(ended)
        except RayTaskError as error:
            if isinstance(error.cause, RegardError):
                raise error.cause from None
            raise
        except RayError as error:
            self._ray.kill(worker)  # it may be alive and only out of Ray's reach
            self._count_death(shard, str(error))
            return None
        if shard is not None:
            return list(value)
        self._failed_starts = 0
        if value != __version__:
            problem = f"a machine of the cluster has regard {value}, this machine has {__version__}"
            raise ConfigError(f"{problem}: install the same version on all", code="version_mismatch")
        return []

    def _count_death(self, shard: Shard | None, why: str) -> None:
        if shard is None:
            self._failed_starts += 1
            if self._failed_starts >= TRIES:
                needed = f"regard {__version__} must be installed on every machine of the cluster"
                problem = f"{TRIES} workers ended while they started; {needed}. Ray says: {why}"
                raise ConfigError(problem, code="worker_died")
            return
        self._deaths[shard.key.name] += 1
        if self._deaths[shard.key.name] >= TRIES:
            self.lost.append(shard.key)
