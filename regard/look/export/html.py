"""One HTML file that shows a trace: the page's modules and the data in it, and nothing from anywhere else.

Modules are an import map of data: URLs, so that the file works from disk without a server. Its policy lets it
run these modules, draw, and do nothing else; texts are data, whatever they spell.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from hashlib import sha256
from html import escape
from posixpath import dirname, join, normpath
from typing import Any

from regard import page
from regard.errors import RequestError
from regard.look.export.document import Tree, alignment, beam, describe, plain, steps
from regard.look.export.embedded import embedded
from regard.look.trace.trace import Trace
from regard.look.visible import visible

LIMIT = 9_800_000
"""Bytes of a file, about: it should fit into a message. Arrays are written as coarsely as that needs."""

_IMPORT = re.compile(r'(?<= from )"(\.[\w./]+)"')
_ENTRY = "saved.js"
_START = f'import {{ start }} from "regard/{_ENTRY}"; '
_START += 'start(JSON.parse(document.getElementById("held").textContent));'


def html(trace: Trace, *, tree: Tree | None = None, aligned: dict[str, Any] | None = None) -> str:
    """The whole file.

    Args:
        trace: what it shows.
        tree: the search that found the output; by default the trace's own.
        aligned: which word comes from which, as `document.alignment` tells it; by default by its usual heads.
    """
    modules, style = _script(json.dumps({"imports": _modules()})), page.read("page.css")
    told = {
        "about": describe(trace),
        "steps": steps(trace),
        "alignment": aligned if aligned is not None else _alignment(trace),
        "influence": None if trace.influence is None else plain(trace.influence),
        "beam": None if (tree := tree or trace.beam) is None else beam(tree),
    }
    room = LIMIT - len(modules) - len(style) - len(json.dumps(told).encode())
    held = _script(json.dumps({**told, **embedded(trace, room * 3 // 4)}, ensure_ascii=False))
    policy = "; ".join(
        [
            "default-src 'none'",
            f"script-src data: {_hash(modules)} {_hash(_START)}",
            f"style-src {_hash(style)}",
            "connect-src data:",  # what the page says is two JSON modules
            "img-src data: blob:",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(visible(_title(trace)))}</title>",
            f"<style>{style}</style>",
            f'<script type="application/json" id="held">{held}</script>',
            f'<script type="importmap">{modules}</script>',
            f'<script type="module">{_START}</script>',
            "",
        ]
    )


def _title(trace: Trace) -> str:
    texts = [side.text for side in (trace.inputs, trace.outputs) if side is not None]
    return " → ".join(text if len(text) <= 60 else text[:59] + "…" for text in texts) or "regard"


def _alignment(trace: Trace) -> dict[str, Any] | None:
    try:
        return alignment(trace)
    except RequestError:
        return None  # the model does not align, or there is nothing to align


def _modules() -> dict[str, str]:
    """Return the modules that a file needs as data: URLs, by the names under which they import each other.

    Relative imports do not work in data: URLs, so `../figures/svg.js` becomes `regard/figures/svg.js`.
    """
    found: dict[str, str] = {}
    needed = [_ENTRY]
    while needed:
        name = needed.pop()
        if f"regard/{name}" not in found:
            text = page.read(name)
            imported = {path: normpath(join(dirname(name), path)) for path in _IMPORT.findall(text)}
            needed += imported.values()
            absolute = _IMPORT.sub(lambda match, to=imported: f'"regard/{to[match[1]]}"', text)
            data = b64encode(absolute.encode()).decode("ascii")
            found[f"regard/{name}"] = f"data:{page.TYPES[name.rpartition('.')[2]]};base64,{data}"
    return found


def _script(text: str) -> str:
    """JSON that ends no script and opens no comment."""
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode('ascii')}'"
