"""The page that shows a trace: ES modules as they were written, the same for a saved file and a server."""

from __future__ import annotations

from importlib.resources import files

TYPES = {"js": "text/javascript", "json": "application/json", "css": "text/css", "html": "text/html"}
"""What the page is made of, by suffix."""


def names() -> list[str]:
    """The names of all its files."""
    return sorted(file.name for file in files(__name__).iterdir() if file.name.rpartition(".")[2] in TYPES)


def read(name: str) -> str:
    """The text of one of them."""
    return files(__name__).joinpath(name).read_text(encoding="utf-8")
