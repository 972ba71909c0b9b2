"""Keys: one JSON object a line, with a name and the SHA-256 of a key, which is shown once, when it is made.

A key is 32 random bytes, so nothing is gained by a slow hash: there is no list of likely keys to try.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from dataclasses import asdict, dataclass
from pathlib import Path

from regard.durable import write_atomically
from regard.errors import ConfigError

PREFIX = "regard-"


@dataclass(frozen=True, slots=True)
class Key:
    """Who may ask, and how often."""

    name: str
    sha256: str
    requests_a_minute: int | None = None
    """None for the server's usual limit."""


def new_key(file: Path, name: str) -> str:
    """Add a key to a file, which is made if there is none; returns the key itself, which is kept nowhere.

    Raises:
        ConfigError: the name is empty or taken, or the file holds something else.
    """
    keys = read_keys(file) if file.exists() else []
    if not name.strip() or not name.isprintable():
        raise ConfigError(f"a key needs a name that can be printed, not {name!r}", str(file))
    if name in {key.name for key in keys}:
        raise ConfigError(f"there is a key {name!r} already; choose another name", str(file))
    secret = PREFIX + secrets.token_urlsafe(32)
    lines = [
        {k: v for k, v in asdict(key).items() if v is not None} for key in (*keys, Key(name, _hash(secret)))
    ]
    write_atomically(file, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))
    file.chmod(0o600)
    return secret


def read_keys(file: Path) -> list[Key]:
    """The keys of a file.

    Raises:
        ConfigError: it cannot be read, or a line is no key.
    """
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError as error:
        raise ConfigError("there is no such file; --new-key NAME makes it, with a key", str(file)) from error
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot be read: {error}", str(file)) from error
    problems, keys = [], []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            key = Key(**json.loads(line))
        except (ValueError, TypeError):
            problems.append(f'line {number} is no key: expected {{"name": …, "sha256": …}}')
            continue
        if problem := _problem(key):
            problems.append(f"line {number}: {problem}")
        keys.append(key)
    if problems:
        raise ConfigError(problems, str(file))
    return keys


def _problem(key: Key) -> str | None:
    if not isinstance(key.name, str) or not key.name:
        return "name is not a text"
    if not isinstance(key.sha256, str) or len(key.sha256) != 64 or set(key.sha256) - set("0123456789abcdef"):
        return "sha256 is not 64 hexadecimal digits; `regard serve --new-key NAME` makes a line"
    rate = key.requests_a_minute
    if rate is not None and (not isinstance(rate, int) or isinstance(rate, bool) or rate < 1):
        return f"requests_a_minute = {rate!r} is not a positive number"
    return None


class KeyRing:
    """Finds the key that somebody shows."""

    def __init__(self, keys: list[Key]) -> None:
        self._keys = {key.sha256: key for key in keys}

    def find(self, secret: str) -> Key | None:
        """Whose it is; None if it is nobody's."""
        # What is looked up is a hash: how long that takes tells nothing about the keys.
        return self._keys.get(_hash(secret))


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
