"""The formula, walked through with the real numbers of one token in one head.

Every step follows from those before it: multiply, add and normalise the numbers that a walk shows, with the
model's weights where the formula names some, and the model's own numbers come out. A test does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from regard.errors import RequestError
from regard.look import walk_words as words
from regard.look.interventions.interventions import SkipBlock, heads_off
from regard.look.trace.blocks import BlockName, Kind, layers_of, stack_of, stores_scores, sublayers_of
from regard.look.trace.data import TraceData
from regard.look.walk_words import Words


@dataclass(frozen=True, eq=False, slots=True)
class Step:
    """One line of the computation."""

    name: str
    """The same in every walk, so that programs can find it: q, k, similarity, weights, …"""
    formula: str
    """In plain text."""
    latex: str
    values: np.ndarray
    """One vector; or one row, or one number, for each of `rows`."""
    rows: tuple[str, ...]
    """What the rows of the values belong to: keys, candidates; nothing where there is one vector."""
    english: str
    chinese: str


@dataclass(frozen=True, slots=True)
class Called:
    """What the sentences of a walk call its token, that token's place, and whatever had the most."""

    token: str
    place: str
    most: str
    share: str
    best: str = ""
    chance: str = ""


GAPS = Called(*(f"{{{name}}}" for name in ("token", "place", "most", "share", "best", "chance")))
"""Gaps to be filled in later: with them, the sentences of a walk are those of all its like."""


def walk(
    trace: TraceData, kind: Kind, layer: int, head: int, query: int, called: Called | None = None
) -> list[Step]:
    """All steps, from the input of the layer to its output, or to the model's output.

    Raises:
        RequestError: the model has no such place, or the text no such token.
    """
    trace.check_place(kind, layer, head)
    if not 0 <= query < (n := len(trace.queries(kind))):
        raise RequestError(f"no query {query}; tokens are numbered 0 to {n - 1}", code="unknown_place")
    walker = _Walker(trace, kind, layer, head, query, called or _called(trace, kind, layer, head, query))
    steps = [*walker.below(), *walker.attention(), *walker.add_and_norm(kind)]
    sublayers = sublayers_of(trace.config, stack_of(kind))
    for block in sublayers[sublayers.index(kind) + 1 :]:
        steps += [*walker.normed(block), *walker.block(block), *walker.add_and_norm(block)]
    if layer == layers_of(trace.config, kind) - 1:
        steps += walker.above()
    return steps


def _called(trace: TraceData, kind: Kind, layer: int, head: int, query: int) -> Called:
    weights_M = trace.attention(kind, layer, head)[query]
    most = int(weights_M.argmax())
    token, favourite = trace.queries(kind)[query].text, trace.keys(kind)[most].text
    called = Called(token, str(query), favourite, f"{weights_M[most]:.3f}")
    if query >= len(trace.arrays["said.normaliser"][-1]):
        return called  # a classifier says nothing but its label
    best = trace.candidates(query)[0]
    return replace(called, best=best.text, chance=f"{best.probability:.3f}")


@dataclass(frozen=True, slots=True)
class _Walker:
    trace: TraceData
    kind: Kind
    layer: int
    head: int
    query: int
    called: Called

    @property
    def token(self) -> str:
        return self.called.token

    def step(self, name: str, said: Words, values: np.ndarray, rows: tuple[str, ...] = ()) -> Step:
        return Step(name, said.formula, said.latex, np.asarray(values), rows, said.english, said.chinese)

    def below(self) -> Iterator[Step]:
        """What goes into the block: embedding and position, or what was made of them so far."""
        trace, config = self.trace, self.trace.config
        if self.kind == "cross" or self.layer > 0:
            yield self.step("x", words.handed_up(self.token, self.kind), self.stream_into(self.kind))
        else:
            side = f"{'input' if self.kind == 'encoder' else 'output'}_embedding"
            embedded = trace.arrays[f"{side}.embedded"][self.query]
            yield self.step("embedding", words.embedding(self.token, config), embedded)
            if f"{side}.positions" in trace.arrays:
                position = trace.arrays[f"{side}.positions"][self.query]
                yield self.step("position", words.position(self.called.place, config), position)
                yield self.step("x", words.placed(self.token, config), self.stream_into(self.kind))
            else:
                yield self.step("x", words.unplaced(config), self.stream_into(self.kind))
        yield from self.normed(self.kind)

    def attention(self) -> Iterator[Step]:
        """Figure 2: from the vector to the output of the block."""
        trace, config, at = self.trace, self.trace.config, (self.kind, self.layer, self.head)
        keys = tuple(trace.keys(self.kind).texts)
        scores_M, may_attend_M = trace.scores(*at)[self.query], trace.may_attend(self.kind)[self.query]
        yield self.step("q", words.query(self.token, config, self.kind), trace.q(*at)[self.query])
        yield self.step("k", words.keys(len(keys), config, self.kind), trace.k(*at), keys)
        similar_M = trace.similarities(*at)[self.query]
        yield self.step("similarity", words.similarity(config), similar_M, keys)
        as_usual_M = similar_M
        if config.similarity == "scaled-dot":
            as_usual_M = similar_M * similar_M.dtype.type(config.key_width**-0.5)
            yield self.step("scaled", words.scaled(config), as_usual_M, keys)
        if (bias_LM := trace.score_bias(self.kind, self.head)) is not None and not stores_scores(config):
            as_usual_M = as_usual_M + bias_LM[self.query]
            yield self.step("biased", words.biased(config), as_usual_M, keys)
        if not np.array_equal(scores_M, as_usual_M):
            yield self.step("intervention", words.INTERVENTION, scores_M, keys)
        masked_M = np.where(may_attend_M, scores_M, -np.inf)
        yield self.step(
            "masked", words.masked(self.token, self.kind, bool(may_attend_M.all())), masked_M, keys
        )
        weights_M = trace.attention(*at)[self.query]
        yield self.step("weights", words.weights(self.called.most, self.called.share), weights_M, keys)
        yield self.step("v", words.values(config, self.kind), trace.v(*at), keys)
        yield self.step("head", words.head(self.token), weights_M @ trace.v(*at))
        yield from self.joined()

    def joined(self) -> Iterator[Step]:
        """The heads side by side, and what W_O makes of them."""
        trace, config = self.trace, self.trace.config
        heads = [
            trace.attention(self.kind, self.layer, head)[self.query] @ trace.v(self.kind, self.layer, head)
            for head in range(config.n_heads)
        ]
        off = heads_off(trace.interventions, self.kind, self.layer)
        if self.head in off:
            yield self.step("intervention", words.INTERVENTION, np.zeros_like(heads[self.head]))
        joined = np.concatenate([np.zeros_like(x) if i in off else x for i, x in enumerate(heads)])
        yield self.step("concat", words.concat(config), joined)
        yield from self.block(self.kind)

    def normed(self, block: BlockName) -> Iterator[Step]:
        """What a block reads, where it is normalised first."""
        if self.trace.config.norm_position == "pre":
            normed = self.trace.arrays[f"{self.add_and_norm_at(block)}.normed"][self.query]
            yield self.step("normed", words.normed(self.trace.config), normed)

    def block(self, block: BlockName) -> Iterator[Step]:
        """A block's output: of this attention, of the attention that follows, or of the feed-forward."""
        output = self.trace.output(block, self.layer)[self.query]
        if SkipBlock(block=block, layer=self.layer) in self.trace.interventions:
            yield self.step("intervention", words.INTERVENTION, output)
        elif block == self.kind:
            yield self.step("output", words.output(self.trace.config), output)
        elif block == "cross":
            yield self.step("cross", words.cross(self.token), output)
        else:
            yield self.step("feed-forward", words.feed_forward(self.token, self.trace.config), output)

    def add_and_norm(self, block: BlockName) -> Iterator[Step]:
        """The residual connection around a block, and the norm where it follows."""
        added = self.stream_into(block) + self.trace.output(block, self.layer)[self.query]
        yield self.step("residual", words.RESIDUAL, added)
        if self.trace.config.norm_position == "post":
            after = self.trace.arrays[f"{self.add_and_norm_at(block)}.output"][self.query]
            yield self.step("norm", words.norm(self.trace.config), after)

    def above(self) -> Iterator[Step]:
        """Behind the last layer: the norm of a pre-norm stack, and what the model says."""
        trace, stack = self.trace, stack_of(self.kind)
        if trace.config.norm_position == "pre":
            last = trace.arrays[f"{stack}.output"][self.query]
            yield self.step("final-norm", words.final_norm(trace.config), last)
        is_label = trace.config.architecture == "encoder"
        if stack == "encoder" and not (is_label and self.query == 0):
            return  # the memory, or a token that the label is not read off
        candidates = trace.candidates(self.query)
        rows = tuple(each.piece for each in candidates)
        logits, normaliser = (
            trace.arrays[f"said.{name}"][-1, self.query] for name in ("logits", "normaliser")
        )
        yield self.step("logits", words.logits(len(rows), trace.config), logits, rows)
        shares = np.array([each.probability for each in candidates])
        if trace.multi_label:
            decided = words.decisions(self.called.best, self.called.chance)
            yield self.step("probabilities", decided, shares, rows)
            return
        yield self.step("normaliser", words.NORMALISER, normaliser)
        said = words.probabilities(self.called.best, self.called.chance, is_label=is_label)
        yield self.step("probabilities", said, shares, rows)

    def add_and_norm_at(self, block: BlockName) -> str:
        stack = stack_of(block)
        sublayer = sublayers_of(self.trace.config, stack).index(block)
        return f"{stack}.layers.{self.layer}.add_and_norm.{sublayer}"

    def stream_into(self, block: BlockName) -> np.ndarray:
        """This token's vector before a block's residual connection."""
        stack = stack_of(block)
        sublayer = sublayers_of(self.trace.config, stack).index(block)
        before = (self.layer, sublayer - 1) if sublayer else (self.layer - 1, -1)
        return self.trace.stream(stack, *before)[self.query]
