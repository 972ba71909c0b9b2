"""A trace as plain values and bytes: what a saved page holds and what a server sends, one format for both.

Numbers of JSON are as short as float32 allows, and null is a number that is not finite: the score of a
masked token. Matrices are bytes, one head at a time; as JSON they would take twenty times as many. No torch.
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
"""How a number of a matrix is written, little-endian."""

DTYPES: dict[str, str] = {"u8": "u1", "f16": "<f2", "f32": "<f4"}
LENS = 3
"""How many candidates of a layer that is not the last are told."""


@dataclass(frozen=True, slots=True)
class Matrix:
    """Numbers as bytes, row by row; a number is what is written times the scale."""

    data: bytes
    shape: tuple[int, ...]
    scale: float


def describe(trace: TraceData) -> dict[str, Any]:
    """What was read by what: sizes, kinds of attention, tokens, and how likely each output token was."""
    config = trace.config
    texts = _wanted_texts(trace)
    said = zip(trace.targets, texts, plain(trace.log_probs), strict=True)
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
        "wanted": [{"id": i, "text": text, "log_prob": log_prob} for i, text, log_prob in said],
        "interventions": to_json(trace.interventions),
        "engine": trace.engine,
        "weights_hash": trace.weights_hash,
        "dtype": str(trace.log_probs.dtype),
        "hash": _digest(trace),
    }


def steps(trace: TraceData) -> list[dict[str, Any]]:
    """What the model said after each token of the outputs; of a classifier, one step.

    A trace keeps the likeliest tokens, not the whole vocabulary. The entropy, in bits, takes all the others
    for one, and so is a lower bound. Where labels are decided on one by one, there is neither.
    """
    texts = _wanted_texts(trace)
    shares = plain(np.exp(trace.arrays["said.log_probs"]))
    normalisers = plain(trace.arrays["said.normaliser"][-1])
    found = []
    for row, normaliser in enumerate(normalisers):
        candidates = trace.candidates(row)
        shares_told = [each.probability for each in candidates]
        rest = None if trace.multi_label else max(0.0, 1.0 - sum(shares_told))
        logits = plain(trace.arrays["said.logits"][-1, row])
        chosen = None
        if row < len(texts):
            chosen = {"id": trace.targets[row], "text": texts[row], "probability": shares[-1][row]}
        found.append(
            {
                "row": row,
                "after": None if trace.outputs is None else trace.outputs[row].text,
                "chosen": chosen,
                "entropy": None if rest is None else _entropy([*shares_told, rest]),
                "normaliser": normaliser,
                "candidates": [
                    {**_candidate(each), "logit": logit}
                    for each, logit in zip(candidates, logits, strict=True)
                ],
                "rest": None if rest is None else _short(rest),
                "lens": [
                    {
                        "candidates": [_candidate(each) for each in said[:LENS]],
                        "chosen": shares[layer][row] if chosen else None,
                    }
                    for layer, said in enumerate(trace.lens(row))
                ],
            }
        )
    return found


def walk(trace: TraceData, kind: Kind, layer: int, head: int, query: int) -> list[dict[str, Any]]:
    """The steps of `Trace.walk`, with their numbers nested as their shape is."""
    return [
        {
            "name": step.name,
            "formula": step.formula,
            "latex": step.latex,
            "english": step.english,
            "chinese": step.chinese,
            "rows": list(step.rows),
            "shape": list(step.values.shape),
            "values": plain(step.values),
        }
        for step in walk_steps(trace, kind, layer, head, query)
    ]


def alignment(
    trace: TraceData, heads: Collection[Head] | None = None, rows: Rows = "predicting"
) -> dict[str, Any]:
    """Words of the outputs with their shares in those of the inputs, by some heads.

    Where none are given, those that are taken where nothing was measured.

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


def measures(found: InfluenceMeasures) -> dict[str, Any]:
    """Every measure of influence by its name, and how far each two agree, in the same order."""
    return {
        "methods": {
            name: {"values": plain(values), "curve": plain(found.curves[name])}
            for name, values in found.values.items()
        },
        "masked": list(found.masked),
        "agreement": plain(found.agreement),
    }


def neighbours(found: Neighbours) -> dict[str, Any]:
    """Tokens with those nearest to them, and the place of each on the plane."""

    def told(i: int, piece: str) -> dict[str, Any]:
        x, y = found.places[i]
        return {"id": i, "piece": piece, "x": _short(x), "y": _short(y)}

    return {
        "tokens": [
            {
                **told(i, piece),
                "nearest": [
                    {**told(each.id, each.piece), "cosine": _short(each.cosine)} for each in found.nearest[i]
                ],
            }
            for i, piece in found.pieces.items()
        ],
        "explained": _short(found.explained),
    }


def beam(tree: BeamTree) -> dict[str, Any]:
    """The tree of a beam search; null is the score of what could not be."""
    told = tree.to_json()
    return {
        **told,
        "nodes": [{name: _finite(value) for name, value in node.items()} for node in told["nodes"]],
    }


def matrix(
    trace: TraceData,
    kind: Kind,
    layer: int,
    head: int | None,
    form: Form = "weights",
    dtype: Precision = "u8",
) -> Matrix:
    """A head's weights or scores, (queries, keys), or those of all heads of a layer, (heads, queries, keys).

    Raises:
        RequestError: there is no such head or form, or the form cannot be written so.
    """
    if form not in ("weights", "scores"):
        raise RequestError(f"no form {form} of attention; there are weights and scores")
    if dtype not in DTYPES:
        raise RequestError(f"no precision {dtype}; there are {', '.join(DTYPES)}")
    if dtype == "u8" and form == "scores":
        raise RequestError("scores go below 0, which u8 does not: ask for f16 or f32")
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


def plain(array: np.ndarray) -> Any:
    """Nested lists of numbers, each as short as float32 allows; None where one is not finite."""
    short = np.empty(array.size, dtype=object)
    short[:] = [_short(value) for value in array.ravel().tolist()]
    return short.reshape(array.shape).tolist()


def _short(value: float) -> float | None:
    """The shortest number that float32 takes for this one."""
    return float(str(np.float32(value))) if np.isfinite(value) else None


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not np.isfinite(value) else value


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


def _wanted_texts(trace: TraceData) -> list[str]:
    """What came next, as one shows it: the tokens of the outputs but the first, then the end of the text."""
    known = {i: Candidate(i, piece, 0.0).text for i, piece in trace.pieces.items()}
    if trace.outputs is None:  # labels, whose numbers are not those of tokens
        return [known[i] for i in trace.targets]
    for side in (trace.inputs, trace.outputs):
        known |= {} if side is None else {token.id: token.text for token in side.tokens if token.special}
    shown = trace.outputs.texts[1:]
    return [shown[row] if row < len(shown) else known.get(i, f"#{i}") for row, i in enumerate(trace.targets)]


def _candidate(candidate: Candidate) -> dict[str, Any]:
    return {
        "id": candidate.id,
        "piece": candidate.piece,
        "text": candidate.text,
        "probability": _short(candidate.probability),
    }


def _entropy(shares: list[float]) -> float | None:
    positive = np.array([share for share in shares if share > 0])
    return _short(float(-(positive * np.log2(positive)).sum()))


def _digest(trace: TraceData) -> str:
    """A name for what was seen, made of all of it."""
    digest = hashlib.sha256(json.dumps([trace.targets, to_json(trace.interventions)]).encode())
    for name in sorted(trace.arrays):
        digest.update(name.encode() + np.ascontiguousarray(trace.arrays[name]).tobytes())
    return digest.hexdigest()[:16]
