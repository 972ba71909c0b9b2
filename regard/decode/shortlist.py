"""A lexical shortlist: the output tokens that a search considers, by the tokens of its inputs. No torch here.

Most of a small model's arithmetic is the score of every token of the vocabulary at every step, though a
sentence can only become words that have to do with its own. Which ones is learned from pairs by counting:
IBM's first model (Brown et al., 1993), as in fast_align and Marian. The most frequent tokens are always
considered, and so are the tokens of the input, which may be names.

A batch considers what any of its inputs may become.

Letters: `C` cells, an output token with an input token of the same pair; `E` entries, distinct cells;
`V` vocabulary.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import safetensors
from numpy.typing import NDArray
from safetensors.numpy import load, save

from regard.errors import BundleError

Ids = Sequence[int] | NDArray[Any]


class Pairs(Protocol):
    """Training pairs by their number: inputs as the model reads them, and outputs, without end tokens."""

    def __len__(self) -> int:
        """How many there are."""

    def __getitem__(self, i: int, /) -> tuple[Any, ...]:
        """The ids of both sides of one."""


SMALLEST_VOCABULARY = 4000
"""Tokens of a vocabulary from which on a shortlist is worth its search."""
FREQUENT = 8
"""One token of the vocabulary in so many is always considered."""
PROBABLE = 5e-4
"""Probability from which on an output token is a candidate of an input token …"""
COUNTED = 0.55
"""… and how often it must have been one at least, by expectation: less is noise."""
EM_ROUNDS = 4
LONGEST = 64
"""Tokens; longer sequences have many cells, and say little about single tokens."""
MOST_CELLS = 1 << 24
"""Cells that are learned from by default: some seconds, and 0.5 GB of memory."""


@dataclass(frozen=True, eq=False)
class Shortlist:
    """The candidates of every input token, and those that are always considered."""

    starts: NDArray[np.int64]
    """Where the candidates of each token start, and where those of the last one end: (V + 1)."""
    ids: NDArray[np.int64]
    """The candidates of the first token, of the second, and so on."""
    always: NDArray[np.int64]

    def candidates(self, inputs: Iterable[Ids]) -> NDArray[np.int64]:
        """What these inputs may become together, in ascending order."""
        wanted = np.zeros(len(self.starts) - 1, dtype=bool)
        wanted[self.always] = True
        present = np.unique(np.concatenate([np.asarray(each, dtype=np.int64) for each in inputs]))
        for token in present:
            wanted[self.ids[self.starts[token] : self.starts[token + 1]]] = True
        return np.flatnonzero(wanted)

    @cached_property
    def as_lists(self) -> list[list[int]]:
        """The candidates of every token."""
        return [part.tolist() for part in np.split(self.ids, self.starts[1:-1])]

    def to_bytes(self) -> bytes:
        """The content of the shortlist's file."""
        dtype = np.uint16 if len(self.starts) <= 1 << 16 else np.uint32
        return save(
            {
                "counts": np.diff(self.starts).astype(np.uint32),
                "ids": self.ids.astype(dtype),
                "always": self.always.astype(dtype),
            }
        )

    @staticmethod
    def from_bytes(content: bytes, vocab_size: int) -> Shortlist:
        """Undo `to_bytes`.

        Raises:
            ValueError: the content is not a shortlist for this vocabulary.
        """
        try:
            found = {name: array.astype(np.int64) for name, array in load(content).items()}
        except safetensors.SafetensorError as error:
            raise ValueError(str(error)) from error
        if {*found} != {"counts", "ids", "always"} or any(array.ndim != 1 for array in found.values()):
            raise ValueError("it has not the arrays counts, ids and always")
        counts, ids, always = found["counts"], found["ids"], found["always"]
        if len(counts) != vocab_size or counts.min(initial=0) < 0 or counts.sum() != len(ids):
            raise ValueError(f"it is not for a vocabulary of {vocab_size:,} tokens")
        for of_tokens in (ids, always):
            if of_tokens.min(initial=0) < 0 or of_tokens.max(initial=0) >= vocab_size:
                raise ValueError("it lists a token that the vocabulary does not have")
        return Shortlist(np.concatenate([[0], np.cumsum(counts)]), ids, always)

    @staticmethod
    def from_rows(rows: Sequence[Collection[int]]) -> Shortlist:
        """A shortlist with these candidates of each token, and nothing that is always considered."""
        ids = [np.array(sorted(row), dtype=np.int64) for row in rows]
        starts = np.cumsum([0, *map(len, rows)])
        return Shortlist(starts, np.concatenate(ids), np.zeros(0, dtype=np.int64))

    @staticmethod
    def of_everything(vocab_size: int) -> Shortlist:
        """The shortlist that leaves nothing out: a search with it is a search without it."""
        nothing = np.zeros(0, dtype=np.int64)
        return Shortlist(np.zeros(vocab_size + 1, dtype=np.int64), nothing, np.arange(vocab_size))


def learn(
    pairs: Pairs,
    vocab_size: int,
    *,
    special: Collection[int],
    tags: Collection[int] = (),
    spelling: Collection[int] = (),
    most_cells: int = MOST_CELLS,
) -> Shortlist:
    """Learn a shortlist from training pairs.

    Args:
        pairs: ids of both sides, the inputs with their language tag.
        vocab_size: number of tokens.
        special: tokens that are always considered, such as the end token.
        tags: language tags. What is frequent in a language is considered after its tag only.
        spelling: tokens for single bytes, which spell other characters: one may become any.
        most_cells: limit of the cells that are learned from; pairs are chosen evenly.
    """
    chosen = _chosen(pairs, most_cells)
    always = np.array(sorted(special), dtype=np.int64)
    itself = np.arange(vocab_size)
    parts = [itself * vocab_size + itself]
    for tag in tags or (None,):
        of_tag = [pair for pair in chosen if tag is None or tag in pair[0]]
        frequent = _frequent([outputs for _, outputs in of_tag], vocab_size)
        if tag is None:
            always = np.union1d(always, frequent)
        else:
            parts.append(tag * vocab_size + frequent)
        parts.append(_probable(of_tag, vocab_size, [*tags], frequent))
    bytes_ = np.array([*spelling], dtype=np.int64)
    parts.append(np.add.outer(bytes_ * vocab_size, bytes_).ravel())
    entries = np.unique(np.concatenate(parts))
    starts = np.searchsorted(entries // vocab_size, np.arange(vocab_size + 1))
    return Shortlist(starts, entries % vocab_size, always)


def _probable(
    pairs: Sequence[tuple[NDArray[np.int64], NDArray[np.int64]]],
    vocab_size: int,
    tags: Sequence[int],
    frequent: NDArray[np.int64],
) -> NDArray[np.int64]:
    """What an input token may become with some probability, without what is considered anyway.

    One number for both: the input token times V, plus the output token.
    """
    input_E, output_E, counts_E = _counted(pairs, vocab_size)
    share_E = counts_E / np.bincount(input_E, counts_E, vocab_size + 1)[input_E]
    kept_E = (share_E > PROBABLE) & (counts_E > COUNTED) & (input_E < vocab_size)
    kept_E &= ~np.isin(output_E, frequent) & ~np.isin(input_E, tags)
    return input_E[kept_E] * vocab_size + output_E[kept_E]


def _chosen(pairs: Pairs, most_cells: int) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Pairs from all over, within the limits; the inputs with a null token, which is not set yet: -1."""
    chosen: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
    n_cells, n_pairs = 0, len(pairs)
    # Every 7th pair, then every 7th of the others, and so on: however many are used, they are spread.
    for offset in range(7):
        for i in range(offset, n_pairs, 7):
            inputs, outputs = pairs[i]
            if 0 < len(inputs) <= LONGEST and 0 < len(outputs) <= LONGEST:
                n_cells += (len(inputs) + 1) * len(outputs)
                if n_cells > most_cells and chosen:
                    return chosen
                read = np.concatenate([[-1], np.asarray(inputs, dtype=np.int64)])
                chosen.append((read, np.asarray(outputs, dtype=np.int64)))
    return chosen


def _counted(
    pairs: Sequence[tuple[NDArray[np.int64], NDArray[np.int64]]], vocab_size: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """How often an output token came from an input token, by expectation: (E) each.

    The null token has number `vocab_size`.
    """
    if not pairs:
        nothing = np.zeros(0, dtype=np.int64)
        return nothing, nothing, np.zeros(0)
    n_inputs = np.array([len(inputs) for inputs, _ in pairs])
    n_outputs = np.array([len(outputs) for _, outputs in pairs])
    read = np.concatenate([inputs for inputs, _ in pairs]) % (vocab_size + 1)
    written = np.concatenate([outputs for _, outputs in pairs])
    width = np.repeat(n_inputs, n_outputs)  # cells of each output token
    output_C = np.repeat(np.arange(len(written)), width)
    starts = np.cumsum(width) - width
    first = np.repeat(np.cumsum(n_inputs) - n_inputs, n_outputs)
    input_C = read[np.arange(len(output_C)) + (first - starts)[output_C]]
    entries, entry_C = np.unique(input_C * vocab_size + written[output_C], return_inverse=True)
    input_E = entries // vocab_size
    share_E: NDArray[np.float64] = np.ones(len(entries))
    counts_E: NDArray[np.float64] = share_E
    for _ in range(EM_ROUNDS):
        likelihood_C = share_E[entry_C]
        likelihood_C /= np.add.reduceat(likelihood_C, starts)[output_C]
        counts_E = np.bincount(entry_C, likelihood_C, len(entries)).astype(np.float64)
        share_E = np.divide(counts_E, np.bincount(input_E, counts_E, vocab_size + 1)[input_E])
    return input_E, entries % vocab_size, counts_E


def _frequent(written: Sequence[NDArray[np.int64]], vocab_size: int) -> NDArray[np.int64]:
    """The most frequent tokens."""
    counts = np.bincount(np.concatenate([*written, np.zeros(0, np.int64)]), minlength=vocab_size)
    order = np.argsort(-counts, kind="stable")[: max(1, vocab_size // FREQUENT)]
    return np.sort(order[counts[order] > 0])


def read_shortlist(content: bytes, vocab_size: int, folder: Path | str) -> Shortlist:
    """The shortlist in a file of a model folder.

    Raises:
        BundleError: the content is not a shortlist for this vocabulary.
    """
    try:
        return Shortlist.from_bytes(content, vocab_size)
    except ValueError as error:
        what = f"the shortlist cannot be used: {error}; remove it, and the model is slower but whole"
        raise BundleError(what, str(folder), code="damaged_file") from error
