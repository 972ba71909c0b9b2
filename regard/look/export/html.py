"""One HTML file that shows a trace: the modules of the page and the data, and nothing from elsewhere.

The modules are joined to one script, so that the file works from disk without a server. Its content policy
allows this script and nothing else; texts are data, whatever they contain. A short text is stored with all
arrays, from which the browser computes every head and walk; of a long one, the largest weights of each row.
All of it is compressed.
"""

from __future__ import annotations

import json
import re
import zlib
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from html import escape
from typing import Any

import numpy as np

from regard import page
from regard.errors import RequestError
from regard.look.export.document import DTYPES, alignment, beam, describe, head_summaries, plain, steps
from regard.look.influence.methods import stored_convergence
from regard.look.trace.blocks import INFLUENCE, layers_of
from regard.look.trace.data import TraceData
from regard.look.trace.tokens import visible
from regard.look.walk import TEMPLATE, Step, StepText, mask_sentence, sentence, walk

LIMIT = 4_000_000
"""Approximate bytes of a file: small enough for an e-mail. Arrays are stored as precisely as that allows."""
DEFLATED = 0.87
"""Size of arrays when they are compressed: the digits of numbers are noise, their exponents are not."""
HEIGHT = 640
"""Pixels of a frame in a notebook."""

_ENTRY = "saved.js"
_BLOCK = re.compile(
    r"(?P<of>(?P<stack>encoder|decoder)\.layers\.(?P<layer>\d+)\.)add_and_norm\.(?P<place>\d+)\.output"
)


def html(trace: TraceData, *, aligned: dict[str, Any] | None = None, start: str = "") -> str:
    """The whole file.

    Args:
        trace: what it shows.
        aligned: the word alignment, as `document.alignment` returns it; default: by the default heads.
        start: the part of an address behind `#`, which says how the file opens; default: with all heads.
    """
    script, style = page.joined(_ENTRY), page.read("page.css")
    assert not re.search("</script|<!--", script, re.IGNORECASE), (
        "the page's modules would end their own script"
    )
    about = {
        "start": start,
        "about": describe(trace),
        "steps": steps(trace),
        "summaries": head_summaries(trace),
        "alignment": aligned if aligned is not None else _alignment(trace),
        "influence": _influence(trace),
        "beam": None if trace.beam is None else beam(trace.beam),
    }
    room = LIMIT - len(script.encode()) - len(style) - len(_deflated(json.dumps(about).encode()))
    held = _packed({**about, **embedded(trace, int(room * 3 / 4 / DEFLATED))})
    policy = [
        "default-src 'none'",
        f"script-src {_hash(script)}",
        f"style-src {_hash(style)}",
        "img-src data: blob:",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{"; ".join(policy)}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(visible(_title(trace)))}</title>",
            f"<style>{style}</style>",
            f'<script type="application/json" id="held">{held}</script>',
            f'<script type="module">{script}</script>',
            "",
        ]
    )


@dataclass(frozen=True, slots=True, repr=False)
class Frame:
    """A page in a notebook, isolated from it: without access to the notebook or to the network."""

    page: str
    height: int = HEIGHT

    def __repr__(self) -> str:
        return f"Frame({len(self.page) / 1e6:.1f} MB of HTML, shown by a notebook)"

    def _repr_html_(self) -> str:
        held, may = escape(self.page), "allow-scripts allow-downloads"  # a figure is saved as a download
        style = f"width:100%;height:{self.height}px;border:0"
        return f'<iframe srcdoc="{held}" sandbox="{may}" style="{style}"></iframe>'


def embedded(trace: TraceData, budget: int) -> dict[str, Any]:
    """Arrays in base64 with their `precision`: f32 or f16 if all fit into the budget in bytes, else `top`.

    What is the sum of two other arrays is not stored, but named in `sums`. With `top`, each kind, layer and
    head has the largest weights of every query, largest first: pairs of a key and a weight in units of
    1/65535, two bytes each.
    """
    stored = {
        name: array for name, array in trace.arrays.items() if not name.startswith(("said.", INFLUENCE))
    }
    sums = sums_in(stored)
    kept = {name: array for name, array in stored.items() if name not in sums}
    numbers = sum(array.size for array in kept.values())
    for precision, width in (("f32", 4), ("f16", 2)):
        if numbers * width <= budget:
            arrays = {name: _encoded(array, DTYPES[precision]) for name, array in kept.items()}
            return {"precision": precision, "arrays": arrays, "sums": sums, "sentences": sentences(trace)}
    n_heads = trace.config.n_heads
    rows = sum(layers_of(trace.config, kind) * n_heads * len(trace.queries(kind)) for kind in trace.kinds)
    most = max(1, budget // (4 * rows))
    arrays = {
        f"{kind}.{layer}.{head}": _encoded(_largest(trace.attention(kind, layer, head), most), "<u2")
        for kind in trace.kinds
        for layer in range(layers_of(trace.config, kind))
        for head in range(n_heads)
    }
    return {"precision": "top", "arrays": arrays, "kept": most}


def sums_in(arrays: Mapping[str, np.ndarray]) -> dict[str, tuple[str, str]]:
    """The residual stream, where it is the sum of two other arrays up to rounding, and their names.

    With post-norm it is normalised after the sum, and there are none.
    """
    sums: dict[str, tuple[str, str]] = {}
    stream = {"encoder": "input_embedding.with_positions", "decoder": "output_embedding.with_positions"}
    blocks = (match for name in arrays if (match := _BLOCK.fullmatch(name)))
    for block in sorted(blocks, key=lambda block: (block["stack"], int(block["layer"]), int(block["place"]))):
        name, layer, before = block[0], block["of"], stream[block["stack"]]
        stream[block["stack"]] = name
        outputs = (each for each in arrays if each.startswith(layer) and each.endswith(".output"))
        for added in outputs:
            if not _BLOCK.fullmatch(added) and _adds_up(arrays.get(before), arrays[added], arrays[name]):
                sums[name] = before, added
                break
    return sums


def _adds_up(one: np.ndarray | None, other: np.ndarray, total: np.ndarray) -> bool:
    if one is None or not one.shape == other.shape == total.shape:
        return False
    return np.allclose(one + other, total, rtol=1e-5, atol=1e-5)


def _packed(held: dict[str, Any]) -> str:
    """What a file holds, compressed: a JSON text, and the bytes of all arrays in its order.

    The first bytes of all numbers precede their second bytes, and so on: that compresses better.
    """
    arrays, width = held["arrays"], {"f32": 4, "f16": 2, "top": 2}[held["precision"]]
    numbers = b"".join(b64decode(each["data"]) for each in arrays.values())
    planes = np.frombuffer(numbers, np.uint8).reshape(-1, width).T.tobytes()
    shapes = {name: {"shape": each["shape"]} for name, each in arrays.items()}
    text = json.dumps({**held, "arrays": shapes}, ensure_ascii=False)
    return json.dumps({"text": _deflated(text.encode()), "numbers": _deflated(planes)})


def _deflated(content: bytes) -> str:
    return b64encode(zlib.compress(content, 6)).decode("ascii")


def sentences(trace: TraceData) -> dict[str, Any]:
    """The texts of all walks, with gaps for tokens and numbers.

    `walks` has for each kind and layer the indices of its steps in `steps`. The text of a mask depends on the
    query, so `masked` has it for a query that sees every key and for one that does not. The text of
    interventions is separate: the page knows where they apply.
    """
    intact = replace(trace, interventions=())
    texts: list[dict[str, Any]] = []
    walks: dict[str, list[list[int]]] = {kind: [] for kind in trace.kinds}
    for kind in trace.kinds:
        for layer in range(layers_of(trace.config, kind)):
            walked = walk(intact, kind, layer, 0, 0, TEMPLATE)
            steps = [_text(step.name, step) for step in walked if step.name != "intervention"]
            texts += [step for step in steps if step not in texts]
            walks[kind].append([texts.index(step) for step in steps])
    masked = {
        kind: {
            sees: _text("masked", mask_sentence(TEMPLATE.token, kind, sees == "all"))
            for sees in ("all", "some")
        }
        for kind in trace.kinds
    }
    changed = _text("intervention", sentence("intervention"))
    return {"steps": texts, "walks": walks, "masked": masked, "intervention": changed}


def _text(name: str, text: Step | StepText) -> dict[str, Any]:
    fields = ("formula", "latex", "english", "chinese")
    return {"name": name, **{field: getattr(text, field) for field in fields}}


def _title(trace: TraceData) -> str:
    texts = [side.text for side in (trace.inputs, trace.outputs) if side is not None]
    return " → ".join(text if len(text) <= 60 else text[:59] + "…" for text in texts) or "regard"


def _influence(trace: TraceData) -> dict[str, Any] | None:
    if trace.influence is None:
        return None
    convergence = stored_convergence(trace, INFLUENCE)
    return {
        "values": plain(trace.influence),
        "convergence": None if convergence is None else convergence.to_json(),
    }


def _alignment(trace: TraceData) -> dict[str, Any] | None:
    try:
        return alignment(trace)
    except RequestError:
        return None  # the model does not align, or there is nothing to align


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode('ascii')}'"


def _largest(weights_LM: np.ndarray, most: int) -> np.ndarray:
    """(queries, most, 2): the keys of the largest weights of each row, and these weights."""
    most = min(most, weights_LM.shape[1])
    # Ten times faster than to sort whole rows.
    keys = np.argpartition(-weights_LM, most - 1, axis=1)[:, :most]
    in_order = np.argsort(-np.take_along_axis(weights_LM, keys, axis=1), axis=1, kind="stable")
    keys = np.take_along_axis(keys, in_order, axis=1)
    shares = np.rint(np.take_along_axis(weights_LM, keys, axis=1) * 65535)
    return np.stack([keys, shares], axis=-1)


def _encoded(array: np.ndarray, dtype: str) -> dict[str, Any]:
    """Shape and bytes; float16 is clipped, since infinities would not add up."""
    if dtype == "<f2":
        array = np.clip(array, -65504, 65504)
    return {"shape": list(array.shape), "data": b64encode(array.astype(dtype).tobytes()).decode("ascii")}
