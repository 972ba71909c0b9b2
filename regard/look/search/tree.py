"""The tree of a beam search: every candidate that it weighed, and what became of each. No torch here.

A node is a hypothesis, told by its last token. Steps count from 0, and so do ranks: the rank of a candidate
is how many came before it at its step. Those of the first step have no parent, since `<s>` is no candidate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

from regard.errors import RequestError

Fate = Literal["expanded", "finished", "winner", "pruned"]
"""It went on; it ended; it ended and is the best; it was given up."""


class Reason(NamedTuple):
    """Why a node had its fate, as a sentence."""

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
    """The token as one shows it."""
    log_prob: float
    """Of the token, after those before it."""
    total: float
    """Of all tokens up to here, by which candidates of one step compete."""
    score: float
    """`total` over the length penalty, by which those that ended compete."""
    fate: Fate
    reason: Reason


@dataclass(frozen=True, slots=True)
class BeamTree:
    """All the candidates of one search, in the order in which they were weighed; a node's id is its place."""

    beam_size: int
    nodes: tuple[Node, ...]

    @property
    def steps(self) -> int:
        """Tokens of the longest hypothesis."""
        return 1 + max((node.step for node in self.nodes), default=-1)

    @property
    def ended(self) -> tuple[Node, ...]:
        """The nodes that ended, the best first; of equals, the first to end."""
        found = (node for node in self.nodes if node.fate in ("finished", "winner"))
        return tuple(sorted(found, key=lambda node: -node.score))

    @property
    def winner(self) -> Node | None:
        """The best that ended; None where nothing did."""
        return next(iter(self.ended), None)

    def path(self, node: int) -> tuple[Node, ...]:
        """The nodes from the first token to this one.

        Raises:
            RequestError: there is no such node.
        """
        if not 0 <= node < len(self.nodes):
            raise RequestError(f"no node {node}; the tree has nodes from 0 to {len(self.nodes) - 1}")
        found: list[Node] = []
        place: int | None = node
        while place is not None:
            found.append(self.nodes[place])
            place = self.nodes[place].parent
        return tuple(reversed(found))

    def ids(self, node: int) -> tuple[int, ...]:
        """The token ids of a node's hypothesis, the end among them where it ended: a target for `look`."""
        return tuple(each.token for each in self.path(node))

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        winner = self.winner
        return {
            "beam_size": self.beam_size,
            "steps": self.steps,
            "winner": None if winner is None else winner.id,
            "nodes": [{**asdict(node), "reason": _reason_to_json(node.reason)} for node in self.nodes],
        }

    @staticmethod
    def from_json(values: Mapping[str, Any]) -> BeamTree:
        """Undo `to_json`."""
        nodes = (
            Node(**{**node, "reason": Reason(node["reason"]["en"], node["reason"]["zh"])})
            for node in values["nodes"]
        )
        return BeamTree(values["beam_size"], tuple(nodes))


def _reason_to_json(reason: Reason) -> dict[str, str]:
    return {"en": reason.english, "zh": reason.chinese}
