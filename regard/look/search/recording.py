"""A beam search as it is told to an observer, made into a tree: the search itself is `decode/beam.py`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from regard.decode.hypothesis import length_penalty
from regard.look.search import words as beam_words
from regard.look.search.tree import BeamTree, Fate, Node, Reason

if TYPE_CHECKING:  # tensors come in, and numbers are kept: no torch is needed here
    from regard.decode.beam import Candidates
    from regard.decode.constraints import Constraints

NEVER = float("-inf")
"""The log-probability of what is no candidate at all."""

_Became = Literal["going", "ending", "neither"]


@dataclass(frozen=True, slots=True)
class _Weighed:
    """A candidate as the search left it at its step."""

    parent: int | None
    step: int
    rank: int
    token: int
    log_prob: float
    total: float
    score: float
    became: _Became


class BeamRecording:
    """Hears of the search for one source's outputs, and keeps every candidate."""

    def __init__(self, shown: Callable[[Sequence[int]], Sequence[str]]) -> None:
        """`shown(ids)`: how one shows these tokens."""
        self._shown = shown
        self._weighed: list[_Weighed] = []

    def begin(self, constraints: Constraints, width: int, alpha: float, n_best: int) -> None:
        """A search starts; what was heard of another before is over."""
        assert constraints.n_sources == 1, "the tree of one source is recorded at a time"
        self._eos, self._limit = constraints.eos, constraints.limits[0]
        self._width, self._alpha, self._n_best = width, alpha, n_best
        self._weighed, self._steps = [], 0
        self._rows: list[int | None] = [None] * width  # the node that each row of the search is

    def step(self, candidates: Candidates, going: Candidates, ending: Candidates) -> None:
        """Keep what there was to choose from."""
        go_on, end = _keys(going), set(_keys(ending))
        # By the same division as the search's, so that scores are the same to the bit.
        scores = candidates.scores_BC / length_penalty(self._steps + 1, self._alpha)
        columns = (candidates.log_probs_BC, candidates.scores_BC, scores)
        numbers = zip(*(column[0].tolist() for column in columns), strict=True)
        nodes: dict[tuple[int, int] | None, int | None] = {None: None}
        for rank, (key, (log_prob, total, score)) in enumerate(zip(_keys(candidates), numbers, strict=True)):
            if key is None:
                continue
            row, token = key
            nodes[key] = len(self._weighed)
            became: _Became = "ending" if key in end else "going" if key in go_on else "neither"
            self._weighed.append(
                _Weighed(self._rows[row], self._steps, rank, token, log_prob, total, score, became)
            )
        self._rows = [nodes[key] for key in go_on]
        self._steps += 1

    def tree(self) -> BeamTree | None:
        """What was heard, with what became of everything; None where no search was heard of."""
        if not self._weighed:
            return None
        tokens = sorted({each.token for each in self._weighed})
        texts = dict(zip(tokens, self._shown(tokens), strict=True))
        ended = sorted(
            (i for i, each in enumerate(self._weighed) if each.became == "ending"),
            key=lambda i: -self._weighed[i].score,
        )
        places = {i: place for place, i in enumerate(ended)}
        nodes = []
        for i, each in enumerate(self._weighed):
            fate, reason = self._fate(each, places.get(i), ended)
            nodes.append(
                Node(
                    id=i,
                    parent=each.parent,
                    step=each.step,
                    rank=each.rank,
                    token=each.token,
                    text=texts[each.token],
                    log_prob=each.log_prob,
                    total=each.total,
                    score=each.score,
                    fate=fate,
                    reason=reason,
                )
            )
        return BeamTree(self._width, tuple(nodes))

    def _fate(self, node: _Weighed, place: int | None, ended: list[int]) -> tuple[Fate, Reason]:
        """`place` is the node's among all that ended."""
        if place is not None:
            cut_off = node.token != self._eos
            if place == 0:
                return "winner", beam_words.won(node.score, cut_off)
            return "finished", beam_words.lost(node.score, self._weighed[ended[0]].score, place, cut_off)
        if node.step + 1 == self._limit:
            return "pruned", beam_words.no_place_at_the_limit(node.rank, self._width)
        if node.became == "going":
            if node.step + 1 < self._steps:
                return "expanded", beam_words.went_on(node.rank, self._width)
            return "pruned", self._stopped(node, ended)
        if node.token == self._eos:
            return "pruned", beam_words.ended_too_low(node.rank, self._width)
        return "pruned", self._outranked(node)

    def _stopped(self, node: _Weighed, ended: list[int]) -> Reason:
        """Why the search stopped before a node that was to go on did."""
        hope = node.total / length_penalty(self._limit, self._alpha)
        if len(ended) >= self._n_best and (to_beat := self._weighed[ended[self._n_best - 1]].score) >= hope:
            return beam_words.hopeless(hope, to_beat)
        return beam_words.enough_ended(len(ended))

    def _outranked(self, node: _Weighed) -> Reason:
        went = [each.total for each in self._weighed if each.step == node.step and each.became == "going"]
        missed = min(went) - node.total
        if missed < 0:  # required phrases have a say in the order
            return beam_words.crowded_out(len(went), self._width)
        return beam_words.outranked(len(went), missed)


def _keys(candidates: Candidates) -> list[tuple[int, int] | None]:
    """Row and token of each candidate of the only source, which no two share; None for what is none."""
    columns = (candidates.scores_BC, candidates.rows_BC, candidates.ids_BC)
    table = zip(*(column[0].tolist() for column in columns), strict=True)
    return [None if score == NEVER else (row, token) for score, row, token in table]
