"""API keys and rate limits. A key file has one JSON object per line: a name and the SHA-256 of the key.

A key is 32 random bytes, so a slow hash would gain nothing: there is no list of likely keys to try. A running
server reads the file again when it changes, so keys can be added and revoked. The audit log names keys, never
their secrets.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import secrets
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from regard.durable import locked, write_atomically
from regard.errors import ConfigError, reason
from regard.serve.http.errors import ApiError

log = logging.getLogger("regard.serve.audit")

PREFIX = "regard-"
REFRESH_S = 1.0
"""Seconds after which a change of the key file takes effect."""
BUCKETS = 10_000
"""Names that a rate limiter remembers; the one not seen for longest is forgotten first."""


@dataclass(frozen=True, slots=True)
class Key:
    """A key, without the secret."""

    name: str
    sha256: str
    requests_a_minute: int | None = None
    """None for the server's default."""


def new_key(file: Path, name: str) -> str:
    """Add a key to a file, which is created if needed; returns the secret, which is stored nowhere.

    Raises:
        ConfigError: the name is empty or exists, the file is not a key file, or it cannot be written.
    """
    if not name.strip() or not name.isprintable():
        raise ConfigError(f"a key needs a printable name, not {name!r}", str(file), code="bad_key_name")
    secret = PREFIX + secrets.token_urlsafe(32)
    with _changing(file):
        keys = read_keys(file) if file.exists() else []
        if name in {key.name for key in keys}:
            problem = f"the key {name!r} exists already; choose another name, or revoke it first"
            raise ConfigError(problem, str(file), code="bad_key_name")
        _write(file, [*keys, Key(name, _hash(secret))])
    return secret


def revoke_key(file: Path, name: str) -> None:
    """Remove a key from a file; running servers refuse it within a second.

    Raises:
        ConfigError: there is no such key, the file is not a key file, or it cannot be written.
    """
    with _changing(file):
        keys = read_keys(file)
        if name not in (names := [key.name for key in keys]):
            known = f"there are {', '.join(names)}" if names else "the file has none"
            raise ConfigError(f"there is no key {name!r}; {known}", str(file), code="bad_key_name")
        _write(file, [key for key in keys if key.name != name])


@contextmanager
def _changing(file: Path) -> Iterator[None]:
    """Keep other processes from changing the file; an error of the system is a ConfigError."""
    try:
        with locked(file):
            yield
    except OSError as error:
        raise ConfigError(f"cannot be written: {reason(error)}", str(file), code="unwritable_file") from error


def _write(file: Path, keys: list[Key]) -> None:
    lines = [{k: v for k, v in asdict(key).items() if v is not None} for key in keys]
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    write_atomically(file, text, mode=0o600)


def read_keys(file: Path) -> list[Key]:
    """The keys of a file.

    Raises:
        ConfigError: the file cannot be read, or a line is not a key.
    """
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError as error:
        raise ConfigError(
            "there is no such file; --new-key NAME creates it", str(file), code="missing_file"
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot be read: {error}", str(file), code="unreadable_file") from error
    problems, keys = [], []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            key = Key(**json.loads(line))
        except (ValueError, TypeError):
            problems.append(f'line {number} is not a key: expected {{"name": …, "sha256": …}}')
            continue
        if problem := _problem(key):
            problems.append(f"line {number}: {problem}")
        keys.append(key)
    if problems:
        raise ConfigError(problems, str(file), code="bad_key_file")
    return keys


def _problem(key: Key) -> str | None:
    if not isinstance(key.name, str) or not key.name:
        return "name is not a string"
    if not isinstance(key.sha256, str) or len(key.sha256) != 64 or set(key.sha256) - set("0123456789abcdef"):
        return "sha256 is not 64 hexadecimal digits; `regard serve --new-key NAME` writes a line"
    rate = key.requests_a_minute
    if rate is not None and (not isinstance(rate, int) or isinstance(rate, bool) or rate < 1):
        return f"requests_a_minute = {rate!r} is not a positive integer"
    return None


class KeyRing:
    """The keys of a server; those of a file follow its changes."""

    def __init__(
        self,
        keys: list[Key],
        file: Path | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Hold keys, which were read from `file` if one is given."""
        self._file, self._clock = file, clock
        self._version = None if file is None else _version(file)
        self._checked = clock()
        self._keys = {key.sha256: key for key in keys}
        self._used: Counter[str] = Counter()
        self._addresses: dict[str, set[str]] = {}
        self._n_refused = 0
        for key in keys:
            log.warning("key %r: accepted", key.name)

    @classmethod
    def of_file(cls, file: Path) -> KeyRing:
        """The keys of a file.

        Raises:
            ConfigError: it cannot be read, or a line is not a key.
        """
        return cls(read_keys(file), file)

    def find(self, secret: str) -> Key | None:
        """The key with this secret; None if there is none."""
        self._refresh()
        # The lookup is by hash, so its duration reveals nothing about the keys.
        return self._keys.get(_hash(secret))

    def used(self, key: Key, address: str) -> None:
        """Count a request, and log the first one from an address."""
        self._used[key.name] += 1
        seen = self._addresses.setdefault(key.name, set())
        if address not in seen and len(seen) < BUCKETS:
            seen.add(address)
            log.warning("key %r: first used from %s", key.name, address)

    def refused(self, address: str) -> None:
        """Count a request with an unknown key; the first ones and every thousandth are logged."""
        self._n_refused += 1
        if self._n_refused <= 10 or self._n_refused % 1000 == 0:
            log.warning("unknown key from %s: refused, the %s so far", address, f"{self._n_refused:,}")

    def close(self) -> None:
        """Log how often each key was used."""
        for key in self._keys.values():
            log.warning("key %r: %s requests", key.name, f"{self._used[key.name]:,}")

    def _refresh(self) -> None:
        """Read the file again if it has changed; keys that were read stay if it cannot be read.

        This runs on the event loop, before every decision: a revoked key must not pass once more. It asks the
        system for the file's times once a second, and reads the file only after a change.
        """
        if self._file is None or (now := self._clock()) < self._checked + REFRESH_S:
            return
        self._checked = now
        if (version := _version(self._file)) == self._version:
            return
        self._version = version
        try:
            keys = {key.sha256: key for key in read_keys(self._file)}
        except ConfigError as error:
            log.warning("the key file has changed, and the old keys stay valid: %s", error)
            return
        for change, names in (("revoked", self._keys.keys() - keys), ("accepted", keys.keys() - self._keys)):
            for digest in names:
                log.warning("key %r: %s", (self._keys | keys)[digest].name, change)
        self._keys = keys


def _version(file: Path) -> tuple[int, ...] | None:
    """Facts of a file that change with its content; None if it is missing."""
    try:
        facts = file.stat()
    except OSError:
        return None
    return facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


class RateLimiter:
    """Token buckets, one per name."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, name: str, per_minute: int, what: str = "requests") -> None:
        """Count one.

        Raises:
            ApiError: there were too many in the last minute.
        """
        now = self._clock()
        level, then = self._buckets.pop(name, (float(per_minute), now))
        level = min(float(per_minute), level + (now - then) * per_minute / 60)
        self._buckets[name] = (level - 1 if level >= 1 else level), now
        if len(self._buckets) > BUCKETS:
            self._buckets.popitem(last=False)
        if level < 1:
            seconds = math.ceil((1 - level) * 60 / per_minute)
            message = f"The limit is {per_minute:,} {what} per minute. Retry in {seconds} s."
            raise ApiError(429, message, code="rate_limit", retry_after=max(1, seconds))
