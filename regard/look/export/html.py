"""One HTML file that shows a trace: the page's modules and the data in it, and nothing from anywhere else.

Modules are an import map of data: URLs, so that the file works from disk without a server. Its policy lets it
run these modules, draw, and do nothing else; texts are data, whatever they spell.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from dataclasses import dataclass, replace
from hashlib import sha256
from html import escape
from posixpath import dirname, join, normpath
from typing import Any

import numpy as np

from regard import page
from regard.errors import RequestError
from regard.look import walk_words as words
from regard.look.export.document import DTYPES, alignment, beam, describe, plain, steps
from regard.look.trace.blocks import INFLUENCE, layers_of
from regard.look.trace.data import TraceData
from regard.look.visible import visible
from regard.look.walk import GAPS, Step, walk

LIMIT = 9_800_000
"""Bytes of a file, about: it should fit into a message. Arrays are written as coarsely as that needs."""

_IMPORT = re.compile(r'(?<= from )"(\.[\w./]+)"')
_ENTRY = "saved.js"
_START = f'import {{ start }} from "regard/{_ENTRY}"; '
_START += 'start(JSON.parse(document.getElementById("held").textContent));'


def html(trace: TraceData, *, aligned: dict[str, Any] | None = None) -> str:
    """The whole file.

    Args:
        trace: what it shows.
        aligned: which word comes from which, as `document.alignment` tells it; by default by its usual heads.
    """
    modules, style = _script(json.dumps({"imports": _modules()})), page.read("page.css")
    told = {
        "about": describe(trace),
        "steps": steps(trace),
        "alignment": aligned if aligned is not None else _alignment(trace),
        "influence": None if trace.influence is None else plain(trace.influence),
        "beam": None if trace.beam is None else beam(trace.beam),
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


def _title(trace: TraceData) -> str:
    texts = [side.text for side in (trace.inputs, trace.outputs) if side is not None]
    return " → ".join(text if len(text) <= 60 else text[:59] + "…" for text in texts) or "regard"


def _alignment(trace: TraceData) -> dict[str, Any] | None:
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


def embedded(trace: TraceData, budget: int) -> dict[str, Any]:
    """Arrays as base64, and `precision`: f32 or f16 where all fit into so many bytes, else `top`.

    With `top` there are, for each kind, layer and head, of every query its largest weights, the largest
    first: pairs of a key and a weight in units of 1/65535, two bytes each.
    """
    told = ("said.", INFLUENCE)
    kept = {name: array for name, array in trace.arrays.items() if not name.startswith(told)}
    numbers = sum(array.size for array in kept.values())
    for precision, width in (("f32", 4), ("f16", 2)):
        if numbers * width <= budget:
            arrays = {name: _written(array, DTYPES[precision]) for name, array in kept.items()}
            return {"precision": precision, "arrays": arrays, "sentences": sentences(trace)}
    n_heads = trace.config.n_heads
    rows = sum(layers_of(trace.config, kind) * n_heads * len(trace.queries(kind)) for kind in trace.kinds)
    most = max(1, budget // (4 * rows))
    arrays = {
        f"{kind}.{layer}.{head}": _written(_largest(trace.attention(kind, layer, head), most), "<u2")
        for kind in trace.kinds
        for layer in range(layers_of(trace.config, kind))
        for head in range(n_heads)
    }
    return {"precision": "top", "arrays": arrays, "kept": most}


def sentences(trace: TraceData) -> dict[str, Any]:
    """The words of all walks, with gaps where a token or a number belongs.

    `walks` has for each kind and layer the places of its steps in `steps`. What is said of a mask depends on
    the query, so `masked` has it for one that sees every key and for one that does not. Steps of
    interventions are left out, and told once: whoever works out the numbers knows where they belong.
    """
    plain = replace(trace, interventions=())
    told: list[dict[str, Any]] = []
    walks: dict[str, list[list[int]]] = {kind: [] for kind in trace.kinds}
    for kind in trace.kinds:
        for layer in range(layers_of(trace.config, kind)):
            steps = [_told(step.name, step) for step in walk(plain, kind, layer, 0, 0, GAPS)]
            told += [step for step in steps if step not in told]
            walks[kind].append([told.index(step) for step in steps])
    masked = {
        kind: {
            sees: _told("masked", words.masked(GAPS.token, kind, sees == "all")) for sees in ("all", "some")
        }
        for kind in trace.kinds
    }
    changed = _told("intervention", words.INTERVENTION)
    return {"steps": told, "walks": walks, "masked": masked, "intervention": changed}


def _told(name: str, said: Step | words.Words) -> dict[str, Any]:
    return {
        "name": name,
        "formula": said.formula,
        "latex": said.latex,
        "english": said.english,
        "chinese": said.chinese,
    }


def _largest(weights_LM: np.ndarray, most: int) -> np.ndarray:
    """(queries, most, 2): of each row the keys of its largest weights, and those weights."""
    most = min(most, weights_LM.shape[1])
    keys = np.argpartition(-weights_LM, most - 1, axis=1)[
        :, :most
    ]  # to sort whole rows takes ten times longer
    in_order = np.argsort(-np.take_along_axis(weights_LM, keys, axis=1), axis=1, kind="stable")
    keys = np.take_along_axis(keys, in_order, axis=1)
    shares = np.rint(np.take_along_axis(weights_LM, keys, axis=1) * 65535)
    return np.stack([keys, shares], axis=-1)


def _written(array: np.ndarray, dtype: str) -> dict[str, Any]:
    """Where a number is too large for the precision, the largest that is not: infinities do not add up."""
    if dtype == "<f2":
        array = np.clip(array, -65504, 65504)
    return {"shape": list(array.shape), "data": b64encode(array.astype(dtype).tobytes()).decode("ascii")}


HEIGHT = 640
"""Pixels: a frame that grew with its page would jump while one reads."""


@dataclass(frozen=True, slots=True, repr=False)
class Frame:
    """A page of its own inside of a notebook's. It sees nothing of the notebook, and asks for nothing."""

    page: str
    height: int = HEIGHT

    def __repr__(self) -> str:
        return f"Frame({len(self.page) / 1e6:.1f} MB of HTML, shown by a notebook)"

    def _repr_html_(self) -> str:
        held, may = escape(self.page), "allow-scripts allow-downloads"  # a download is a figure saved
        style = f"width:100%;height:{self.height}px;border:0"
        return f'<iframe srcdoc="{held}" sandbox="{may}" style="{style}"></iframe>'
