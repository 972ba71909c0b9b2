"""The formula of attention, walked through with the numbers of one token in one head.

Every step follows from those before it: with the numbers that a walk shows, and the model's weights where the
formula names some, the computation can be repeated; a test does. `sentences.json` has the texts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.resources import files

import numpy as np

from regard.config import ModelConfig
from regard.errors import RequestError
from regard.look.interventions.interventions import SkipBlock, heads_off
from regard.look.trace.blocks import (
    BlockName,
    Kind,
    has_own_scores,
    layers_of,
    side_of,
    stack_of,
    sublayers_of,
)
from regard.look.trace.data import TraceData

_SENTENCES: dict[str, dict[str, str]] = json.loads(
    files("regard.look").joinpath("sentences.json").read_text(encoding="utf-8")
)["walk"]
_HIDDEN = {
    "relu": ("max(0, x W₁ + b₁)", r"\max(0, x W_1 + b_1)"),
    "gelu": ("GELU(x W₁ + b₁)", r"\mathrm{GELU}(x W_1 + b_1)"),
    "gelu-tanh": ("GELU(x W₁ + b₁)", r"\mathrm{GELU}(x W_1 + b_1)"),
    "swish": ("SiLU(x W₁ + b₁)", r"\mathrm{SiLU}(x W_1 + b_1)"),
    "swiglu": (
        "(SiLU(x W_g + b_g) ⊙ (x W₁ + b₁))",
        r"\left(\mathrm{SiLU}(x W_g + b_g) \odot (x W_1 + b_1)\right)",
    ),
    "geglu": (
        "(GELU(x W_g + b_g) ⊙ (x W₁ + b₁))",
        r"\left(\mathrm{GELU}(x W_g + b_g) \odot (x W_1 + b_1)\right)",
    ),
}
"""The hidden units of the feed-forward sub-layer, as text and as LaTeX."""


@dataclass(frozen=True, slots=True)
class StepText:
    """The formula of a step and its sentence in both languages."""

    formula: str
    latex: str
    english: str
    chinese: str


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
    """The keys or candidates that the rows of the values belong to; empty for one vector."""
    english: str
    chinese: str


@dataclass(frozen=True, slots=True)
class Gaps:
    """What fills the gaps of the sentences: a token, its position, the key with the largest weight, …"""

    token: str
    place: str
    most: str
    share: str
    best: str = ""
    chance: str = ""


TEMPLATE = Gaps(*(f"{{{name}}}" for name in ("token", "place", "most", "share", "best", "chance")))
"""Leaves the gaps open, for a reader that fills them in itself."""


def walk(
    trace: TraceData, kind: Kind, layer: int, head: int, query: int, gaps: Gaps | None = None
) -> list[Step]:
    """All steps, from the input of the layer to its output, or to the model's output.

    Raises:
        RequestError: the model has no such place, or the text no such token.
    """
    trace.check_place(kind, layer, head)
    if not 0 <= query < (n := len(trace.queries(kind))):
        raise RequestError(f"no query {query}; tokens are numbered 0 to {n - 1}", code="unknown_place")
    walker = _Walker(trace, kind, layer, head, query, gaps or _gaps(trace, kind, layer, head, query))
    steps = [*walker.below(), *walker.attention(), *walker.add_and_norm(kind)]
    sublayers = sublayers_of(trace.config, stack_of(kind))
    for block in sublayers[sublayers.index(kind) + 1 :]:
        steps += [*walker.normed(block), *walker.block(block), *walker.add_and_norm(block)]
    if layer == layers_of(trace.config, kind) - 1:
        steps += walker.above()
    return steps


def sentence(key: str, formula: tuple[str, str] | None = None, **gaps: object) -> StepText:
    """The text of a step; a formula, plain and in LaTeX, that depends on the configuration is given."""
    entry = _SENTENCES[key]
    plain, latex = formula or (entry["formula"], entry["latex"])
    return StepText(plain, latex, entry["en"].format(**gaps), entry["zh"].format(**gaps))


def mask_sentence(token: str, kind: Kind, sees_all: bool) -> StepText:
    """The text of the mask, which depends on the query."""
    key = "masked none" if sees_all else "masked later" if kind == "decoder" else "masked"
    return sentence(key, token=token)


def _similarity(config: ModelConfig, *, recorded: bool) -> StepText:
    name = config.similarity
    if recorded and not has_own_scores(config):
        return sentence("similarity recorded")
    if name in ("scaled-dot", "dot", "bilinear"):
        return sentence("similarity")
    if f"similarity {name}" in _SENTENCES:
        return sentence(f"similarity {name}")
    return sentence("similarity other", (f"{name}(q, k)", rf"\mathrm{{{name}}}(q, k)"), name=name)


def _softmax(scores_M: np.ndarray) -> np.ndarray:
    exponentials_M = np.exp(scores_M - scores_M.max())
    shares_M: np.ndarray = exponentials_M / exponentials_M.sum()
    return shares_M


def _gaps(trace: TraceData, kind: Kind, layer: int, head: int, query: int) -> Gaps:
    weights_M = trace.attention(kind, layer, head)[query]
    most = int(weights_M.argmax())
    token, key = trace.queries(kind)[query].text, trace.keys(kind)[most].text
    gaps = Gaps(token, str(query), key, f"{weights_M[most]:.3f}")
    if query >= len(trace.arrays["said.normaliser"][-1]):
        return gaps  # a classifier predicts its label only
    best = trace.candidates(query)[0]
    return replace(gaps, best=best.text, chance=f"{best.probability:.3f}")


@dataclass(frozen=True, slots=True)
class _Walker:
    trace: TraceData
    kind: Kind
    layer: int
    head: int
    query: int
    gaps: Gaps

    def step(self, name: str, text: StepText, values: np.ndarray, rows: tuple[str, ...] = ()) -> Step:
        return Step(name, text.formula, text.latex, np.asarray(values), rows, text.english, text.chinese)

    def below(self) -> Iterator[Step]:
        """The input of the block: embedding and position, or the output of what is below."""
        trace, config, token = self.trace, self.trace.config, self.gaps.token
        x = self.stream_into(self.kind)
        if self.kind == "cross" or self.layer > 0:
            below = "self-attention" if self.kind == "cross" else "layer below"
            yield self.step("x", sentence(f"x {below}", token=token), x)
        else:
            side = f"{side_of(stack_of(self.kind))}_embedding"
            scaled = "embedding scaled" if config.scale_embeddings else "embedding"
            text = sentence(scaled, token=token, d_model=config.d_model)
            yield self.step("embedding", text, trace.arrays[f"{side}.embedded"][self.query])
            normed = " normed" if config.embedding_norm else ""
            if f"{side}.positions" in trace.arrays:
                known = config.positions in ("sinusoidal", "learned")
                text = sentence(f"position {config.positions if known else 'other'}", place=self.gaps.place)
                yield self.step("position", text, trace.arrays[f"{side}.positions"][self.query])
                yield self.step("x", sentence(f"x placed{normed}", token=token), x)
            else:
                formula = "x = embedding", r"x = \mathrm{embedding}"
                if config.embedding_norm:
                    formula = "x = Norm(embedding)", r"x = \mathrm{Norm}(\mathrm{embedding})"
                kind = config.positions if f"x {config.positions}" in _SENTENCES else "unplaced"
                yield self.step("x", sentence(f"x {kind}", formula), x)
        yield from self.normed(self.kind)

    def attention(self) -> Iterator[Step]:
        """Figure 2: from the vector to the output of the block."""
        trace, config, at = self.trace, self.trace.config, (self.kind, self.layer, self.head)
        token, keys = self.gaps.token, tuple(trace.keys(self.kind).texts)
        scores_M, may_attend_M = trace.scores(*at)[self.query], trace.may_attend(self.kind)[self.query]
        q, k = (_projected(letter, config, self.kind) for letter in "qk")
        yield self.step("q", sentence("q", q, token=token), trace.q(*at)[self.query])
        memory = "k memory" if self.kind == "cross" else "k"
        yield self.step("k", sentence(memory, k, n=len(keys)), trace.k(*at), keys)
        similar_M = trace.similarities(*at)[self.query]
        stored = trace.recorded("scores", self.kind, self.layer) is not None
        yield self.step("similarity", _similarity(config, recorded=stored), similar_M, keys)
        usual_M = similar_M
        if config.similarity == "scaled-dot" and not stored:
            usual_M = similar_M * similar_M.dtype.type(config.key_width**-0.5)
            yield self.step("scaled", sentence("scaled", root=f"{config.key_width**0.5:.4g}"), usual_M, keys)
        if (bias_LM := trace.score_bias(self.kind, self.head)) is not None and not stored:
            usual_M = usual_M + bias_LM[self.query]
            key = "biased alibi" if config.positions == "alibi" else "biased"
            yield self.step("biased", sentence(key), usual_M, keys)
        if not np.array_equal(scores_M, usual_M):
            yield self.step("intervention", sentence("intervention"), scores_M, keys)
        masked_M = np.where(may_attend_M, scores_M, -np.inf)
        yield self.step("masked", mask_sentence(token, self.kind, bool(may_attend_M.all())), masked_M, keys)
        weights_M = trace.attention(*at)[self.query]
        text = sentence("weights", most=self.gaps.most, share=self.gaps.share)
        if trace.recorded("weights", self.kind, self.layer) is None:
            yield self.step("weights", text, weights_M, keys)
        else:
            yield self.step("weights", text, _softmax(masked_M), keys)
            yield self.step("intervention", sentence("intervention"), weights_M, keys)
        plain, latex = _linear("v", config, self.kind)
        yield self.step("v", sentence("v", (f"v = {plain}", f"v = {latex}")), trace.v(*at), keys)
        yield self.step("head", sentence("head", token=token), weights_M @ trace.v(*at))
        yield from self.joined()

    def joined(self) -> Iterator[Step]:
        """The heads side by side, and the output projection."""
        trace, config = self.trace, self.trace.config
        of_head = [trace.head_output(self.kind, self.layer, i)[self.query] for i in range(config.n_heads)]
        off = heads_off(trace.interventions, self.kind, self.layer)
        if self.head in off or trace.recorded("heads", self.kind, self.layer) is not None:
            yield self.step("intervention", sentence("intervention"), of_head[self.head])
        yield self.step("concat", sentence("concat", n=config.n_heads), np.concatenate(of_head))
        yield from self.block(self.kind)

    def normed(self, block: BlockName) -> Iterator[Step]:
        """The input of a pre-norm block."""
        if self.trace.config.norm_position == "pre":
            normed = self.trace.arrays[f"{self.add_and_norm_at(block)}.normed"][self.query]
            yield self.step("normed", sentence("normed", self.norm_formula), normed)

    def block(self, block: BlockName) -> Iterator[Step]:
        """The output of a block: of this attention, of the attention that follows, or of the feed-forward."""
        config, token = self.trace.config, self.gaps.token
        output = self.trace.output(block, self.layer)[self.query]
        if SkipBlock(block=block, layer=self.layer) in self.trace.interventions:
            yield self.step("intervention", sentence("intervention"), output)
        elif block == self.kind:
            plain, latex = (" + b_O", " + b^O") if config.attention_bias else ("", "")
            formula = f"Concat(…) W_O{plain}", rf"\mathrm{{Concat}}(\ldots) W^O{latex}"
            yield self.step("output", sentence("output", formula, d_model=config.d_model), output)
        elif block == "cross":
            yield self.step("cross", sentence("cross", token=token), output)
        else:
            other = f"{config.feed_forward}(x W₁ + b₁)", "f(x W_1 + b_1)"
            plain, latex = _HIDDEN.get(config.feed_forward, other)
            formula = f"FFN(x) = {plain} W₂ + b₂", rf"\mathrm{{FFN}}(x) = {latex} W_2 + b_2"
            text = sentence("feed-forward", formula, token=token, d_ff=config.d_ff)
            yield self.step("feed-forward", text, output)

    def add_and_norm(self, block: BlockName) -> Iterator[Step]:
        """The residual connection around a block, and the norm of a post-norm block."""
        added = self.stream_into(block) + self.trace.output(block, self.layer)[self.query]
        yield self.step("residual", sentence("residual"), added)
        if self.trace.config.norm_position == "post":
            after = self.trace.arrays[f"{self.add_and_norm_at(block)}.output"][self.query]
            yield self.step("norm", sentence(self.norm_key), after)

    def above(self) -> Iterator[Step]:
        """After the last layer: the norm of a pre-norm stack, and the prediction."""
        trace, stack = self.trace, stack_of(self.kind)
        if trace.config.norm_position == "pre":
            last = trace.arrays[f"{stack}.output"][self.query]
            yield self.step("final-norm", sentence("final-norm", self.norm_formula), last)
        is_label = trace.config.architecture == "encoder"
        if stack == "encoder" and not (is_label and self.query == 0):
            return  # the memory, or a token at which no label is read off
        candidates = trace.candidates(self.query)
        rows = tuple(each.piece for each in candidates)
        logits, normaliser = (
            trace.arrays[f"said.{name}"][-1, self.query] for name in ("logits", "normaliser")
        )
        key = "logits of labels" if is_label else "logits biased" if trace.config.output_bias else "logits"
        yield self.step("logits", sentence(key, n=len(rows)), logits, rows)
        key = "probabilities of labels" if is_label else "probabilities"
        if trace.multi_label:
            key = "probabilities independent"
        else:
            yield self.step("normaliser", sentence("normaliser"), normaliser)
        text = sentence(key, best=self.gaps.best, chance=self.gaps.chance)
        yield self.step("probabilities", text, np.array([each.probability for each in candidates]), rows)

    @property
    def norm_key(self) -> str:
        return "norm rms" if self.trace.config.norm == "rms" else "norm layer"

    @property
    def norm_formula(self) -> tuple[str, str]:
        entry = _SENTENCES[self.norm_key]
        return entry["formula"], entry["latex"]

    def add_and_norm_at(self, block: BlockName) -> str:
        stack = stack_of(block)
        sublayer = sublayers_of(self.trace.config, stack).index(block)
        return f"{stack}.layers.{self.layer}.add_and_norm.{sublayer}"

    def stream_into(self, block: BlockName) -> np.ndarray:
        """This token's vector before a block's residual connection."""
        stack = stack_of(block)
        sublayer = sublayers_of(self.trace.config, stack).index(block)
        before = (self.layer, sublayer - 1) if sublayer else (self.layer - 1, -1)
        vector: np.ndarray = self.trace.stream(stack, *before)[self.query]
        return vector


def _linear(letter: str, config: ModelConfig, kind: Kind) -> tuple[str, str]:
    """A projection of this token, or of the memory."""
    of_memory, name = kind == "cross" and letter != "q", letter.upper()
    plain_bias, latex_bias = (f" + b_{name}", f" + b^{name}") if config.attention_bias else ("", "")
    plain, latex = ("memory", r"\mathrm{memory}\,") if of_memory else ("x", "x")
    return f"{plain} W_{name}{plain_bias}", f"{latex} W^{name}{latex_bias}"


def _projected(letter: str, config: ModelConfig, kind: Kind) -> tuple[str, str]:
    """The formula of queries or keys, with rotation and what the similarity does to them."""
    plain, latex = _linear(letter, config, kind)
    if config.positions == "rotary" and kind != "cross":
        plain, latex = f"rotate({plain}, pos)", rf"R_{{\mathrm{{pos}}}}({latex})"
    match config.similarity, letter:
        case "cosine", _:
            plain, latex = f"unit({plain})", rf"\frac{{{latex}}}{{\lVert {latex} \rVert}}"
        case "bilinear", "q":
            plain, latex = f"({plain}) W", rf"\left({latex}\right) W"
        case "additive", _:
            matrix = "A" if letter == "q" else "B"
            plain, latex = f"{matrix} ({plain})", rf"{matrix} \left({latex}\right)"
    return f"{letter} = {plain}", f"{letter} = {latex}"
