"""What decoding remembers: keys and values of the tokens so far, and of the memory.

A cache is a value. `step` takes one and gives another back; the two share storage, and the older one stays
right for its own length, because what lies beyond it is never read. Two continuations of one cache need
`reorder`, which copies.

Letters: `R` rows being decoded, `B` sources (each with R / B rows, its beams), `M` places for keys.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.errors import ShapeError
from regard.packing import Boundaries

BLOCK = 16
"""Places by which a cache grows. Copies, of which beam search makes one a step, leave out what is empty."""


def room_for(n_tokens: int, capacity: int) -> int:
    """Places to make for so many tokens."""
    return min(capacity, -(-n_tokens // BLOCK) * BLOCK)


class Store(Protocol):
    """Where a block of masked self-attention puts the keys and values of new tokens, and finds them all."""

    def write(self, recall: Recall, k_NHK: Tensor, v_NHU: Tensor, /) -> None:
        """Take in the keys and values of new tokens."""

    def up_to(self, reach: int, /) -> KeysValues:
        """All that is there, as far as the new tokens reach."""


@dataclass(frozen=True, eq=False)
class KeysValues:
    """Keys and values of one attention block."""

    k_BHMK: Tensor
    v_BHMU: Tensor

    def write(self, recall: Recall, k_NHK: Tensor, v_NHU: Tensor) -> None:
        """Put the keys and values of new tokens into their rows and positions."""
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
        """A copy with so many places, the new ones empty."""
        new = (0, 0, 0, room - self.k_BHMK.shape[2])
        return KeysValues(F.pad(self.k_BHMK, new), F.pad(self.v_BHMU, new))


@dataclass(frozen=True, eq=False)
class Recall:
    """What one step needs to know to look back: the new tokens' places, and who may attend to what."""

    new: Boundaries
    reach: int
    own_may_attend: Tensor | None
    memory_may_attend: Tensor | None
    in_step: bool
    """Whether there is one new token in every row, and the same number of tokens before it."""

    @property
    def one_each(self) -> bool:
        """Whether there is one new token in every row, so that there is nothing to pad."""
        return self.new.longest == 1

    def pad(self, q_NHK: Tensor) -> Tensor:
        """Queries of new tokens by row, (R, L, H, K)."""
        return q_NHK[:, None] if self.one_each else self.new.padded.pad(q_NHK)[0]

    def unpad(self, heads_RLHU: Tensor) -> Tensor:
        """What came of the queries, as they were packed, (N, H, U)."""
        return heads_RLHU[:, 0] if self.one_each else self.new.padded.unpad([heads_RLHU])


@dataclass(frozen=True, eq=False)
class Cache:
    """Keys and values of every decoder layer, which grow, and of the memory, worked out once."""

    own: tuple[KeysValues, ...]
    """A layer each, (R, heads, room, width)."""
    lengths_R: Tensor
    """Tokens decoded so far in each row."""
    longest: int
    """No row has more, known without asking the device."""
    capacity: int
    """Tokens that a row may have."""
    even: bool = True
    """Whether all rows have as many."""
    memory: tuple[KeysValues, ...] = ()
    """A layer each, (B, heads, source length, width); none in a decoder alone."""
    memory_may_attend: Tensor | None = None
    """(B, 1, 1, source length); None where all sources are of one length."""

    @property
    def n_rows(self) -> int:
        """Rows being decoded."""
        return self.lengths_R.shape[0]

    @property
    def room(self) -> int:
        """Tokens that a row has room for as things stand."""
        return self.own[0].k_BHMK.shape[2]

    def with_room(self, n_tokens: int) -> Cache:
        """The same, with room for so many tokens in a row."""
        if n_tokens <= self.room:
            return self
        room = room_for(n_tokens, self.capacity)
        return replace(self, own=tuple(layer.with_room(room) for layer in self.own))

    def place(self, new: Boundaries) -> Boundaries:
        """Boundaries of new tokens, at least one in every row, behind those that are there already."""
        if new.n_sequences != self.n_rows:
            raise ShapeError("ids", f"new tokens for each of the cache's {self.n_rows} rows", new.n_sequences)
        after = self.longest + new.longest
        # Where some rows grow more than others, the longest need not be the one that grows most.
        if len(set(new.known_lengths)) > 1 or after > self.capacity:
            after = int((self.lengths_R + self._counts(new)).max())
        return new.shifted(self.lengths_R, self._fitting(after))

    def place_one_each(self) -> Boundaries:
        """Boundaries of one new token in every row, behind those that are there already."""
        after, rows_R = self.longest + 1, torch.arange(self.n_rows, device=self.lengths_R.device)
        if after > self.capacity:  # the row that was longest may not have been gone on from
            after = int(self.lengths_R.max()) + 1
        return Boundaries(rows_R, self.lengths_R, (1,) * self.n_rows, self._fitting(after))

    def _fitting(self, n_tokens: int) -> int:
        if n_tokens > self.capacity:
            raise ShapeError("ids", f"at most {self.capacity} tokens a row, the cache's capacity", n_tokens)
        return n_tokens

    def recall(self, placed: Boundaries) -> Recall:
        """Look back from tokens that were placed."""
        reach = placed.n_positions
        assert reach is not None, "only `place` makes boundaries to recall from"
        if self.even and placed.longest == 1:
            return Recall(placed, reach, None, self.memory_may_attend, in_step=True)
        (positions_RL,) = placed.padded.pad(placed.positions_N)
        own_may_attend = torch.arange(reach, device=positions_RL.device) <= positions_RL[:, None, :, None]
        return Recall(placed, reach, own_may_attend, self.memory_may_attend, in_step=False)

    def advanced(self, placed: Boundaries) -> Cache:
        """The cache after tokens that were placed have been written."""
        assert placed.n_positions is not None, "only `place` makes boundaries to advance by"
        lengths_R = self.lengths_R + self._counts(placed)
        even = self.even and len(set(placed.known_lengths)) == 1
        return replace(self, lengths_R=lengths_R, longest=placed.n_positions, even=even)

    def _counts(self, new: Boundaries) -> Tensor | int:
        return 1 if new.longest == 1 else torch.tensor(new.known_lengths, device=self.lengths_R.device)

    def reorder(self, rows_R: Tensor) -> Cache:
        """Row i goes on from what was row `rows_R[i]`, which must be of the same source."""
        room = room_for(self.longest + 1, self.capacity)
        own = tuple(layer.up_to(room).select(rows_R) for layer in self.own)
        return replace(self, own=own, lengths_R=self.lengths_R.index_select(0, rows_R))

    def keep(self, sources_B: Tensor) -> Cache:
        """Only these sources, each with all its rows: finished ones leave the batch."""
        n_sources = self.memory[0].k_BHMK.shape[0] if self.memory else self.n_rows
        beams = self.n_rows // n_sources
        rows_R = (sources_B[:, None] * beams + torch.arange(beams, device=sources_B.device)).flatten()
        memory = tuple(layer.select(sources_B) for layer in self.memory)
        may_attend = self.memory_may_attend
        may_attend = None if may_attend is None else may_attend.index_select(0, sources_B)
        kept = self.reorder(rows_R)
        longest = self.longest if self.even else int(kept.lengths_R.max())
        return replace(kept, longest=longest, memory=memory, memory_may_attend=may_attend)
