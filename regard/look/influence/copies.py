"""The prediction of one token by many copies of a text that run side by side, each changed in its own way.

Only what the prediction depends on is computed: later outputs are left out, and so are masked tokens, which
nothing attends to; equal copies run once; each core runs batches of its own. With interventions, which refer
to places and to whole texts, and with positions that add to scores, all tokens run instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import Context, copy_context
from itertools import pairwise
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import torch
from torch import Tensor

from regard.cancellation import raise_if_cancelled
from regard.engine.engines.torch_engine import cores, run_on_cores
from regard.errors import RequestError
from regard.look.influence.kept import different_rows, is_prunable, kept_tokens, picked_memory
from regard.look.interventions import ablation
from regard.look.interventions.apply import narrowed, recording_changed, replacing, wide_copy
from regard.look.interventions.interventions import NEVER
from regard.look.trace.blocks import Kind, address_of, layers_of
from regard.look.trace.recorder import log_probs_of
from regard.look.trace.tokens import Tokens
from regard.model.classifier import Classifier
from regard.model.language_model import LanguageModel
from regard.model.taps import recording
from regard.model.transformer import Memory, Transformer
from regard.packing import Packed

if TYPE_CHECKING:
    from regard.bundle.weights import Model
    from regard.look.trace.data import TraceData

Job = TypeVar("Job")
Output = TypeVar("Output")
Changes = Mapping[str, Callable[[Tensor], Tensor]]
"""For each address a function of the activation of all copies."""
ATTENDED_IN: dict[str, tuple[Kind, ...]] = {"input": ("encoder", "cross"), "output": ("decoder",)}
"""The blocks that attend to the tokens of a side."""
GRADIENT_SHARE = 2
"""By how much batches are smaller in which activations are kept for gradients."""


def read_of(trace: TraceData, *, prefix: bool) -> dict[str, Tokens]:
    """The sides whose tokens have an influence, by name, in the order of the values."""
    sides = {"input": trace.inputs, "output": trace.outputs if prefix or trace.inputs is None else None}
    return {name: side for name, side in sides.items() if side is not None}


def seen_of(trace: TraceData, row: int, *, prefix: bool) -> np.ndarray:
    """Whether each token was known when the token of the row was predicted: bool.

    Raises:
        RequestError: there is no such row.
    """
    if not 0 <= row < len(trace.targets):
        what = f"no row {row}; the output has rows 0 to {len(trace.targets) - 1}"
        raise RequestError(what, code="unknown_place")
    sides = read_of(trace, prefix=prefix)
    return np.concatenate([(np.arange(len(side)) <= row) | (name == "input") for name, side in sides.items()])


class Prediction:
    """The prediction of one row of a trace, by copies of its text.

    Values and masks have one column per token of the sides that are asked about (`read_of`), as results have.

    Raises:
        RequestError: there is no such row, or the trace is of another model.
    """

    def __init__(self, model: Model, trace: TraceData, row: int, *, prefix: bool) -> None:
        self.seen = seen_of(trace, row, prefix=prefix)
        self.sides = read_of(trace, prefix=prefix)
        self.trace, self.row = trace, row
        self._model = ablation.model_of_trace(model, trace)
        self._device = next(self._model.parameters()).device
        # Interventions may refer to places, so that no place may be missing.
        self._changed = replacing(trace.interventions, trace.config) is not None
        self._prunes = not self._changed and is_prunable(self._model)
        self._n_outputs = 0
        if trace.outputs is not None:
            self._n_outputs = len(trace.outputs) if self._changed else row + 1
        self._masked: dict[bytes, float] = {}
        self._slopes: dict[float, tuple[np.ndarray, float]] = {}

    @property
    def _n_inputs(self) -> int:
        return 0 if self.trace.inputs is None else len(self.trace.inputs)

    @property
    def _n_tokens(self) -> int:
        """Tokens of one whole copy."""
        return self._n_inputs + self._n_outputs

    def masked(self, taken: np.ndarray) -> np.ndarray:
        """The log-probability in each copy if no query attends to the tokens of `taken`, (copies, tokens).

        Of each side at least one token that was seen stays, unless it has only one.
        """
        new = {each.tobytes(): each for each in taken if each.tobytes() not in self._masked}
        if new:
            masks = np.stack(list(new.values()))
            found = self._pruned(masks) if self._prunes else self._each(masks, "scores", _hide)
            self._masked |= dict(zip(new, found.tolist(), strict=True))
        return np.array([self._masked[each.tobytes()] for each in taken])

    def zeroed(self, taken: np.ndarray) -> np.ndarray:
        """The log-probability in each copy if the values of the tokens of `taken` are 0."""
        return self._each(taken, "v", _zero)

    def along(self, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The gradient at each share of the embeddings times the embeddings, (shares, tokens).

        Also returns the log-probability at each share.
        """
        new = np.array([share for share in shares.tolist() if share not in self._slopes])
        if len(new):
            self._slopes |= dict(zip(new.tolist(), zip(*self._gradients(new), strict=True), strict=True))
        slopes, log_probs = zip(*(self._slopes[share] for share in shares.tolist()), strict=True)
        return np.stack(slopes), np.array(log_probs)

    def _gradients(self, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The same without those that are known."""
        lengths = {"input": self._n_inputs, "output": self._n_outputs}
        arrays = {
            name: self.trace.arrays[name][: lengths[side]]
            for side in self.sides
            for name in [f"{side}_embedding.embedded"]
        }

        def work(part: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            with torch.inference_mode(mode=False), torch.enable_grad():
                share = torch.tensor(part, device=self._device)
                embedded = {name: torch.tensor(each, device=self._device) for name, each in arrays.items()}
                scaled = {
                    name: (share.to(each_ND)[:, None, None] * each_ND).flatten(0, 1).requires_grad_()
                    for name, each_ND in embedded.items()
                }
                changes = {name: _always(scaled[name]) for name in scaled}
                log_probs = self._log_probs(len(part), changes)
                # Zero where interventions cut the path from the inputs.
                leaves = list(scaled.values())
                gradients = torch.autograd.grad(log_probs.sum(), leaves, materialize_grads=True)
                products = [
                    (gradient.unflatten(0, (len(part), -1)) * each_ND).sum(-1)
                    for gradient, each_ND in zip(gradients, embedded.values(), strict=True)
                ]
                return torch.cat(products, dim=1).cpu().double().numpy(), _as_numpy(log_probs)

        size = max(1, _batch_tokens(self._device) // GRADIENT_SHARE // self._n_tokens)
        jobs = [shares[each] for each in self._even(len(shares), size)]
        parts = _on_cores(work, jobs, self._device)
        slopes = np.zeros((len(shares), len(self.seen)))
        n_computed = [lengths[side] for side in self.sides]
        columns = _columns([len(side) for side in self.sides.values()], n_computed)
        slopes[:, columns] = np.concatenate([each for each, _ in parts])
        return np.where(self.seen, slopes, 0.0), np.concatenate([each for _, each in parts])

    # --- all tokens, with activations replaced --------------------------------------------------------------

    def _each(self, taken: np.ndarray, name: str, take: Callable[[Tensor, Tensor], Tensor]) -> np.ndarray:
        """The log-probability in each copy with `taken` taken from the activations of a name."""
        n_inputs = self._n_inputs if "input" in self.sides else 0
        reads = taken[:, :n_inputs].any(axis=1)
        jobs: list[np.ndarray] = []
        for which, n_tokens in ((~reads, self._n_outputs), (reads, self._n_tokens)):
            size = max(1, _batch_tokens(self._device) // max(1, n_tokens))
            places = np.flatnonzero(which)  # the first ones share the encoder
            jobs += [places[each] for each in self._even(len(places), size)]

        def work(places: np.ndarray) -> np.ndarray:
            part = torch.from_numpy(taken[places]).to(self._device)
            of_side = {"input": part[:, :n_inputs], "output": part[:, n_inputs:][:, : self._n_outputs]}
            changes = {
                f"{address_of(kind, layer)}.{name}": _taking(take, of_side[side])
                for side in self.sides
                if of_side[side].any()
                for kind in ATTENDED_IN[side]
                if kind in self.trace.kinds
                for layer in range(layers_of(self.trace.config, kind))
            }
            return _as_numpy(self._log_probs(len(part), changes, one_memory=not of_side["input"].any()))

        found = np.zeros(len(taken))
        for places, log_probs in zip(jobs, _on_cores(work, jobs, self._device), strict=True):
            found[places] = log_probs
        return found

    def _log_probs(self, copies: int, changes: Changes, *, one_memory: bool = False) -> Tensor:
        """The log-probability of the row's token in each copy, (copies,), after changes by address."""
        model, one = self._model, 1 if one_memory and isinstance(self._model, Transformer) else copies
        inputs, outputs = self._whole("input", one), self._whole("output", copies)
        with self._changing(changes):
            match model:
                case Transformer():
                    assert inputs is not None, "an encoder-decoder model has inputs"
                    assert outputs is not None, "an encoder-decoder model has outputs"
                    memory = model.encode(inputs)
                    if one < copies:
                        memory = picked_memory(memory, [0] * copies)
                    states_ND = model.decode(outputs, memory)
                case LanguageModel():
                    assert outputs is not None, "a language model has outputs"
                    states_ND = model.decode(outputs)
                case Classifier():
                    assert inputs is not None, "a classifier has inputs"
                    states_ND = model.label_head(
                        model.encode(inputs).index_select(0, inputs.boundaries.starts_B)
                    )
        rows_BD = states_ND.unflatten(0, (copies, -1))[:, self.row]
        return self._of_target(rows_BD)

    def _of_target(self, states_BD: Tensor) -> Tensor:
        targets = [self.trace.targets[self.row]] * len(states_BD)
        return log_probs_of(self._model, states_BD, targets, multi_label=self.trace.multi_label)

    def _changing(self, changes: Changes) -> AbstractContextManager[object]:
        if not self._changed and changes:
            return recording(self._model, changes, keep=())
        then = (
            (lambda address, value: changes[address](value) if address in changes else value)
            if changes
            else None
        )
        return recording_changed(self._model, self.trace.interventions, then)

    def _whole(self, side: str, copies: int) -> Packed | None:
        """All computed tokens of a side, in each copy."""
        tokens = self.trace.inputs if side == "input" else self.trace.outputs
        if tokens is None:
            return None
        n_tokens = self._n_inputs if side == "input" else self._n_outputs
        return kept_tokens(tokens, np.ones((copies, n_tokens), dtype=bool), self._device)

    # --- without the masked tokens --------------------------------------------------------------------------

    def _pruned(self, taken: np.ndarray) -> np.ndarray:
        """The log-probability in each copy if `taken` are masked, without computing them."""
        n_read = self._n_inputs if "input" in self.sides else 0
        inputs = np.ones((len(taken), self._n_inputs), dtype=bool)
        outputs = np.ones((len(taken), self._n_outputs), dtype=bool)
        inputs[:, :n_read] = ~taken[:, :n_read]
        if "output" in self.sides:
            outputs = ~taken[:, n_read:][:, : self._n_outputs]
        # Attention goes somewhere: to mask the only token changes nothing.
        for keys in (inputs, outputs):
            keys[~keys.any(axis=1)] = True
        order = sorted(range(len(taken)), key=lambda i: (inputs[i].sum(), inputs[i].tobytes()))
        sizes = [int(inputs[i].sum() + outputs[i].sum()) for i in order]
        jobs = [[order[i] for i in part] for part in self._by_tokens(sizes)]
        found = np.zeros(len(taken))
        log_probs = _on_cores(lambda job: self._of_keys(inputs[job], outputs[job]), jobs, self._device)
        for job, each in zip(jobs, log_probs, strict=True):
            found[job] = each
        return found

    def _of_keys(self, inputs: np.ndarray, outputs: np.ndarray) -> np.ndarray:
        """The log-probability in each copy whose queries see only these keys, (copies, tokens)."""
        model, trace = self._model, self.trace
        memory: Memory | None = None
        match model:
            case Classifier():
                assert trace.inputs is not None, "a classifier has inputs"
                kept = inputs.copy()
                kept[:, 0] = True  # the query of the label
                read = kept_tokens(trace.inputs, kept, self._device)
                with self._hiding("encoder", np.flatnonzero(~inputs[:, 0]), np.zeros(len(kept), dtype=int)):
                    states_ND = model.encode(read)
                states_BD = model.label_head(states_ND.index_select(0, read.boundaries.starts_B))
                return _as_numpy(self._of_target(states_BD))
            case Transformer():
                assert trace.inputs is not None, "an encoder-decoder model has inputs"
                different, which = different_rows(inputs)
                memory = model.encode(kept_tokens(trace.inputs, inputs[different], self._device))
                memory = picked_memory(memory, which)
        assert trace.outputs is not None, "a decoder has outputs"
        kept = outputs.copy()
        kept[:, -1] = True  # the query of the prediction
        read = kept_tokens(trace.outputs, kept, self._device)
        with self._hiding("decoder", np.flatnonzero(~outputs[:, -1]), kept.sum(axis=1) - 1):
            if isinstance(model, Transformer):
                assert memory is not None, "it was encoded above"
                states_ND = model.decode(read, memory)
            else:
                assert isinstance(model, LanguageModel), "there is no other decoder"
                states_ND = model.decode(read)
        return _as_numpy(self._of_target(states_ND.index_select(0, read.boundaries.ends_B)))

    def _hiding(self, kind: Kind, copies: np.ndarray, keys: np.ndarray) -> AbstractContextManager[object]:
        """Hide one key of some copies, the query itself, from all queries of its copy."""
        if not len(copies):
            return recording_changed(self._model, ())
        at, key = torch.from_numpy(copies).to(self._device), torch.from_numpy(keys[copies]).to(self._device)

        def hide(value: Tensor) -> Tensor:
            scores = wide_copy(value)
            scores[at, :, :, key] = NEVER
            return narrowed(scores, value.dtype)

        layers = range(layers_of(self.trace.config, kind))
        changes = {f"{address_of(kind, layer)}.scores": hide for layer in layers}
        return recording(self._model, changes, keep=())

    # --- batches --------------------------------------------------------------------------------------------

    def _even(self, n_copies: int, most: int) -> list[slice]:
        """Copies in batches of about the same size, as many for each core."""
        n_cores = cores(self._device)
        n_batches = min(n_copies, -(-n_copies // (most * n_cores)) * n_cores)
        ends = np.linspace(0, n_copies, n_batches + 1).round().astype(int).tolist()
        return [slice(i, j) for i, j in pairwise(ends)]

    def _by_tokens(self, sizes: Sequence[int]) -> Iterator[range]:
        """Neighbours in batches of about as many tokens, one for each core at least."""
        n_cores, total = cores(self._device), sum(sizes)
        n_batches = -(-max(1, -(-total // _batch_tokens(self._device))) // n_cores) * n_cores
        batch = np.minimum((np.cumsum(sizes) - np.asarray(sizes) / 2) * n_batches // total, n_batches - 1)
        for each in np.unique(batch):
            places = np.flatnonzero(batch == each)
            yield range(int(places[0]), int(places[-1]) + 1)


def _batch_tokens(device: torch.device) -> int:
    """Tokens of a batch: all cores together hold as many as one would."""
    return max(1, ablation.BATCH_TOKENS // cores(device))


def _on_cores(work: Callable[[Job], Output], jobs: Sequence[Job], device: torch.device) -> list[Output]:
    """The results of jobs, run on one core each; each is a step of a computation that can be cancelled."""

    def step(job: tuple[Context, Job]) -> Output:
        context, one = job
        context.run(raise_if_cancelled)  # the check of the caller, which other threads do not see
        return work(one)

    return run_on_cores(step, [(copy_context(), job) for job in jobs], device)


def _columns(lengths: Sequence[int], computed: Sequence[int]) -> np.ndarray:
    """The columns of the tokens that were computed, the first ones of each side."""
    return np.concatenate([np.arange(length) < n for length, n in zip(lengths, computed, strict=True)])


def _taking(take: Callable[[Tensor, Tensor], Tensor], taken: Tensor) -> Callable[[Tensor], Tensor]:
    return lambda value: take(value, taken)


def _always(value: Tensor) -> Callable[[Tensor], Tensor]:
    return lambda _: value


def _zero(values_NHU: Tensor, taken: Tensor) -> Tensor:
    return values_NHU.masked_fill(taken.flatten()[:, None, None], 0.0)


def _hide(scores_BHLM: Tensor, taken: Tensor) -> Tensor:
    wide = wide_copy(scores_BHLM).masked_fill_(taken[:, None, None], NEVER)
    return narrowed(wide, scores_BHLM.dtype)


def _as_numpy(values: Tensor) -> np.ndarray:
    array: np.ndarray = values.detach().cpu().double().numpy()
    return array
