"""A corpus in shards: some lines each, known by their place and their content."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from regard.text.files import display_name, open_unpacked
from regard.text.files.lines import InputLine, numbered_lines

SHARD_LINES = 2048
"""Lines of a shard: enough to sort by length, and no more than a minute's work, which a worker may lose."""
SHARD_CHARACTERS = 1 << 20
"""Characters from which on a shard is not made larger."""
_CHUNK = 1 << 18


class Ticket(NamedTuple):
    """What stands for a shard while its lines are elsewhere."""

    name: str
    """Its place and the hash of its lines."""
    n_lines: int
    where: str
    """Its lines, as messages call them."""


@dataclass(frozen=True)
class Shard:
    """Consecutive lines of a corpus."""

    number: int
    lines: tuple[InputLine, ...]

    @cached_property
    def ticket(self) -> Ticket:
        """What it is known by."""
        digest = sha256(json.dumps(self.lines).encode("utf-8", "surrogatepass")).hexdigest()
        first, last = self.lines[0], self.lines[-1]
        end = f"{last.number}" if first.name == last.name else f"{last.name}:{last.number}"
        where = f"{first.name or 'texts'}:{first.number}-{end}"
        return Ticket(f"{self.number:08}-{digest[:32]}", len(self.lines), where)


def lines_of(files: Iterable[Path | str]) -> Iterator[list[InputLine]]:
    """The lines of files, one after another, unpacked where they are packed; `-` is standard input.

    Raises:
        CorpusError: a file cannot be read.
    """
    for path in files:
        with open_unpacked(path) as stream:
            yield from numbered_lines(iter(lambda: stream.read(_CHUNK), b""), display_name(path))


def cut(blocks: Iterable[list[InputLine]], most_lines: int = SHARD_LINES) -> Iterator[Shard]:
    """Shards of lines, in their order; where they are cut depends on the lines alone."""
    number, held, characters = 1, list[InputLine](), 0
    for line in (line for block in blocks for line in block):
        held.append(line)
        characters += len(line.text)
        if len(held) >= most_lines or characters >= SHARD_CHARACTERS:
            yield Shard(number, tuple(held))
            number, held, characters = number + 1, [], 0
    if held:
        yield Shard(number, tuple(held))
