"""The formula of attention, walked through with the numbers of one token in one head.

Every step follows from those before it: with the numbers that a walk shows, and the model's weights where the
formula names some, the computation can be repeated; a test evaluates every formula as it is written. `x` is
the token's vector in the residual stream, `norm(x)` the vector that a pre-norm block reads, `x_j` and
`memory_j` the vectors of all tokens that are attended to. `sentences.json` has the texts.
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
Formula = tuple[str, str]
"""As text and as LaTeX."""

_HIDDEN: dict[str, Formula] = {
    "relu": ("max(0, X W₁ + b₁)", r"\max(0, X W_1 + b_1)"),
    "gelu": ("GELU(X W₁ + b₁)", r"\mathrm{GELU}(X W_1 + b_1)"),
    "gelu-tanh": ("GELU_tanh(X W₁ + b₁)", r"\mathrm{GELU}_{\tanh}(X W_1 + b_1)"),
    "swish": ("SiLU(X W₁ + b₁)", r"\mathrm{SiLU}(X W_1 + b_1)"),
    "swiglu": (
        "(SiLU(X W_g + b_g) ⊙ (X W₁ + b₁))",
        r"\left(\mathrm{SiLU}(X W_g + b_g) \odot (X W_1 + b_1)\right)",
    ),
    "geglu": (
        "(GELU(X W_g + b_g) ⊙ (X W₁ + b₁))",
        r"\left(\mathrm{GELU}(X W_g + b_g) \odot (X W_1 + b_1)\right)",
    ),
}
"""The hidden units of the feed-forward sub-layer; X is what the block reads."""
_NORMS: dict[str, Formula] = {
    "layer": (
        "(X − mean) / √(variance + ε) ⊙ gain + bias",
        r"\frac{X - \mu}{\sqrt{\sigma^2 + \epsilon}} \odot g + b",
    ),
    "rms": ("X / √(mean(X²) + ε) ⊙ gain", r"\frac{X}{\sqrt{\overline{X^2} + \epsilon}} \odot g"),
}
_LABEL_HEADS: dict[str, Formula] = {
    "tanh": ("h = tanh(X W + b)", r"h = \tanh(X W + b)"),
    "gelu-norm": ("h = Norm(GELU(X W + b))", r"h = \mathrm{Norm}(\mathrm{GELU}(X W + b))"),
}
_X: Formula = "x", "x"
_NORMED: Formula = "norm(x)", r"\mathrm{norm}(x)"
"""What a pre-norm block reads, and what the output layer reads after pre-norm layers."""


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


def sentence(key: str, formula: Formula | None = None, **gaps: object) -> StepText:
    """The text of a step; a formula, plain and in LaTeX, that depends on the configuration is given."""
    entry = _SENTENCES[key]
    plain, latex = formula or (entry["formula"], entry["latex"])
    return StepText(plain, latex, entry["en"].format(**gaps), entry["zh"].format(**gaps))


def mask_sentence(token: str, kind: Kind, sees_all: bool) -> StepText:
    """The text of the mask, which depends on the query."""
    key = "masked none" if sees_all else "masked later" if kind == "decoder" else "masked"
    return sentence(key, token=token)


def _similarity(config: ModelConfig, *, recorded: bool, biased: bool) -> StepText:
    name = config.similarity
    if recorded and not has_own_scores(config):
        return sentence("similarity recorded")
    if name in ("scaled-dot", "dot", "bilinear"):
        return sentence("similarity")
    if f"similarity {name}" in _SENTENCES:
        return sentence(f"similarity {name}")
    plain, latex = (" + bias", r" + \mathrm{bias}") if biased else ("", "")
    formula = f"{name}(q, k){plain}", rf"\mathrm{{{name}}}(q, k){latex}"
    return sentence("similarity other", formula, name=name)


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
        yield self.step("q", sentence("q", self.projected("q"), token=token), trace.q(*at)[self.query])
        yield self.attended()
        memory = "k memory" if self.kind == "cross" else "k"
        yield self.step("k", sentence(memory, self.projected("k"), n=len(keys)), trace.k(*at), keys)
        similar_M, bias_LM = trace.similarities(*at)[self.query], trace.score_bias(self.kind, self.head)
        stored = trace.recorded("scores", self.kind, self.layer) is not None
        if bias_LM is not None and has_own_scores(config):  # whose stored scores include it
            yield self.bias(bias_LM)
        text = _similarity(config, recorded=stored, biased=bias_LM is not None)
        yield self.step("similarity", text, similar_M, keys)
        usual_M = similar_M
        if config.similarity == "scaled-dot" and not stored:
            usual_M = similar_M * similar_M.dtype.type(config.key_width**-0.5)
            yield self.step("scaled", sentence("scaled", root=f"{config.key_width**0.5:.4g}"), usual_M, keys)
        if bias_LM is not None and not stored:
            yield self.bias(bias_LM)
            usual_M = usual_M + bias_LM[self.query]
            yield self.step("biased", sentence("biased"), usual_M, keys)
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
        yield self.step("v", sentence("v", self.projected("v")), trace.v(*at), keys)
        yield self.step("head", sentence("head", token=token), weights_M @ trace.v(*at))
        yield from self.joined()

    def attended(self) -> Step:
        """The vectors of all tokens that keys and values are computed from."""
        if self.kind == "cross":
            return self.memory()
        trace, keys = self.trace, tuple(self.trace.keys(self.kind).texts)
        if trace.config.norm_position == "pre":
            vectors_MD = trace.arrays[f"{self.add_and_norm_at(self.kind)}.normed"]
        else:
            vectors_MD = trace.stream(stack_of(self.kind), self.layer - 1)
        text = sentence("tokens", _indexed(self.reads), n=len(keys))
        return self.step("tokens", text, vectors_MD, keys)

    def memory(self) -> Step:
        """The output of the encoder."""
        keys = tuple(self.trace.keys("cross").texts)
        return self.step("memory", sentence("memory", n=len(keys)), self.trace.arrays["encoder.output"], keys)

    def bias(self, bias_LM: np.ndarray) -> Step:
        """What positions add to the scores."""
        key = "bias alibi" if self.trace.config.positions == "alibi" else "bias"
        return self.step("bias", sentence(key), bias_LM[self.query], tuple(self.trace.keys(self.kind).texts))

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
            yield self.step("normed", sentence("normed", self.normalised("norm(x) =", "x")), normed)

    def block(self, block: BlockName) -> Iterator[Step]:
        """The output of a block: of this attention, of the attention that follows, or of the feed-forward."""
        config, token, (x, latex_x) = self.trace.config, self.gaps.token, self.reads
        output = self.trace.output(block, self.layer)[self.query]
        if SkipBlock(block=block, layer=self.layer) in self.trace.interventions:
            yield self.step("intervention", sentence("intervention"), output)
        elif block == self.kind:
            plain, latex = (" + b_O", " + b^O") if config.attention_bias else ("", "")
            formula = f"Concat(…) W_O{plain}", rf"\mathrm{{Concat}}(\ldots) W^O{latex}"
            yield self.step("output", sentence("output", formula, d_model=config.d_model), output)
        elif block == "cross":
            yield self.memory()
            memory = r"\mathrm{memory}"
            formula = (
                f"MultiHead({x}, memory, memory)",
                rf"\mathrm{{MultiHead}}({latex_x}, {memory}, {memory})",
            )
            yield self.step("cross", sentence("cross", formula, token=token), output)
        else:
            other = f"{config.feed_forward}(X)", rf"\mathrm{{{config.feed_forward}}}(X)"
            plain, latex = _of(self.reads, _HIDDEN.get(config.feed_forward, other))
            formula = f"FFN({x}) = {plain} W₂ + b₂", rf"\mathrm{{FFN}}({latex_x}) = {latex} W_2 + b_2"
            text = sentence("feed-forward", formula, token=token, d_ff=config.d_ff)
            yield self.step("feed-forward", text, output)

    def add_and_norm(self, block: BlockName) -> Iterator[Step]:
        """The residual connection around a block, and the norm of a post-norm block."""
        added = self.stream_into(block) + self.trace.output(block, self.layer)[self.query]
        is_post = self.trace.config.norm_position == "post"
        yield self.step("residual", sentence("residual post" if is_post else "residual"), added)
        if is_post:
            after = self.trace.arrays[f"{self.add_and_norm_at(block)}.output"][self.query]
            yield self.step("norm", sentence(self.norm_key, self.normalised("x ←", "s")), after)

    def above(self) -> Iterator[Step]:
        """After the last layer: the norm of a pre-norm stack, and the prediction."""
        trace, stack = self.trace, stack_of(self.kind)
        if trace.config.norm_position == "pre":
            last = trace.arrays[f"{stack}.output"][self.query]
            yield self.step("final-norm", sentence("final-norm", self.normalised("norm(x) =", "x")), last)
        is_label = trace.config.architecture == "encoder"
        if stack == "encoder" and not (is_label and self.query == 0):
            return  # the memory, or a token at which no label is read off
        candidates = trace.candidates(self.query)
        rows = tuple(each.piece for each in candidates)
        logits, normaliser = (
            trace.arrays[f"said.{name}"][-1, self.query] for name in ("logits", "normaliser")
        )
        state = self.reads
        if (head := trace.config.label_head) != "none" and "label_head.output" in trace.arrays:
            text = sentence("label-head", _of(state, _LABEL_HEADS[head]))
            yield self.step("label-head", text, trace.arrays["label_head.output"][0])
            state = "h", "h"
        bias = " + b" if is_label or trace.config.output_bias else ""
        formula = f"{state[0]} W_out{bias}", rf"{state[1]} W_{{\mathrm{{out}}}}{bias}"
        key = "logits of labels" if is_label else "logits"
        yield self.step("logits", sentence(key, formula, n=len(rows)), logits, rows)
        key = "probabilities of labels" if is_label else "probabilities"
        if trace.multi_label:
            key = "probabilities independent"
        else:
            yield self.step("normaliser", sentence("normaliser"), normaliser)
        text = sentence(key, best=self.gaps.best, chance=self.gaps.chance)
        yield self.step("probabilities", text, np.array([each.probability for each in candidates]), rows)

    @property
    def reads(self) -> Formula:
        """What a block of this model reads."""
        return _NORMED if self.trace.config.norm_position == "pre" else _X

    @property
    def norm_key(self) -> str:
        key = f"norm {self.trace.config.norm}"
        return key if key in _SENTENCES else "norm other"

    def normalised(self, result: str, x: str) -> Formula:
        """The formula of the model's norm: `norm(x) = …` or `x ← …`."""
        name = self.trace.config.norm
        plain, latex = _of((x, x), _NORMS.get(name, (f"{name}(X)", rf"\mathrm{{{name}}}(X)")))
        latex_result = result.replace("norm", r"\mathrm{norm}").replace("←", r"\leftarrow")
        return f"{result} {plain}", f"{latex_result} {latex}"

    def projected(self, letter: str) -> Formula:
        """The formula of queries, keys or values, with what positions and similarity do to them."""
        config, name = self.trace.config, letter.upper()
        x, index = (self.reads, "") if letter == "q" else (("memory_j", r"\mathrm{memory}_j"), "_j")
        if index and self.kind != "cross":
            x = _indexed(self.reads)
        bias = (f" + b_{name}", f" + b^{name}") if config.attention_bias else ("", "")
        plain, latex = f"{x[0]} W_{name}{bias[0]}", rf"{x[1]}\, W^{name}{bias[1]}"
        if letter != "v":
            plain, latex = self.prepared(letter, plain, latex)
        return f"{letter}{index} = {plain}", f"{letter}{index} = {latex}"

    def prepared(self, letter: str, plain: str, latex: str) -> Formula:
        """Queries and keys as they are compared: turned by their positions, and changed by the similarity."""
        config, place = self.trace.config, "pos" if letter == "q" else "j"
        if self.kind != "cross" and config.positions == "rotary":
            plain, latex = f"rotate({plain}, {place})", rf"R_{{\mathrm{{{place}}}}}({latex})"
        elif self.kind != "cross" and self.turns:
            plain, latex = f"turn({plain}, {place})", rf"\mathrm{{turn}}({latex}, \mathrm{{{place}}})"
        match config.similarity, letter:
            case "cosine", _:
                return f"unit({plain})", rf"\frac{{{latex}}}{{\lVert {latex} \rVert}}"
            case "bilinear", "q":
                return f"({plain}) W", rf"\left({latex}\right) W"
            case "additive", _:
                matrix = "A" if letter == "q" else "B"
                return f"{matrix} ({plain})", rf"{matrix} \left({latex}\right)"
            case _ if has_own_scores(config):
                return f"prepare({plain})", rf"\mathrm{{prepare}}({latex})"
        return plain, latex

    @property
    def turns(self) -> bool:
        """Whether positions that a user registered must be taken to transform queries and keys."""
        side = side_of(stack_of(self.kind))
        arrays = (f"{side}_embedding.positions", f"{side}_positions.score_bias")
        known = ("sinusoidal", "learned", "rotary", "alibi", "t5-relative", "none")
        return self.trace.config.positions not in known and not any(
            name in self.trace.arrays for name in arrays
        )

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


def _of(x: Formula, formula: Formula) -> Formula:
    """A formula of X, with what X stands for."""
    return formula[0].replace("X", x[0]), formula[1].replace("X", x[1])


def _indexed(x: Formula) -> Formula:
    """The vector of each token: x_j, norm(x_j)."""
    return {_X: ("x_j", "x_j"), _NORMED: ("norm(x_j)", r"\mathrm{norm}(x_j)")}[x]
