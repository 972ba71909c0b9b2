"""What has been done of a corpus: each shard a file, whole or not there, named by the lines it is made of.

manifest.json                       which model, which options: a run that goes on must have the same
00000001-<hash of its lines>.jsonl  a line for each line of the shard
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from regard.durable import sync_folder, write_atomically
from regard.engine.line_by_line import Written
from regard.errors import ConfigError, CorpusError
from regard.scale.shards import Ticket

MANIFEST = "manifest.json"


class Ledger:
    """The shards that are done."""

    def __init__(self, folder: Path, about: Mapping[str, Any]) -> None:
        """Open a folder, or make one.

        Args:
            folder: where the shards are.
            about: all that decides what becomes of a line, as JSON can hold it.

        Raises:
            ConfigError: the folder holds something else, or cannot be written.
        """
        self.folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
            there = sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))
            if there and MANIFEST not in there:
                raise ConfigError(f"{folder} holds something else ({there[0]}): name another --shards folder")
            if there:
                self._refuse_other_runs(about)
            else:
                write_atomically(folder / MANIFEST, json.dumps(about, indent=2, ensure_ascii=False) + "\n")
        except OSError as error:
            raise ConfigError(f"{folder} cannot be used for shards: {error.strerror or error}") from error

    def __contains__(self, ticket: Ticket) -> bool:
        return self._place(ticket).is_file()

    def keep(self, ticket: Ticket, written: list[Written]) -> None:
        """Write down what became of a shard's lines."""
        assert len(written) == ticket.n_lines, f"{ticket.where}: {len(written)} lines came back"
        lines = (json.dumps(each, ensure_ascii=False) for each in written)
        write_atomically(self._place(ticket), "".join(line + "\n" for line in lines))
        sync_folder(self.folder)

    def read(self, ticket: Ticket) -> list[Written]:
        """What became of a shard's lines.

        Raises:
            CorpusError: somebody has changed the file.
        """
        place = self._place(ticket)
        try:
            tables = [json.loads(line) for line in place.read_text(encoding="utf-8").split("\n")[:-1]]
            found = [Written(text, engine, tuple(notes), spoilt) for text, engine, notes, spoilt in tables]
        except (OSError, ValueError, TypeError) as error:
            raise CorpusError(f"{place}: cannot be read: {error}; remove it to have it made again") from error
        if len(found) != ticket.n_lines:
            lines = f"has {len(found):,} lines, and its shard {ticket.n_lines:,}"
            raise CorpusError(f"{place}: {lines}; remove it to have it made again")
        return found

    def _place(self, ticket: Ticket) -> Path:
        return self.folder / f"{ticket.name}.jsonl"

    def _refuse_other_runs(self, about: Mapping[str, Any]) -> None:
        try:
            was = json.loads((self.folder / MANIFEST).read_text(encoding="utf-8"))
        except ValueError as error:
            raise ConfigError(f"{self.folder / MANIFEST} is not JSON: {error}") from error
        other = [name for name in {**was, **about} if was.get(name) != about.get(name)]
        if other:
            differs = [f"{name} was {was.get(name)!r} and is {about.get(name)!r}" for name in other]
            raise ConfigError(
                [*differs, "these shards are of another run: name another --shards folder"], str(self.folder)
            )
