"""The web page that shows a trace: hand-written ES modules, the same for a saved file and a server."""

from __future__ import annotations

import re
from importlib.resources import files
from posixpath import dirname, join, normpath

TYPES = {"js": "text/javascript", "json": "application/json", "css": "text/css", "html": "text/html"}
"""Media types by file suffix; other files are not part of the page."""

_IMPORT = re.compile(
    r'^import (?P<names>\{[^}]*\}|\w+) from "(?P<path>\.[^"]+)"(?: with \{ type: "json" \})?;$', re.MULTILINE
)
_EXPORT = re.compile(
    r"^export (?=(?:async )?function\b\*? ?(?P<function>\w+)|(?:const|class) (?P<name>\w+)|"
    r"const \{(?P<names>[^}]*)\} = )",
    re.MULTILINE,
)
_OTHER = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)


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


def imports(name: str) -> list[str]:
    """Return the files that a module imports, in order."""
    return [_target(name, found) for found in _IMPORT.finditer(read(name))]


def needed(entry: str) -> list[str]:
    """Return a module and everything that it imports, each after what it imports itself.

    Raises:
        ValueError: modules import each other in a cycle.
    """
    order: list[str] = []

    def visit(name: str, path: tuple[str, ...]) -> None:
        if name in path:
            raise ValueError(f"modules of the page import each other: {' → '.join((*path, name))}")
        if name in order:
            return
        for target in imports(name) if name.endswith(".js") else []:
            visit(target, (*path, name))
        order.append(name)

    visit(entry, ())
    return order


def joined(entry: str) -> str:
    """Return a module and everything that it imports as one script, which imports nothing.

    Each module becomes a function that returns what the module exports. It runs once, after those that it
    imports from, as a browser would run it. Lines stay as they are but for `import` and `export`.

    Raises:
        ValueError: modules import each other in a cycle, or import what is not exported; or a form of
            `import` or `export` is not known here, such as `export let`, which the importing module would see
            change.
    """
    return "".join(f"// {name}\nconst {_scope(name)} = {_wrapped(name)};\n" for name in needed(entry))


def _wrapped(name: str) -> str:
    text = read(name)
    if name.endswith(".json"):
        return text.rstrip()

    def imported(found: re.Match[str]) -> str:
        target, wanted = _target(name, found), found["names"]
        if target.endswith(".json"):
            known = not wanted.startswith("{")
        else:
            known = {each.split(" as ")[0] for each in _listed(wanted)} <= set(_exported(read(target)))
        if not known:
            raise ValueError(f"{name} imports what {target} does not export: {found[0]}")
        return f"const {wanted.replace(' as ', ': ')} = {_scope(target)};"

    exported = _exported(text)
    text = _EXPORT.sub("", _IMPORT.sub(imported, text))
    if unknown := _OTHER.search(text):
        raise ValueError(f"{name} has a form of import or export that cannot be joined: {unknown[0]}")
    return f"(() => {{\n{text}return {{ {', '.join(exported)} }};\n}})()"


def _exported(text: str) -> list[str]:
    """The names that a module exports."""
    found = [_listed(each["names"] or each["function"] or each["name"]) for each in _EXPORT.finditer(text)]
    return [name.rpartition(":")[2].strip() for names in found for name in names]


def _listed(names: str) -> list[str]:
    return [name.strip() for name in names.strip("{} \n").split(",") if name.strip()]


def _target(name: str, found: re.Match[str]) -> str:
    """The file that an import statement names."""
    return normpath(join(dirname(name), found["path"]))


def _scope(name: str) -> str:
    """The variable of a module in a joined script."""
    return "$" + re.sub(r"\W", "_", name)
