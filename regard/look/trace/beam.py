"""The tree of a beam search: every candidate, its fate and the reason, recorded while the search runs.

A node is a hypothesis, identified by its last token. Steps and ranks count from 0; a candidate's rank is its
place at its step. Nodes of the first step have no parent, since `<s>` is not a candidate. Imports no torch.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from regard.decode.hypothesis import length_penalty
from regard.errors import RequestError

if TYPE_CHECKING:
    from regard.decode.beam import Candidates
    from regard.decode.constraints import Constraints

Fate = Literal["expanded", "finished", "winner", "pruned"]
"""Kept in the beam; ended; ended with the best score; dropped."""
_Outcome = Literal["kept", "ended", "dropped"]
IMPOSSIBLE = float("-inf")
"""Log-probability of padding: rows of the table that hold no candidate."""


_SENTENCES: dict[str, dict[str, str]] = json.loads(
    files("regard.look").joinpath("sentences.json").read_text(encoding="utf-8")
)["beam"]


class Reason(NamedTuple):
    """Why a node has its fate, as a sentence."""

    english: str
    chinese: str


@dataclass(frozen=True, slots=True)
class Node:
    """One candidate."""

    id: int
    parent: int | None
    step: int
    rank: int
    token: int
    text: str
    """The token as it is displayed."""
    log_prob: float
    """Of the token, given those before it."""
    total: float
    """Sum of log-probabilities up to here; candidates of one step are ranked by it."""
    score: float
    """`total` divided by the length penalty; ended hypotheses are ranked by it."""
    fate: Fate
    reason: Reason


@dataclass(frozen=True, slots=True)
class BeamTree:
    """All candidates of one search, in the order in which they were scored; a node's id is its index."""

    beam_size: int
    nodes: tuple[Node, ...]

    @property
    def steps(self) -> int:
        """Number of tokens of the longest hypothesis."""
        return 1 + max((node.step for node in self.nodes), default=-1)

    @property
    def ended(self) -> tuple[Node, ...]:
        """The nodes that ended, best first; ties in the order in which they ended."""
        ended = (node for node in self.nodes if node.fate in ("finished", "winner"))
        return tuple(sorted(ended, key=lambda node: -node.score))

    @property
    def winner(self) -> Node | None:
        """The best node that ended, or None."""
        return next(iter(self.ended), None)

    def path(self, node: int) -> tuple[Node, ...]:
        """The nodes from the first token to this one.

        Raises:
            RequestError: the tree has no such node.
        """
        if not 0 <= node < len(self.nodes):
            last = len(self.nodes) - 1
            raise RequestError(f"no node {node}; the tree has nodes 0 to {last}", code="unknown_node")
        nodes: list[Node] = []
        place: int | None = node
        while place is not None:
            nodes.append(self.nodes[place])
            place = self.nodes[place].parent
        return tuple(reversed(nodes))

    def ids(self, node: int) -> tuple[int, ...]:
        """The token ids of a node's hypothesis, with the end token if it ended: a target for `look`."""
        return tuple(each.token for each in self.path(node))

    def to_json(self) -> dict[str, Any]:
        """The tree as plain values."""
        winner = self.winner
        nodes = (
            {**asdict(node), "reason": {"en": node.reason.english, "zh": node.reason.chinese}}
            for node in self.nodes
        )
        return {
            "beam_size": self.beam_size,
            "steps": self.steps,
            "winner": None if winner is None else winner.id,
            "nodes": list(nodes),
        }

    @staticmethod
    def from_json(values: Mapping[str, Any]) -> BeamTree:
        """Undo `to_json`."""
        nodes = (
            Node(**{**node, "reason": Reason(node["reason"]["en"], node["reason"]["zh"])})
            for node in values["nodes"]
        )
        return BeamTree(values["beam_size"], tuple(nodes))


@dataclass(frozen=True, slots=True)
class _Scored:
    """A candidate as the search left it at its step."""

    parent: int | None
    step: int
    rank: int
    token: int
    log_prob: float
    total: float
    score: float
    outcome: _Outcome


class BeamRecorder:
    """Observer of a search over one source: records every candidate."""

    def __init__(self, display: Callable[[Sequence[int]], Sequence[str]]) -> None:
        """`display(ids)` returns the texts by which these tokens are shown."""
        self._display = display
        self._scored: list[_Scored] = []

    def begin(self, constraints: Constraints, width: int, alpha: float, n_best: int) -> None:
        """Start a new search; forget the previous one."""
        assert constraints.n_sources == 1, "a beam tree is recorded for one source at a time"
        self._eos, self._limit = constraints.eos, constraints.limits[0]
        self._width, self._alpha, self._n_best = width, alpha, n_best
        self._scored, self._steps = [], 0
        self._rows: list[int | None] = [None] * width  # the node of each row of the search

    def step(self, candidates: Candidates, going: Candidates, ending: Candidates) -> None:
        """Record the candidates of one step, those kept and those that ended."""
        kept, ended = _keys(going), set(_keys(ending))
        # The same division as in the search, so that scores are equal to the bit.
        scores = candidates.scores_BC / length_penalty(self._steps + 1, self._alpha)
        columns = (candidates.log_probs_BC, candidates.scores_BC, scores)
        numbers = zip(*(column[0].tolist() for column in columns), strict=True)
        nodes: dict[tuple[int, int] | None, int | None] = {None: None}
        for rank, (key, (log_prob, total, score)) in enumerate(zip(_keys(candidates), numbers, strict=True)):
            if key is None:
                continue
            row, token = key
            nodes[key] = len(self._scored)
            outcome: _Outcome = "ended" if key in ended else "kept" if key in kept else "dropped"
            parent = self._rows[row]
            self._scored.append(_Scored(parent, self._steps, rank, token, log_prob, total, score, outcome))
        self._rows = [nodes[key] for key in kept]
        self._steps += 1

    def tree(self) -> BeamTree | None:
        """The tree of the search; None if no search was observed."""
        if not self._scored:
            return None
        tokens = sorted({each.token for each in self._scored})
        texts = dict(zip(tokens, self._display(tokens), strict=True))
        ended = sorted(
            (i for i, each in enumerate(self._scored) if each.outcome == "ended"),
            key=lambda i: -self._scored[i].score,
        )
        places = {i: place for place, i in enumerate(ended)}
        nodes = []
        for i, each in enumerate(self._scored):
            fate, reason = self._fate(each, places.get(i), ended)
            place = (each.parent, each.step, each.rank, each.token, texts[each.token])
            nodes.append(Node(i, *place, each.log_prob, each.total, each.score, fate, reason))
        return BeamTree(self._width, tuple(nodes))

    def _fate(self, node: _Scored, place: int | None, ended: list[int]) -> tuple[Fate, Reason]:
        """`place` is the node's rank among all that ended; None if it did not end."""
        rank, width = node.rank + 1, self._width
        if place is not None:
            truncated = "" if node.token == self._eos else " truncated"
            score, best = f"{node.score:.4f}", f"{self._scored[ended[0]].score:.4f}"
            if place == 0:
                return "winner", _reason(f"won{truncated}", score=score)
            return "finished", _reason(f"beaten{truncated}", place=place + 1, score=score, best=best)
        if node.step + 1 == self._limit:
            return "pruned", _reason("length limit", rank=rank, width=width)
        if node.outcome == "kept":
            if node.step + 1 < self._steps:
                return "expanded", _reason("kept", rank=rank, width=width)
            return "pruned", self._search_stopped(node, ended)
        if node.token == self._eos:
            return "pruned", _reason("ended too low", rank=rank, width=width)
        return "pruned", self._outranked(node)

    def _search_stopped(self, node: _Scored, ended: list[int]) -> Reason:
        """Why the search stopped while this node was still open."""
        bound = node.total / length_penalty(self._limit, self._alpha)
        if len(ended) >= self._n_best and (best := self._scored[ended[self._n_best - 1]].score) >= bound:
            return _reason("hopeless", bound=f"{bound:.4f}", best=f"{best:.4f}")
        return _reason("enough ended", n=len(ended))

    def _outranked(self, node: _Scored) -> Reason:
        kept = [each.total for each in self._scored if each.step == node.step and each.outcome == "kept"]
        missing = min(kept) - node.total
        if missing < 0:  # required phrases took precedence over log-probability
            return _reason("required phrases", n=len(kept), width=self._width)
        better = f"{len(kept)} better candidate{'' if len(kept) == 1 else 's'}"
        return _reason("outranked", better=better, n=len(kept), missing=f"{missing:.4f}")


def _reason(key: str, **gaps: object) -> Reason:
    return Reason(_SENTENCES[key]["en"].format(**gaps), _SENTENCES[key]["zh"].format(**gaps))


def _keys(candidates: Candidates) -> list[tuple[int, int] | None]:
    """Row and token of each candidate of the only source, unique; None for padding."""
    columns = (candidates.scores_BC, candidates.rows_BC, candidates.ids_BC)
    table = zip(*(column[0].tolist() for column in columns), strict=True)
    return [None if score == IMPOSSIBLE else (row, token) for score, row, token in table]
