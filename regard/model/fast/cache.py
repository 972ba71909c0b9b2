"""The cache of decoding: keys and values of the tokens so far, and of the memory.

A cache is a value. `step` takes one and returns another; the two share storage, and the older one stays valid
for its own length, because nothing beyond it is ever read. A second step from the same cache copies the
storage first, so that the continuations do not overwrite each other.

Letters: `R` rows being decoded, `B` sources (each with R / B rows, its beams), `M` places for keys.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.errors import ShapeError
from regard.model.positional_encoding import Positions
from regard.model.taps import tap
from regard.packing import Boundaries

BLOCK = 16
"""Places by which a cache grows. Copies, of which beam search makes one per step, leave out empty blocks."""


def room_for(n_tokens: int, capacity: int) -> int:
    """Places to allocate for `n_tokens` tokens."""
    return min(capacity, -(-n_tokens // BLOCK) * BLOCK)


class KeyValueStore(Protocol):
    """The storage of one block of masked self-attention."""

    def write(self, recall: Recall, k_NHK: Tensor, v_NHU: Tensor, /) -> None:
        """Store the keys and values of new tokens."""

    def up_to(self, reach: int, /) -> KeysValues:
        """All keys and values up to position `reach`."""


@dataclass(frozen=True, eq=False)
class KeysValues:
    """Keys and values of one attention block."""

    k_BHMK: Tensor
    v_BHMU: Tensor

    def write(self, recall: Recall, k_NHK: Tensor, v_NHU: Tensor) -> None:
        """Write the keys and values of new tokens to their rows and positions."""
        if recall.in_step:  # the same place of every row: a plain copy, four times faster
            self.k_BHMK[:, :, recall.reach - 1] = k_NHK
            self.v_BHMU[:, :, recall.reach - 1] = v_NHU
        else:
            self.k_BHMK[recall.new.sequence_N, :, recall.new.positions_N] = k_NHK
            self.v_BHMU[recall.new.sequence_N, :, recall.new.positions_N] = v_NHU

    def up_to(self, reach: int) -> KeysValues:
        """A view of the first `reach` places."""
        return KeysValues(self.k_BHMK[:, :, :reach], self.v_BHMU[:, :, :reach])

    def select(self, rows: Tensor) -> KeysValues:
        """A copy of these rows."""
        return KeysValues(self.k_BHMK.index_select(0, rows), self.v_BHMU.index_select(0, rows))

    def with_room(self, room: int) -> KeysValues:
        """A copy with at least as many places as now, `room`; the new ones are empty."""
        new = (0, 0, 0, room - self.k_BHMK.shape[2])
        return KeysValues(F.pad(self.k_BHMK, new), F.pad(self.v_BHMU, new))


@dataclass(frozen=True, eq=False)
class Recall:
    """How new tokens attend to stored keys: their positions, masks and biases."""

    new: Boundaries
    reach: int
    """Positions of keys to attend to are below this number."""
    own_may_attend: Tensor | None
    memory_may_attend: Tensor | None
    in_step: bool
    """Whether there is one new token in every row, and the same number of tokens before it."""
    own_score_bias: Tensor | None = None
    memory_score_bias: Tensor | None = None

    @property
    def one_each(self) -> bool:
        """Whether there is one new token in every row, so that no padding is needed."""
        return self.new.longest == 1

    def pad(self, q_NHK: Tensor) -> Tensor:
        """Queries of new tokens by row, (R, L, H, K)."""
        return q_NHK[:, None] if self.one_each else self.new.padded.pad(q_NHK)[0]

    def unpad(self, heads_RLHU: Tensor) -> Tensor:
        """Results of the queries in packed order, (N, H, U)."""
        return heads_RLHU[:, 0] if self.one_each else self.new.padded.unpad([heads_RLHU])


@dataclass(frozen=True, eq=False)
class Cache:
    """Keys and values of every decoder layer, which grow, and of the memory, which do not."""

    own: tuple[KeysValues, ...]
    """One per layer, (R, heads, room, width)."""
    lengths_R: Tensor
    """Tokens decoded so far in each row."""
    longest: int
    """Upper bound of `lengths_R`, which the host knows."""
    capacity: int
    """Most tokens that a row may have."""
    even: bool = True
    """Whether all rows have the same length."""
    memory: tuple[KeysValues, ...] = ()
    """One per layer, (B, heads, source length, width); none in a decoder alone."""
    memory_may_attend: Tensor | None = None
    """(B, 1, 1, source length); None where all sources are of one length."""
    permits: list[None] = field(default_factory=lambda: [None])
    """One permit to write to the storage after the tokens so far; the first step takes it."""

    @property
    def n_rows(self) -> int:
        """Rows being decoded."""
        return self.lengths_R.shape[0]

    @property
    def room(self) -> int:
        """Tokens that a row has storage for now."""
        return self.own[0].k_BHMK.shape[2]

    def writable(self, n_tokens: int) -> Cache:
        """The same, with storage for `n_tokens` tokens in a row that no other cache writes to."""
        room = self.room
        if n_tokens <= room:
            try:  # one operation, because several threads may continue one cache
                self.permits.pop()
            except IndexError:
                pass
            else:
                return self
        room = max(room, room_for(n_tokens, self.capacity))
        return replace(self, own=tuple(layer.with_room(room) for layer in self.own))

    def place(self, new: Boundaries) -> Boundaries:
        """Boundaries of new tokens, at least one in every row, after the stored ones."""
        if new.n_sequences != self.n_rows:
            expected = f"new tokens for each of the cache's {self.n_rows} rows"
            raise ShapeError("ids", expected, new.n_sequences, code="row_count_mismatch")
        after = self.longest + new.longest
        # If rows grow unequally, the longest row need not be the one that grows most.
        if len(set(new.known_lengths)) > 1 or after > self.capacity:
            after = int((self.lengths_R + self._counts(new)).max())
        return new.shifted(self.lengths_R, self._fitting(after))

    def place_one_each(self) -> Boundaries:
        """Boundaries of one new token in every row, after the stored ones."""
        after, rows_R = self.longest + 1, torch.arange(self.n_rows, device=self.lengths_R.device)
        if after > self.capacity:  # the longest row may have been dropped by `reorder`
            after = int(self.lengths_R.max()) + 1
        return Boundaries(rows_R, self.lengths_R, (1,) * self.n_rows, self._fitting(after))

    def _fitting(self, n_tokens: int) -> int:
        if n_tokens > self.capacity:
            expected = f"at most {self.capacity} tokens per row, the cache's capacity"
            raise ShapeError("ids", expected, n_tokens, code="cache_full")
        return n_tokens

    def recall(self, placed: Boundaries, positions: Positions) -> Recall:
        """How tokens attend whose boundaries `place` or `place_one_each` made."""
        reach = placed.n_positions
        assert reach is not None, "the boundaries were not made by this cache"
        keys_M = None
        if self.even and placed.longest == 1:
            in_step, own_may_attend, places = True, None, placed.positions_N
        else:
            (places,) = placed.padded.pad(placed.positions_N)
            keys_M = torch.arange(reach, device=places.device)
            in_step, own_may_attend = False, keys_M <= places[:, None, :, None]
        bias = None
        if positions.has_score_bias:
            keys_M = torch.arange(reach, device=places.device) if keys_M is None else keys_M
            if in_step:  # the same position in every row
                bias = positions.score_bias(places[:1], keys_M)
            else:
                bias_HNM = positions.score_bias(places.flatten(), keys_M)
                bias = bias_HNM.unflatten(1, places.shape).transpose(0, 1)  # (R, H, L, M)
            bias = tap(positions, "score_bias", bias)
        return Recall(placed, reach, own_may_attend, self.memory_may_attend, in_step, bias)

    def advanced(self, placed: Boundaries) -> Cache:
        """The cache after the tokens at `placed` have been written."""
        assert placed.n_positions is not None, "the boundaries were not made by this cache"
        lengths_R = self.lengths_R + self._counts(placed)
        even = self.even and len(set(placed.known_lengths)) == 1
        return replace(self, lengths_R=lengths_R, longest=placed.n_positions, even=even, permits=[None])

    def _counts(self, new: Boundaries) -> Tensor | int:
        return 1 if new.longest == 1 else torch.tensor(new.known_lengths, device=self.lengths_R.device)

    def reorder(self, rows_R: Tensor) -> Cache:
        """Row i continues what was row `rows_R[i]`, which must be of the same source."""
        room = room_for(self.longest + 1, self.capacity)
        own = tuple(layer.up_to(room).select(rows_R) for layer in self.own)
        return replace(self, own=own, lengths_R=self.lengths_R.index_select(0, rows_R), permits=[None])

    def keep(self, sources_B: Tensor) -> Cache:
        """Only these sources, with all their rows: finished ones leave the batch."""
        n_sources = self.memory[0].k_BHMK.shape[0] if self.memory else self.n_rows
        beams = self.n_rows // n_sources
        rows_R = (sources_B[:, None] * beams + torch.arange(beams, device=sources_B.device)).flatten()
        memory = tuple(layer.select(sources_B) for layer in self.memory)
        may_attend = self.memory_may_attend
        may_attend = None if may_attend is None else may_attend.index_select(0, sources_B)
        kept = self.reorder(rows_R)
        longest = self.longest if self.even else int(kept.lengths_R.max())
        return replace(kept, longest=longest, memory=memory, memory_may_attend=may_attend)
