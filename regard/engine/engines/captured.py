"""Beam search whose step is captured as a CUDA graph: hundreds of kernels become one launch.

It is the search of `decode/beam.py`, step by step, over the model's own step. A graph has fixed shapes and
addresses. So the number of sources, their lengths and the room for outputs are rounded up to a few sizes;
settled sources stay, masked, until the others fit into the next smaller size; and the host synchronises only
every few steps. A captured step belongs to one search at a time.

Letters: `B` sources, `W` beams of each, `M` positions of each row, `S` source length, `N` outputs returned.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from regard.decode.beam import Beams, Ended, History, expand, retire, select
from regard.decode.constraints import NEVER, Constraints
from regard.decode.hypothesis import Hypothesis, length_penalty
from regard.host import free_gpu_memory
from regard.model.fast.cached_decoder import memory_keys_values
from regard.model.fast.slots import empty_slots, step_in_slots
from regard.model.transformer import Memory, Transformer

MEMORY_SHARE = 0.25
"""Share of the free memory for captured steps; the least recently used are dropped."""
LENGTHS = 32
"""Source lengths and room for outputs are multiples of this."""
STEPS = 4
"""Steps between synchronisations; divides LENGTHS."""
WARM_UP = 2
"""Runs before a capture, in which libraries allocate what they need."""

Shape = tuple[int, int, int, int, int]
"""(B, W, M, S, N)."""


def rounded_up(n_sources: int) -> int:
    """The number of sources, rounded up to 1, 2, 3, 4, 6, 8, 12, …: at most a third is empty."""
    power = 1 << max(0, n_sources - 1).bit_length()
    return power * 3 // 4 if n_sources <= power * 3 // 4 and power >= 4 else power


class CapturedStep:
    """One step of a search with fixed shapes, and all tensors that it reads and writes."""

    def __init__(self, model: Transformer, shape: Shape, eos: int, like: Tensor, pool: Any = None) -> None:
        """`pool` is memory for temporary tensors: steps that never run at once can share it."""
        B, W, M, S, N = shape
        device = like.device
        self.shape = shape
        self._model, self._eos = model, eos
        self.slots = empty_slots(model, B, W, M, S, like)
        ids_BW = torch.zeros(B, W, dtype=torch.int64, device=device)
        self._parents_BW = torch.zeros_like(ids_BW)
        self.limits_B, sources_B = torch.zeros_like(ids_BW[:, 0]), torch.zeros_like(ids_BW[:, 0])
        self.beams = Beams(torch.zeros_like(ids_BW, dtype=torch.float32), ids_BW, sources_B)
        self.ended = Ended.none(B, N, device)
        self.history = History.none(B, W, M, device)
        self.settled_B = torch.ones_like(sources_B, dtype=torch.bool)
        self.greatest_penalty_B = torch.ones_like(sources_B, dtype=torch.float32)
        self.alpha = torch.zeros((), device=device)
        self._graph = self._capture(pool) if device.type == "cuda" else None

    @property
    def by_source(self) -> list[Tensor]:
        """All state tensors; their first dimension is the source."""
        values = [x for value in (self.beams, self.ended, self.history) for x in vars(value).values()]
        others = [self._parents_BW, self.limits_B, self.settled_B, self.greatest_penalty_B]
        return [*self.slots.by_source, *values, *others]

    @property
    def n_bytes(self) -> int:
        """Size of its state in bytes."""
        return sum(x.nbytes for x in self.by_source)

    def begin(
        self, model_memory: Sequence[Tensor], exists_BS: Tensor, constraints: Constraints, alpha: float
    ) -> None:
        """Set the state before the first token. Slots without a source are settled."""
        B, S = exists_BS.shape
        for mine, given in zip(self.slots.of_memory, model_memory, strict=True):
            mine[:B, :, :S] = given
        self.slots.memory_exists_BS.zero_()
        self.slots.memory_exists_BS[:, 0] = True  # empty slots attend to token 0, so the softmax stays finite
        self.slots.memory_exists_BS[:B, :S] = exists_BS
        self.slots.ancestry_BWWM.zero_()
        self.slots.place_1.zero_()
        self._parents_BW.zero_()
        self.beams.scores_BW.fill_(NEVER)[:, 0] = 0.0
        self.beams.last_BW.fill_(constraints.bos)
        self.beams.sources_B.zero_()[:B] = torch.arange(B, device=exists_BS.device)
        self.ended.scores_BN.fill_(NEVER)
        self.ended.lengths_BN.zero_()
        self.ended.counts_B.zero_()
        self.limits_B.zero_()[:B] = constraints.limits_B
        self.settled_B.fill_(True)[:B] = False
        self.alpha.fill_(alpha)
        penalties = [length_penalty(limit, alpha) for limit in constraints.limits]
        self.greatest_penalty_B.fill_(1.0)[:B] = torch.tensor(penalties, device=exists_BS.device)

    def take_over(self, other: CapturedStep, places_B: Tensor) -> None:
        """Copy these sources of another step into the first slots; the other slots are settled."""
        for mine, theirs in zip(self.by_source, other.by_source, strict=True):
            chosen = theirs.index_select(0, places_B)
            mine[tuple(map(slice, chosen.shape))].copy_(chosen)
        self.settled_B[len(places_B) :] = True
        self.slots.ancestry_BWWM[..., other.shape[2] :] = False
        self.slots.place_1.copy_(other.slots.place_1)
        self.alpha.copy_(other.alpha)

    def run(self) -> None:
        """Add one token to every row."""
        if self._graph is None:
            self._step()
        else:
            self._graph.replay()

    def _step(self) -> None:
        width, step_1 = self.shape[1], self.slots.place_1
        log_probs_RV = step_in_slots(self._model, self.beams.last_BW.flatten(), self._parents_BW, self.slots)
        last_chance_B = self.limits_B == step_1 + 1
        going, ending = select(expand(self.beams, log_probs_RV), width, self._eos, last_chance_B)
        ending = ending.only(~self.settled_B[:, None])
        ended = self.ended.joined_by(ending, step_1, ((step_1 + 6) / 6) ** self.alpha, width)
        self.history.write(step_1, going)
        beams = self.beams.followed_by(going)
        # Greedy search is a beam of one that stops at the first end.
        settled_B = retire(beams, ended, self.greatest_penalty_B, 1.0 if width == 1 else None)
        self.settled_B.logical_or_(last_chance_B | settled_B)
        self._parents_BW.copy_(going.rows_BC % width)
        for mine, new in ((self.beams, beams), (self.ended, ended)):
            for old_value, value in zip(vars(mine).values(), vars(new).values(), strict=True):
                old_value.copy_(value)
        step_1.add_(1)

    def _capture(self, pool: Any) -> torch.cuda.CUDAGraph:
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(WARM_UP):
                self.slots.place_1.zero_()
                self._step()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        # Another thread may use the GPU meanwhile, to trace the model.
        with torch.cuda.graph(graph, pool=pool, capture_error_mode="thread_local"):
            self._step()
        return graph


class CapturedSearches:
    """Searches with one model; captured steps are cached by shape."""

    def __init__(self, model: Transformer, eos: int) -> None:
        self._model, self._eos = model, eos
        self._steps: OrderedDict[Shape, CapturedStep] = OrderedDict()
        device = model.output_probabilities.weight.device
        on_gpu = device.type == "cuda"
        self._pool = torch.cuda.graph_pool_handle() if on_gpu else None
        # Free memory, not total memory: other processes may use the same device.
        self._most_bytes = MEMORY_SHARE * free_gpu_memory(device) if on_gpu else float("inf")

    def search(
        self, memory: Memory, constraints: Constraints, *, width: int, alpha: float, n_best: int
    ) -> list[tuple[Hypothesis, ...]]:
        """At most `n_best` hypotheses of each source, the best first; a width of 1 is greedy search."""
        lengths = memory.boundaries.known_lengths
        shape = (rounded_up(len(lengths)), width, self._room(1), self._room(max(lengths)), n_best)
        step = self._of(shape, memory.states_SD)
        (memory_BSD,) = memory.boundaries.padded.pad(memory.states_SD)
        remembered = memory_keys_values(self._model.decoder, memory_BSD)
        of_memory = [x for layer in remembered for x in (layer.k_BHMK, layer.v_BHMU)]
        step.begin(of_memory, memory.boundaries.exists_BL, constraints, alpha)
        found: dict[int, tuple[Hypothesis, ...]] = {}
        for t in range(0, max(constraints.limits), STEPS):
            step = self._with_room(step, t + STEPS)
            for _ in range(min(STEPS, step.shape[2] - t)):
                step.run()
            settled = step.settled_B.tolist()  # the only synchronisation
            going = [place for place, is_settled in enumerate(settled) if not is_settled]
            size = rounded_up(len(going))
            if going and size == step.shape[0]:
                continue
            found |= self._collected(step, [i for i, is_settled in enumerate(settled) if is_settled], alpha)
            if not going:
                break
            step = self._moved(step, (size, *step.shape[1:]), going)
        return [found[source] for source in range(len(lengths))]

    def _collected(
        self, step: CapturedStep, places: list[int], alpha: float
    ) -> dict[int, tuple[Hypothesis, ...]]:
        """The hypotheses of the sources in these slots; empty slots have none."""
        places_B = torch.tensor(places, device=step.settled_B.device)
        ended, history = step.ended.keep(places_B), step.history.keep(places_B)
        sources = step.beams.sources_B[places_B].tolist()
        bests = zip(sources, ended.hypotheses(history, self._eos, alpha), strict=True)
        return {source: best for source, best in bests if best}

    def _with_room(self, step: CapturedStep, n_tokens: int) -> CapturedStep:
        """Grow the room for outputs when needed: attention reads all of it, so it starts small."""
        B, W, M, S, N = step.shape
        if n_tokens <= M or self._model.config.max_length == M:
            return step
        return self._moved(step, (B, W, self._room(n_tokens), S, N), range(B))

    def _moved(self, step: CapturedStep, shape: Shape, places: Sequence[int]) -> CapturedStep:
        moved = self._of(shape, step.slots.own[0].k_BHWMK)
        moved.take_over(step, torch.tensor(places, device=step.settled_B.device))
        return moved

    def _room(self, length: int) -> int:
        return min(self._model.config.max_length, -(-length // LENGTHS) * LENGTHS)

    def _of(self, shape: Shape, like: Tensor) -> CapturedStep:
        if shape not in self._steps:
            self._steps[shape] = CapturedStep(self._model, shape, self._eos, like, self._pool)
            self._evict()
        self._steps.move_to_end(shape)
        return self._steps[shape]

    def _evict(self) -> None:
        """Drop the least recently used steps, but keep two: one may continue the other."""
        while len(self._steps) > 2 and sum(step.n_bytes for step in self._steps.values()) > self._most_bytes:
            self._steps.popitem(last=False)
