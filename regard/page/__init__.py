"""The web page that shows a trace: hand-written ES modules, the same for a saved file and a server."""

from __future__ import annotations

from importlib.resources import files

TYPES = {"js": "text/javascript", "json": "application/json", "css": "text/css", "html": "text/html"}
"""Media types by file suffix; other files are not part of the page."""


def names() -> list[str]:
    """Return the paths of all files of the page, such as `screens/map.js`."""
    found = []
    pending = [("", files(__name__))]
    while pending:
        prefix, folder = pending.pop()
        for entry in folder.iterdir():
            if entry.is_dir():
                pending.append((f"{prefix}{entry.name}/", entry))
            elif entry.name.rpartition(".")[2] in TYPES:
                found.append(prefix + entry.name)
    return sorted(found)


def read(name: str) -> str:
    """Return the text of one of them."""
    return files(__name__).joinpath(*name.split("/")).read_text(encoding="utf-8")
