"""API keys and rate limits. A key file has one JSON object per line: a name and the SHA-256 of the key.

A key is 32 random bytes, so a slow hash would gain nothing: there is no list of likely keys to try.
"""

from __future__ import annotations

import hashlib
import json
import math
import secrets
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from regard.durable import locked, write_atomically
from regard.errors import ConfigError
from regard.serve.http.errors import ApiError

PREFIX = "regard-"


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
        ConfigError: the name is empty or exists, or the file is not a key file.
    """
    if not name.strip() or not name.isprintable():
        raise ConfigError(f"a key needs a printable name, not {name!r}", str(file), code="bad_key_name")
    secret = PREFIX + secrets.token_urlsafe(32)
    with locked(file):  # another process may add a key at the same time
        keys = read_keys(file) if file.exists() else []
        if name in {key.name for key in keys}:
            raise ConfigError(
                f"the key {name!r} exists already; choose another name", str(file), code="bad_key_name"
            )
        keys.append(Key(name, _hash(secret)))
        lines = [{k: v for k, v in asdict(key).items() if v is not None} for key in keys]
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        write_atomically(file, text, mode=0o600)
    return secret


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
    """The keys of a server."""

    def __init__(self, keys: list[Key]) -> None:
        self._keys = {key.sha256: key for key in keys}

    def find(self, secret: str) -> Key | None:
        """The key with this secret; None if there is none."""
        # The lookup is by hash, so its duration reveals nothing about the keys.
        return self._keys.get(_hash(secret))


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


class RateLimiter:
    """Token buckets, one per key name; the key file bounds their number."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, name: str, per_minute: int) -> None:
        """Count one request.

        Raises:
            ApiError: there were too many in the last minute.
        """
        now = self._clock()
        level, then = self._buckets.get(name, (float(per_minute), now))
        level = min(float(per_minute), level + (now - then) * per_minute / 60)
        if level < 1:
            self._buckets[name] = level, now
            seconds = math.ceil((1 - level) * 60 / per_minute)
            message = f"The limit of this key is {per_minute:,} requests per minute. Retry in {seconds} s."
            raise ApiError(429, message, code="rate_limit", retry_after=max(1, seconds))
        self._buckets[name] = level - 1, now
