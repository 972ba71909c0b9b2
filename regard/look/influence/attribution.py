"""The influence of each token read on one token written, by methods that need not agree.

Influence is computed for the inputs, or for the preceding tokens of a language model; with `prefix`, for the
inputs and then the outputs written so far. Attention shows where a model attends, not what it uses, so other
methods ask the model itself: by gradients, or by removing tokens. `deletion_curve` shows which method to
trust for a text. A row is an index of `Trace.targets`; later tokens have no influence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from regard.errors import RequestError
from regard.look.influence import STEPS
from regard.look.influence.attention import Mixing, heads_on, mean_attention, norm_weighted, rollout
from regard.look.influence.copies import Prediction
from regard.look.influence.integrated import integrate
from regard.look.influence.methods import METHODS, Influence, InfluenceMeasures
from regard.look.trace.blocks import Kind, layers_of

if TYPE_CHECKING:
    from regard.bundle.weights import Model
    from regard.look.trace.data import TraceData


POINTS = 16
"""Most points of a deletion curve after the first; of a long text, several tokens are masked at a time."""


def gradient_times_input(model: Model, trace: TraceData, row: int, *, prefix: bool = False) -> np.ndarray:
    """The gradient of the log-probability times the embedding, for each token."""
    return _slopes(Prediction(model, trace, row, prefix=prefix))


def integrated_gradients(
    model: Model, trace: TraceData, row: int, *, prefix: bool = False, steps: int = STEPS
) -> Influence:
    """The same, averaged on the path from zero embeddings to the actual ones (Sundararajan et al., 2017).

    Positions are kept. The values add up to the change of the log-probability due to the embeddings. At most
    `steps` points are used; the `convergence` of the result has what they leave open.

    Raises:
        RequestError: there is no such row, steps are out of range, or the trace is of another model.
    """
    return integrate(Prediction(model, trace, row, prefix=prefix), steps)


def value_zeroing(model: Model, trace: TraceData, row: int, *, prefix: bool = False) -> np.ndarray:
    """The loss of log-probability if the values of a token are 0 and the attention to it is unchanged."""
    prediction = Prediction(model, trace, row, prefix=prefix)
    return _lost_without_each(prediction, prediction.zeroed)


def leave_one_out(model: Model, trace: TraceData, row: int, *, prefix: bool = False) -> np.ndarray:
    """The loss of log-probability if a token is masked; its attention goes to the others."""
    prediction = Prediction(model, trace, row, prefix=prefix)
    return _lost_without_each(prediction, prediction.masked)


def deletion_curve(
    model: Model,
    trace: TraceData,
    row: int,
    influence: np.ndarray,
    *,
    prefix: bool = False,
    counts: Sequence[int] | None = None,
) -> np.ndarray:
    """The log-probability with 0, 1, 2 … of the most influential tokens masked; the last one is kept.

    The curve of a good method falls early: the lower its mean, the better. With `prefix` the last token of
    each side is kept, since attention must go somewhere. With `counts`, only these numbers of masked tokens.
    """
    prediction = Prediction(model, trace, row, prefix=prefix)
    taken = masked_in_turn(prediction, influence)
    return prediction.masked(taken if counts is None else taken[list(counts)])


def masked_in_turn(prediction: Prediction, influence: np.ndarray) -> np.ndarray:
    """The tokens masked at each point of a deletion curve, (points, tokens)."""
    seen, sides = prediction.seen, prediction.sides
    if np.shape(influence) != (len(seen),):
        what = f"influence has the shape {np.shape(influence)}; the text has {len(seen)} tokens"
        raise RequestError(what, code="trace_mismatch")
    order = np.argsort(-np.asarray(influence), kind="stable")
    of_side = np.repeat(np.arange(len(sides)), [len(side) for side in sides.values()])
    ranked = [order[seen[order] & (of_side[order] == side)] for side in range(len(sides))]
    kept = {int(tokens[-1]) for tokens in ranked}
    order_masked = [i for i in order.tolist() if seen[i] and i not in kept]
    taken = np.zeros((len(order_masked) + 1, len(seen)), dtype=bool)
    for i, token in enumerate(order_masked, start=1):
        taken[i:, token] = True
    return taken


def agreement(one: np.ndarray, other: np.ndarray) -> float:
    """Spearman's rank correlation of two measures, -1 to 1; 0 if one of them is constant."""
    a, b = (_ranks(each) for each in (one, other))
    spread = np.sqrt((a @ a) * (b @ b))
    return float(a @ b / spread) if spread else 0.0


def _ranks(values: np.ndarray) -> np.ndarray:
    """The rank of each value, centred: the number of smaller values less the number of larger ones."""
    values = np.asarray(values)
    ranks: np.ndarray = np.sign(values[:, None] - values).sum(axis=1)
    return ranks


def _lost_without_each(
    prediction: Prediction, log_probs_without: Callable[[np.ndarray], np.ndarray]
) -> np.ndarray:
    """The loss of log-probability with each token alone removed."""
    seen = prediction.seen
    lost = np.zeros(len(seen))
    taken = np.eye(len(seen), dtype=bool)[seen]
    lost[seen] = prediction.trace.log_probs[prediction.row] - log_probs_without(taken)
    return lost


def measure_influence(model: Model, trace: TraceData, row: int, *, steps: int = STEPS) -> InfluenceMeasures:
    """Influence by every method, including the outputs written so far; `steps` of integrated gradients.

    Raises:
        RequestError: there is no such row, or the trace is of another model.
    """
    prediction = Prediction(model, trace, row, prefix=True)  # whose equal copies run once
    integrated = integrate(prediction, steps)  # first: the path ends at the gradient of another method
    values = {
        method: integrated
        if method == "integrated-gradients"
        else _influence_by(method, model, prediction, steps)
        for method in METHODS
    }
    convergence = integrated.convergence
    assert convergence is not None, "integrated gradients have one"
    seen = prediction.seen
    most = int(seen.sum()) - len(prediction.sides)  # the last one of each side stays
    masked = tuple(np.unique(np.linspace(0, most, min(most, POINTS) + 1).round().astype(int)).tolist())
    taken = [masked_in_turn(prediction, each)[list(masked)] for each in values.values()]
    log_probs = prediction.masked(np.concatenate(taken))
    curves = dict(zip(values, np.split(log_probs, len(values)), strict=True))
    found = [each[seen] for each in values.values()]
    agreements = np.array([[agreement(one, other) for other in found] for one in found])
    return InfluenceMeasures(dict(values), masked, curves, agreements, convergence)


def influence_by(
    method: str, model: Model, trace: TraceData, row: int, *, prefix: bool = False, steps: int = STEPS
) -> Influence:
    """The influence of each token by one method; with `prefix`, also of the outputs written so far.

    Integrated gradients evaluate the gradient at `steps` points; the result has their convergence.

    Raises:
        RequestError: there is no such method or row, or the trace is of another model.
    """
    if method not in METHODS:
        what = f"there is no method {method!r} of influence; there are {', '.join(METHODS)}"
        raise RequestError(what, code="unknown_method")
    return _influence_by(method, model, Prediction(model, trace, row, prefix=prefix), steps)


def _influence_by(method: str, model: Model, prediction: Prediction, steps: int) -> Influence:
    """The influence of each token on a prediction by one of `METHODS`."""
    trace = prediction.trace
    match method:
        case "attention":
            values = _mean_mixing(prediction, mean_attention(trace))
        case "norms":
            values = _mean_mixing(prediction, norm_weighted(model, trace))
        case "rollout":
            of_inputs, of_outputs = rollout(trace)
            of_side = {"input": of_inputs, "output": of_outputs}
            shares = [of_side[name] for name in prediction.sides]
            values = np.concatenate([each[prediction.row] for each in shares if each is not None])
        case "gradient-x-input":
            values = _slopes(prediction)
        case "integrated-gradients":
            return integrate(prediction, steps)
        case "value-zeroing":
            values = _lost_without_each(prediction, prediction.zeroed)
        case "leave-one-out":
            values = _lost_without_each(prediction, prediction.masked)
        case other:
            raise AssertionError(f"{other!r} is not in METHODS")
    return Influence.of(values)


def _slopes(prediction: Prediction) -> np.ndarray:
    slopes, _ = prediction.along(np.ones(1))
    return slopes[0]


def _mean_mixing(prediction: Prediction, mixing: Mixing) -> np.ndarray:
    """The share of each token in a row, averaged over the blocks that attend to it; shares sum to 1."""
    trace, row, sides = prediction.trace, prediction.row, prediction.sides
    kinds: dict[str, Kind] = {"input": "encoder" if trace.outputs is None else "cross", "output": "decoder"}
    found = []
    for name, side in sides.items():
        layers = [i for i in range(layers_of(trace.config, kinds[name])) if heads_on(trace, kinds[name], i)]
        rows = [mixing(kinds[name], layer)[row] for layer in layers]
        found.append(np.mean(rows, axis=0) if rows else np.zeros(len(side)))
    return np.concatenate(found) / len(sides)
