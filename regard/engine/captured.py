"""Decoding steps that are captured once and run again: on a GPU, a step of hundreds of kernels is one launch.

What is captured has fixed shapes. So sources, their lengths and the room for outputs are rounded up to few
sizes; sources that have ended are left out of what is handed back, and leave the store when those that go on
fit into the next smaller one. A captured step belongs to one search at a time.

Letters: `B` sources, `W` beams of each, `R` = B · W rows, `M` places of each row, `S` source length.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from regard.model.transformer import Memory, Transformer

MEMORY_SHARE = 0.25
"""Of a device's memory, what stores of captured steps may take together; those used last are kept."""
LENGTHS = 32
"""Source lengths and room are whole multiples of this, …"""
WARM_UP = 2
"""Runs before a capture, in which libraries make what they need."""

Shape = tuple[int, int, int, int]


def rounded_up(n_sources: int) -> int:
    """Sources that there is room for: 1, 2, 3, 4, 6, 8, 12, …; a third may be empty, and no more."""
    power = 1 << max(0, n_sources - 1).bit_length()
    return power * 3 // 4 if n_sources <= power * 3 // 4 and power >= 4 else power


class CapturedStep:
    """One step with fixed shapes, and what it works on."""

    def __init__(self, model: Transformer, shape: Shape, like: Tensor) -> None:
        B, W, M, S = shape
        self.shape = shape
        self.slots = model.empty_slots(B, W, M, S, like)
        self.ids_R = torch.zeros(B * W, dtype=torch.int64, device=like.device)
        self.parents_BW = torch.arange(W, device=like.device).repeat(B, 1)
        self._model = model
        self._log_probs_RV: Tensor
        self._graph = self._capture() if like.device.type == "cuda" else None

    @property
    def n_bytes(self) -> int:
        """Memory that the store takes; what a step needs besides is shared by all of them."""
        stores = [*self.slots.own, *self.slots.memory]
        return sum(x.nbytes for store in stores for x in vars(store).values())

    def run(self) -> Tensor:
        """Log-probabilities after the tokens that were put in place; they hold until the next run."""
        if self._graph is None:
            return self._step()
        self._graph.replay()
        return self._log_probs_RV

    def _step(self) -> Tensor:
        return self._model.step_in_slots(self.ids_R, self.parents_BW, self.slots)

    def _capture(self) -> torch.cuda.CUDAGraph:
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(WARM_UP):
                self.slots.clear()
                self._step()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._log_probs_RV = self._step()
        return graph


class CapturedSteps:
    """The captured steps of one model. `start` and `step` are all that a search needs."""

    def __init__(self, model: Transformer) -> None:
        self._model = model
        self._steps: OrderedDict[Shape, CapturedStep] = OrderedDict()

    def start(self, memory: Memory, beams: int) -> CapturedState:
        """Before the first token of any output."""
        lengths = memory.boundaries.known_lengths
        (memory_BSD,) = memory.boundaries.padded.pad(memory.states_SD)
        shape = (rounded_up(len(lengths)), beams, self.room_for(1), self.room_for(max(lengths)))
        step = self._of(shape, memory.states_SD)
        step.slots.remember(self._model.decoder.remember(memory_BSD), memory.boundaries.exists_BL)
        sources_B = torch.arange(len(lengths), device=memory_BSD.device)
        own = torch.arange(beams, device=memory_BSD.device).repeat(len(lengths), 1)
        return CapturedState(self, step, 0, sources_B, own)

    def step(self, ids_R: Tensor, state: CapturedState) -> tuple[Tensor, CapturedState]:
        """One more token in every row: log-probabilities of the next, (R, V), and the state after it."""
        state = state.with_room(state.length + 1)
        step, rows_R = state.captured, state.rows_R
        step.ids_R.index_copy_(0, rows_R, ids_R)
        step.parents_BW.index_copy_(0, state.sources_B, state.parents_BW)
        log_probs_RV = step.run()
        if len(rows_R) < len(log_probs_RV):
            log_probs_RV = log_probs_RV.index_select(0, rows_R)
        return log_probs_RV, state.grown()

    def room_for(self, length: int) -> int:
        """Places to make for so many tokens."""
        return min(self._model.config.max_length, -(-length // LENGTHS) * LENGTHS)

    def moved(self, old: CapturedStep, shape: Shape, sources_B: Tensor | None = None) -> CapturedStep:
        """A step of another shape that goes on from where one is, with all its sources or these."""
        new = self._of(shape, old.slots.own[0].k_BWMHK)
        new.slots.take_over(old.slots, sources_B)
        return new

    def _of(self, shape: Shape, like: Tensor) -> CapturedStep:
        if shape not in self._steps:
            self._steps[shape] = CapturedStep(self._model, shape, like)
            self._forget_some(like.device)
        self._steps.move_to_end(shape)
        return self._steps[shape]

    def _forget_some(self, device: torch.device) -> None:
        """The two used last stay: one may be going on from the other."""
        if device.type != "cuda":
            return
        most = MEMORY_SHARE * torch.cuda.get_device_properties(device).total_memory
        while len(self._steps) > 2 and sum(step.n_bytes for step in self._steps.values()) > most:
            self._steps.popitem(last=False)


@dataclass(frozen=True, eq=False)
class CapturedState:
    """Where a search stands in the store of a captured step."""

    steps: CapturedSteps
    captured: CapturedStep
    length: int
    """Tokens written so far in every row."""
    sources_B: Tensor
    """Where in the store the sources are that go on."""
    parents_BW: Tensor
    """Which beam of its source each row goes on from."""

    @property
    def rows_R(self) -> Tensor:
        """Where in the store the rows are that go on."""
        W = self.parents_BW.shape[1]
        return (self.sources_B[:, None] * W + torch.arange(W, device=self.sources_B.device)).flatten()

    def grown(self) -> CapturedState:
        """After a step: each row goes on from itself, until it is told otherwise."""
        own = torch.arange(self.parents_BW.shape[1], device=self.parents_BW.device)
        return replace(self, length=self.length + 1, parents_BW=own.expand_as(self.parents_BW))

    def with_room(self, n_tokens: int) -> CapturedState:
        """The same with room for so many tokens a row, twice the room where there is too little."""
        B, W, M, S = self.captured.shape
        if n_tokens <= M:
            return self
        shape = (B, W, self.steps.room_for(max(n_tokens, 2 * M)), S)
        return replace(self, captured=self.steps.moved(self.captured, shape))

    def reorder(self, rows_R: Tensor) -> CapturedState:
        """Row i goes on from what was row `rows_R[i]`, which must be of the same source."""
        W = self.parents_BW.shape[1]
        return replace(self, parents_BW=self.parents_BW.gather(1, (rows_R % W).view(-1, W)))

    def keep(self, places_B: Tensor) -> CapturedState:
        """Only these sources, each with all its rows."""
        B, W, M, S = self.captured.shape
        sources_B, parents_BW = self.sources_B[places_B], self.parents_BW[places_B]
        smaller = rounded_up(len(places_B))
        if smaller == B:
            return replace(self, sources_B=sources_B, parents_BW=parents_BW)
        captured = self.steps.moved(self.captured, (smaller, W, M, S), sources_B)
        sources_B = torch.arange(len(places_B), device=places_B.device)
        return replace(self, captured=captured, sources_B=sources_B, parents_BW=parents_BW)
