"""A trace as JSON and bytes: one format for saved pages and for the server. Imports no torch.

Numbers are as short as float32 allows; null is a number that is not finite, such as the score of a masked
token. Matrices are bytes, one head at a time: as JSON they would be twenty times as large.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from regard.errors import RequestError
from regard.look.alignment.alignment import Head, Rows, align, default_heads
from regard.look.influence.attention import HeadSummary
from regard.look.influence.attention import head_summaries as summaries
from regard.look.influence.methods import InfluenceMeasures
from regard.look.interventions.interventions import to_json
from regard.look.trace.beam import BeamTree
from regard.look.trace.blocks import Kind, layers_of
from regard.look.trace.comparison import Neighbours
from regard.look.trace.data import Candidate, TraceData
from regard.look.trace.tokens import Tokens
from regard.look.walk import walk as walk_steps

Form = Literal["weights", "scores"]
Precision = Literal["u8", "f16", "f32"]
"""Number format of a matrix, little-endian."""

DTYPES: dict[str, str] = {"u8": "u1", "f16": "<f2", "f32": "<f4"}
LENS = 3
"""Candidates of each layer but the last."""


@dataclass(frozen=True, slots=True)
class Matrix:
    """Numbers as bytes, row by row, to be multiplied by the scale."""

    data: bytes
    shape: tuple[int, ...]
    scale: float


def describe(trace: TraceData) -> dict[str, Any]:
    """The model's sizes and kinds of attention, the tokens, and the log-probability of each target."""
    config = trace.config
    targets = zip(trace.targets, _target_texts(trace), plain(trace.log_probs), strict=True)
    return {
        "architecture": config.architecture,
        "sizes": {
            "d_model": config.d_model,
            "n_heads": config.n_heads,
            "d_k": config.key_width,
            "d_v": config.value_width,
            "d_ff": config.d_ff,
            "encoder_layers": config.encoder_layers if "encoder" in trace.kinds else 0,
            "decoder_layers": config.decoder_layers if "decoder" in trace.kinds else 0,
            "vocab_size": config.vocab_size,
        },
        "settings": {
            name: getattr(config, name)
            for name in ("similarity", "positions", "norm_position", "norm", "feed_forward")
        },
        "kinds": [_kind(trace, kind) for kind in trace.kinds],
        "inputs": _side(trace.inputs),
        "outputs": _side(trace.outputs),
        "wanted": [{"id": i, "text": text, "log_prob": log_prob} for i, text, log_prob in targets],
        "interventions": [_without_values(each) for each in to_json(trace.interventions)],
        "engine": trace.engine,
        "weights_hash": trace.weights_hash,
        "dtype": str(trace.log_probs.dtype),
        "hash": _digest(trace),
    }


def steps(trace: TraceData) -> list[dict[str, Any]]:
    """The predictions after each token of the outputs; of a classifier, one step.

    A trace stores the most likely candidates only. The entropy, in bits, counts all others as one, and is
    therefore a lower bound; with independent labels there is neither entropy nor rest.
    """
    texts = _target_texts(trace)
    shares = plain(np.exp(trace.arrays["said.log_probs"]))
    normalisers = plain(trace.arrays["said.normaliser"][-1])
    steps = []
    for row, normaliser in enumerate(normalisers):
        candidates = trace.candidates(row)
        listed = [each.probability for each in candidates]
        rest = None if trace.multi_label else max(0.0, 1.0 - sum(listed))
        logits = plain(trace.arrays["said.logits"][-1, row])
        chosen = None
        if row < len(texts):
            chosen = {"id": trace.targets[row], "text": texts[row], "probability": shares[-1][row]}
        steps.append(
            {
                "row": row,
                "after": None if trace.outputs is None else trace.outputs[row].text,
                "chosen": chosen,
                "entropy": None if rest is None else _entropy([*listed, rest]),
                "normaliser": normaliser,
                "candidates": [
                    {**_candidate(each), "logit": logit}
                    for each, logit in zip(candidates, logits, strict=True)
                ],
                "rest": None if rest is None else _short(rest),
                "lens": [
                    {
                        "candidates": [_candidate(each) for each in candidates[:LENS]],
                        "chosen": shares[layer][row] if chosen else None,
                    }
                    for layer, candidates in enumerate(trace.lens(row))
                ],
            }
        )
    return steps


def walk(trace: TraceData, kind: Kind, layer: int, head: int, query: int) -> list[dict[str, Any]]:
    """The steps of `Trace.walk`, with their values as nested lists."""
    fields = ("name", "formula", "latex", "english", "chinese")
    return [
        {
            **{field: getattr(step, field) for field in fields},
            "rows": list(step.rows),
            "shape": list(step.values.shape),
            "values": plain(step.values),
        }
        for step in walk_steps(trace, kind, layer, head, query)
    ]


def head_summaries(trace: TraceData) -> dict[str, list[list[dict[str, Any]]]]:
    """The role and the statistics of every head, by kind, layer and head."""

    def plainly(summary: HeadSummary) -> dict[str, Any]:
        return {
            name: _short(value) if isinstance(value, float) else value
            for name, value in asdict(summary).items()
        }

    return {
        kind: [[plainly(head) for head in layer] for layer in summaries(trace, kind)] for kind in trace.kinds
    }


def alignment(
    trace: TraceData, heads: Collection[Head] | None = None, rows: Rows = "predicting"
) -> dict[str, Any]:
    """The alignment of words by some heads; default: `default_heads`.

    Raises:
        RequestError: the model has no cross-attention, or one side has no words.
    """
    chosen = default_heads(trace.config).heads if heads is None else heads
    found = align(trace, chosen, rows)
    return {
        "heads": [list(head) for head in chosen],
        "measured": heads is not None,
        "inputs": [asdict(word) for word in found.inputs],
        "outputs": [asdict(word) for word in found.outputs],
        "shares": plain(found.shares.round(4)),
        "links": [list(link) for link in found.links],
        "coverage": plain(found.coverage),
        "untouched": [i for i, word in enumerate(found.inputs) if word in found.untouched],
    }


def influences(measures: InfluenceMeasures) -> dict[str, Any]:
    """Influence by every method, and the agreement of each two methods."""
    return {
        "methods": {
            name: {"values": plain(values), "curve": plain(measures.curves[name])}
            for name, values in measures.values.items()
        },
        "convergence": measures.convergence.to_json(),
        "masked": list(measures.masked),
        "agreement": plain(measures.agreement),
    }


def neighbours(found: Neighbours) -> dict[str, Any]:
    """Tokens with their nearest neighbours, and their places on the plane."""

    def placed(i: int, piece: str) -> dict[str, Any]:
        x, y = found.places[i]
        return {"id": i, "piece": piece, "x": _short(x), "y": _short(y)}

    return {
        "tokens": [
            {
                **placed(i, piece),
                "nearest": [
                    {**placed(each.id, each.piece), "cosine": _short(each.cosine)}
                    for each in found.nearest[i]
                ],
            }
            for i, piece in found.pieces.items()
        ],
        "explained": _short(found.explained),
    }


def beam(tree: BeamTree) -> dict[str, Any]:
    """The tree of a beam search; null is the score of an impossible candidate."""
    values = tree.to_json()
    nodes = [{name: _finite(value) for name, value in node.items()} for node in values["nodes"]]
    return {**values, "nodes": nodes}


def matrix(
    trace: TraceData,
    kind: Kind,
    layer: int,
    head: int | None,
    form: Form = "weights",
    dtype: Precision = "u8",
) -> Matrix:
    """Weights or scores of a head, (queries, keys), or of all heads of a layer, (heads, queries, keys).

    Raises:
        RequestError: there is no such head, form or precision.
    """
    if form not in ("weights", "scores"):
        raise RequestError(f"no form {form} of attention; choose weights or scores", code="bad_option")
    if dtype not in DTYPES:
        raise RequestError(f"no precision {dtype}; choose one of {', '.join(DTYPES)}", code="bad_option")
    if dtype == "u8" and form == "scores":
        raise RequestError("u8 cannot hold negative scores: choose f16 or f32", code="bad_option")
    of_head = trace.attention if form == "weights" else trace.scores
    if head is None:
        numbers = np.stack([of_head(kind, layer, each) for each in range(trace.config.n_heads)])
    else:
        numbers = of_head(kind, layer, head)
    scale = 1.0
    if dtype == "u8":
        scale = float(numbers.max()) / 255
        numbers = np.rint(numbers / scale)
    return Matrix(numbers.astype(DTYPES[dtype]).tobytes(), numbers.shape, scale)


def activation(trace: TraceData, address: str) -> Matrix:
    """The array at an address, such as `decoder.layers.1.feed_forward.output`, as f32.

    Raises:
        RequestError: the trace has no such array of numbers.
    """
    found = trace.arrays.get(address)
    if found is None or found.dtype.kind != "f":
        like = address.rpartition(".")[2]
        names = [name for name, array in trace.arrays.items() if array.dtype.kind == "f"]
        has = next((name for name in names if name.endswith(f".{like}")), names[0])
        raise RequestError(f"no activation {address!r}; there is {has}", code="unknown_place")
    return Matrix(found.astype("<f4").tobytes(), found.shape, 1.0)


def plain(array: np.ndarray) -> Any:
    """Nested lists of numbers as short as float32 allows; None if not finite."""
    short = np.empty(array.size, dtype=object)
    short[:] = [_short(value) for value in array.ravel().tolist()]
    return short.reshape(array.shape).tolist()


def _short(value: float) -> float | None:
    """The shortest decimal with the same float32."""
    return float(str(np.float32(value))) if np.isfinite(value) else None


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not np.isfinite(value) else value


def _without_values(intervention: dict[str, Any]) -> dict[str, Any]:
    """An intervention without its numbers, which the file of the trace has."""
    return {name: value for name, value in intervention.items() if name != "values"}


def _kind(trace: TraceData, kind: Kind) -> dict[str, Any]:
    masked = [] if kind == "decoder" else np.flatnonzero(~trace.may_attend(kind)[0]).tolist()
    return {
        "kind": kind,
        "layers": layers_of(trace.config, kind),
        "heads": trace.config.n_heads,
        "queries": "inputs" if kind == "encoder" else "outputs",
        "keys": "outputs" if kind == "decoder" else "inputs",
        "causal": kind == "decoder",
        "masked": masked,
    }


def _side(side: Tokens | None) -> dict[str, Any] | None:
    if side is None:
        return None
    return {**side.to_json(), "words": [asdict(word) for word in side.words]}


def _target_texts(trace: TraceData) -> list[str]:
    """The targets as they are displayed: the tokens of the outputs but the first, then the end token."""
    known = {i: Candidate(i, piece, 0.0).text for i, piece in trace.pieces.items()}
    if trace.outputs is None:  # labels, which are not tokens
        return [known[i] for i in trace.targets]
    for side in (trace.inputs, trace.outputs):
        known |= {} if side is None else {token.id: token.text for token in side.tokens if token.special}
    shown = trace.outputs.texts[1:]
    return [shown[row] if row < len(shown) else known.get(i, f"#{i}") for row, i in enumerate(trace.targets)]


def _candidate(candidate: Candidate) -> dict[str, Any]:
    values = {**asdict(candidate), "text": candidate.text}
    return {**values, "probability": _short(candidate.probability)}


def _entropy(shares: list[float]) -> float | None:
    positive = np.array([share for share in shares if share > 0])
    return _short(float(-(positive * np.log2(positive)).sum()))


def _digest(trace: TraceData) -> str:
    """A hash of the whole trace."""
    digest = hashlib.sha256(json.dumps([trace.targets, to_json(trace.interventions)]).encode())
    for name in sorted(trace.arrays):
        digest.update(name.encode() + np.ascontiguousarray(trace.arrays[name]).tobytes())
    return digest.hexdigest()[:16]
