"""Formulas of a walk, evaluated as they are written, with the numbers that a panel shows.

A symbol stands for the last step shown that has it: `x` for the vector in the residual stream, `norm(x)` for
the normalised one, `x_j` for the vectors of all tokens. Weights are the model's. Numbers are rounded as they
are shown, and a result may differ by what this rounding can change.
"""

import math
import re
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from tests.look.traced import model_of, subwords
from tests.model.small import weights_of
from tests.parity import loops

TINY = {
    "d_model": 4, "n_heads": 2, "d_k": 4, "d_v": 2, "d_ff": 5, "encoder_layers": 2, "decoder_layers": 2
}  # fmt: skip
"""Every vector and every token fits into every kind of panel."""
MODULES = {
    "encoder": "multi_head_attention",
    "decoder": "masked_multi_head_attention",
    "cross": "multi_head_attention",
}
ADDED = ("output", "cross", "feed-forward", "intervention")
ACTIVATIONS = {"max": loops.relu, "GELU": loops.gelu, "GELU_tanh": loops.gelu_tanh, "SiLU": loops.silu}


def tiny_model(**settings):
    return model_of(**TINY | settings)


@lru_cache(maxsize=2)
def memory_of(model, ids):
    return loops.encoder(weights_of(model), model.config, ids)


def tiny_texts(architecture):
    """Ids of three or four tokens on each side, with those that start and end a text."""
    ids = subwords().encode_one("the cat sat").tolist()[:3]
    return {"encoder": (ids[:2], None), "decoder": (ids[:1], ids[1:]), "encoder-decoder": (ids, ids[::-1])}[
        architecture
    ]


@dataclass(frozen=True)
class Shown:
    """The numbers of one step as a panel shows them, and half a unit of each one's last digit."""

    name: str
    values: np.ndarray
    halves: np.ndarray

    @classmethod
    def exactly(cls, name, values):
        values = np.asarray(values, dtype=np.float64)
        return cls(name, values, np.zeros(values.shape))

    @classmethod
    def written(cls, name, rows):
        """From rows of written numbers; one row is a vector, or a number."""
        numbers = [[_number(text) for text in row] for row in rows]
        values, halves = (np.array([[each[i] for each in row] for row in numbers]) for i in (0, 1))
        return cls(name, values, halves)

    def shaped(self, shape):
        return Shown(self.name, self.values.reshape(shape), self.halves.reshape(shape))


def _number(text):
    if text == "−∞":
        return -math.inf, 0.0
    digits = len(text.partition(".")[2])
    return float(text.replace("−", "-")), 0.5 * 10.0**-digits


@dataclass
class Panel:
    """A formula, what stands beside it, and the result."""

    formula: str
    before: list[Shown]
    result: Shown


@dataclass
class Formulas:
    """Evaluates the formulas of one walk."""

    model: object
    trace: object
    kind: str
    layer: int
    head: int
    query: int
    sublayer: int = field(init=False)

    def __post_init__(self):
        self.w, self.config = weights_of(self.model), self.model.config
        self.stack = "encoder" if self.kind == "encoder" else "decoder"
        self.side = "input" if self.kind == "encoder" else "output"
        self.at = f"{self.stack}.layers.{self.layer}."
        self.block = f"{self.at}{MODULES[self.kind]}."
        self.sublayer = int(self.kind == "cross")

    def check(self, panel):
        """The result is what the formula gives, up to rounding."""
        name, formula = panel.result.name, panel.formula
        found = self.evaluated(name, formula, panel.before)
        if found is None:  # where a walk starts, or a change on request
            return
        symbols, work = found
        given = [self.symbol(symbol, panel.before) for symbol in symbols]
        values = [each.values for each in given]
        expected = np.asarray(work(*values))
        shown, spread = panel.result.values, _spread(work, given, expected)
        if name == "logits":  # a terminal shows the first ones
            expected, spread = expected[: len(shown)], spread[: len(shown)]
        slack = panel.result.halves + spread + 2e-5 * (1 + np.abs(_finite(expected)))
        assert shown.shape == expected.shape, (name, formula)
        assert np.array_equal(np.isneginf(shown), np.isneginf(expected)), (name, formula)
        wrong = np.abs(_finite(shown) - _finite(expected)) > slack
        assert not wrong.any(), f"{name}: {formula} gives {expected}, shown is {shown}"
        if name == "norm" or (name == "residual" and self.config.norm_position == "pre"):
            self.sublayer += 1

    def symbol(self, symbol, before):
        """The last step shown that a symbol stands for."""
        stream = ("x", "residual" if self.config.norm_position == "pre" else "norm")
        names = {
            "x": stream, "s": ("residual",), "norm(x)": ("normed", "final-norm"), "x_j": ("tokens",),
            "norm(x_j)": ("tokens",), "memory_j": ("memory",), "memory": ("memory",), "h": ("label-head",),
            "k_j": ("k",), "v_j": ("v",), "output": ADDED, "score": ("biased", "scaled", "similarity"),
            "logit": ("logits",), "z": ("normaliser",), "Concat(…)": ("concat",), "weight": ("weights",),
        }.get(symbol, (symbol,))  # fmt: skip
        return next(each for each in reversed(before) if each.name in names)

    def evaluated(self, name, formula, before):
        """The symbols of a formula, and the function of their values."""
        if name == "intervention" or (name == "x" and formula == "x"):
            return None
        if name in ("x", "normed", "norm", "final-norm") and (found := self.normalised(name, formula)):
            return found
        if name in "qkv":
            return self.projected(name, formula)
        method = {"head": "head_output"}.get(name, name.replace("-", "_"))
        return getattr(self, method)(formula, before)

    def embedding(self, formula, _):
        ids = [self.trace.queries(self.kind)[self.query].id]
        row = loops.embed(self.w[f"{self.side}_embedding.weight"], ids, "√d_model" in formula)[0]
        return [], lambda: row

    def position(self, formula, _):
        learned = formula == "P[pos]"
        row = (
            self.w[f"{self.side}_positions.weight"][self.query]
            if learned
            else loops.sinusoids(self.query + 1, self.config.d_model)[-1]
        )
        return [], lambda: row

    def normalised(self, name, formula):
        match = re.fullmatch(r"x = (Norm\()?embedding( \+ position)?\)?", formula)
        if match:
            norm = f"{self.side}_norm." if match[1] else None
            symbols = ["embedding", "position"] if match[2] else ["embedding"]
            return symbols, lambda *parts: self.norm(sum(parts), norm) if norm else sum(parts)
        layered = re.fullmatch(
            r"(?:norm\(x\) =|x ←) \((\w) − mean\) / √\(variance \+ ε\) ⊙ gain \+ bias", formula
        )
        rms = re.fullmatch(r"(?:norm\(x\) =|x ←) (\w) / √\(mean\(\1²\) \+ ε\) ⊙ gain", formula)
        assert bool(layered) == (self.config.norm == "layer"), formula
        at = f"{self.stack}.norm." if name == "final-norm" else f"{self.at}add_and_norm.{self.sublayer}.norm."
        return [(layered or rms)[1]], lambda x: self.norm(x, at)

    def norm(self, x, at):
        return loops.norm(self.w, self.config, at, x[None])[0]

    def linear(self, name, x, bias):
        """X W, plus the bias if the formula says so."""
        y = x @ self.w[f"{name}.weight"].T
        return y + self.w[f"{name}.bias"] if bias else y

    def projected(self, letter, formula):
        result, _, rest = formula.partition(" = ")
        assert result == (letter if letter == "q" else f"{letter}_j")
        places = [self.query] if letter == "q" else range(len(self.trace.keys(self.kind)))
        width = self.config.value_width if letter == "v" else self.config.key_width
        similarity = self.block + "similarity."

        def parsed(text):
            if match := re.fullmatch(r"unit\((.*)\)", text):
                symbol, inner = parsed(match[1])
                return symbol, lambda x: inner(x) / np.linalg.norm(inner(x), axis=-1, keepdims=True)
            if match := re.fullmatch(r"rotate\((.*), (pos|j)\)", text):
                symbol, inner = parsed(match[1])
                return symbol, lambda x: np.stack(
                    [
                        loops.rotate(np.repeat(row[None], p + 1, 0))[p]
                        for p, row in zip(places, inner(x), strict=True)
                    ]
                )
            if match := re.fullmatch(r"\((.*)\) W", text):
                symbol, inner = parsed(match[1])
                return symbol, lambda x: inner(x) @ self.w[f"{similarity}weight"][self.head]
            if match := re.fullmatch(r"(A|B) \((.*)\)", text):
                symbol, inner = parsed(match[2])
                matrix = self.w[similarity + {"A": "query", "B": "key"}[match[1]]][self.head]
                return symbol, lambda x: inner(x) @ matrix.T
            match = re.fullmatch(rf"(\S+) W_{letter.upper()}( \+ b_{letter.upper()})?", text)
            own = slice(self.head * width, (self.head + 1) * width)
            return match[1], lambda x: self.linear(f"{self.block}w_{letter}", x, match[2])[..., own]

        symbol, work = parsed(rest)
        return [symbol], (lambda x: work(x[None])[0]) if letter == "q" else work

    def tokens(self, formula, before):
        """The row of this token is its own vector, which stands before; a panel of the page has only rows."""
        if not before:
            return None
        own = {"x_j": "x", "norm(x_j)": "norm(x)"}[formula]
        rows = self.trace.walk(self.kind, self.layer, self.head, self.query)
        others = next(step.values for step in rows if step.name == "tokens")
        return [own], lambda x: np.where(np.arange(len(others))[:, None] == self.query, x, others)

    def memory(self, formula, _):
        assert formula == "memory_j"
        memory = memory_of(self.model, self.trace.inputs.ids)
        return [], lambda: memory

    def similarity(self, formula, _):
        if formula == "uᵀ tanh(q + k)":
            u = self.w[f"{self.block}similarity.weight"][self.head]
            return ["q", "k"], lambda q, k: np.tanh(q + k) @ u
        assert formula == "q · k"
        return ["q", "k"], lambda q, k: k @ q

    def scaled(self, formula, _):
        assert formula == "q · k / √d_k"
        return ["similarity"], lambda product: product / math.sqrt(self.config.key_width)

    def bias(self, formula, _):
        assert ("slope" in formula) == (self.config.positions == "alibi")
        n, causal = len(self.trace.keys(self.kind)), self.kind == "decoder"
        all_of = loops.score_bias(self.w, self.config, f"{self.side}_positions.weight", n, causal)
        return [], lambda: all_of[self.head, self.query]

    def biased(self, formula, _):
        assert formula == "score + bias"
        return ["score", "bias"], lambda score, bias: score + bias

    def masked(self, formula, _):
        assert formula == "score, or −∞ where masked"
        ahead = self.kind == "decoder"
        n = len(self.trace.keys(self.kind))
        return ["score"], lambda score: np.where(ahead & (np.arange(n) > self.query), -np.inf, score)

    def weights(self, formula, _):
        assert formula == "softmax(scores)"
        return ["masked"], lambda scores: np.exp(scores) / np.exp(scores).sum()

    def head_output(self, formula, _):
        assert formula == "Σ weight · v"
        return ["weight", "v"], lambda weight, v: weight @ v

    def concat(self, formula, _):
        """This head's part is its output; the others have panels of their own."""
        assert formula == "Concat(head₁, …, head_h)"
        width = self.config.value_width
        parts = [
            next(step.values for step in self.trace.walk(self.kind, self.layer, head, self.query)
                 if step.name == "head")
            for head in range(self.config.n_heads)
        ]  # fmt: skip
        around = np.concatenate(parts[: self.head]) if self.head else np.zeros(0)
        after = parts[self.head + 1 :]
        assert width == len(parts[0])
        return ["head"], lambda own: np.concatenate([around, own, *after])

    def output(self, formula, _):
        match = re.fullmatch(r"(Concat\(…\)) W_O( \+ b_O)?", formula)
        return [match[1]], lambda x: self.linear(f"{self.block}w_o", x, match[2])

    def residual(self, formula, _):
        arrow = {"pre": "x ← x + output", "post": "s = x + output"}[self.config.norm_position]
        assert formula == arrow
        return ["x", "output"], lambda x, output: x + output

    def cross(self, formula, _):
        match = re.fullmatch(r"MultiHead\((\S+), memory, memory\)", formula)

        at, bias = f"{self.at}multi_head_attention.", self.config.attention_bias

        def work(x, memory):
            given = zip("qkv", (x[None], memory, memory), strict=True)
            parts = [
                np.split(self.linear(f"{at}w_{name}", y, bias), self.config.n_heads, 1) for name, y in given
            ]
            heads = [self.attended(at, head, *each) for head, each in enumerate(zip(*parts, strict=True))]
            return self.linear(f"{at}w_o", np.concatenate(heads), bias)

        return [match[1], "memory"], work

    def attended(self, at, head, q, k, v):
        """One head of another block."""
        scores = [loops.similar(self.w, at, self.config.similarity, head, q[0], each) for each in k]
        return np.exp(scores) / np.exp(scores).sum() @ v

    def feed_forward(self, formula, _):
        plain = r"FFN\((\S+)\) = (max|GELU|GELU_tanh|SiLU)\((?:0, )?\1 W₁ \+ b₁\) W₂ \+ b₂"
        gated = r"FFN\((\S+)\) = \((\w+)\(\1 W_g \+ b_g\) ⊙ \(\1 W₁ \+ b₁\)\) W₂ \+ b₂"
        match, at = re.fullmatch(plain, formula) or re.fullmatch(gated, formula), f"{self.at}feed_forward."
        activation = np.vectorize(ACTIVATIONS[match[2]])

        def work(x):
            wide = self.linear(f"{at}widen", x, True)
            if "⊙" in formula:
                return self.linear(f"{at}narrow", activation(self.linear(f"{at}gate", x, True)) * wide, True)
            return self.linear(f"{at}narrow", activation(wide), True)

        return [match[1]], work

    def label_head(self, formula, _):
        match = re.fullmatch(r"h = (tanh|Norm\(GELU)\((\S+) W \+ b\)+", formula)

        def work(x):
            mapped = self.linear("label_head.map", x, True)
            if match[1] == "tanh":
                return np.tanh(mapped)
            return self.norm(np.vectorize(loops.gelu)(mapped), "label_head.norm.")

        return [match[2]], work

    def logits(self, formula, _):
        match = re.fullmatch(r"(\S+) W_out( \+ b)?", formula)
        self.state = match
        ids = self.trace.arrays["said.ids"][-1, self.query]
        return [match[1]], lambda x: self.linear("output_probabilities", x, match[2])[ids]

    def normaliser(self, formula, _):
        assert formula == "z = log Σ exp(logit)"
        symbol, bias = self.state[1], self.state[2]
        return [symbol], lambda x: np.log(np.exp(self.linear("output_probabilities", x, bias)).sum())

    def probabilities(self, formula, _):
        assert formula == "exp(logit − z)"
        return ["logit", "z"], lambda logit, z: np.exp(logit - z)


def _spread(work, given, expected):
    """The most that the rounding of the shown numbers can change, to first order."""
    total = np.zeros(expected.shape)
    given = given if any(each.halves.any() for each in given) else []
    values = [each.values for each in given]
    for i, each in enumerate(given):
        for place in np.ndindex(each.halves.shape):
            moved = each.values.copy()
            moved[place] += each.halves[place]
            changed = np.asarray(work(*values[:i], moved, *values[i + 1 :]))
            total += 1.2 * np.abs(_finite(changed) - _finite(expected))
    return total


def _finite(values):
    return np.where(np.isfinite(values), values, 0.0)


def check_walk(model, trace, place, panels):
    """Check every panel of a walk; each has its formula, what is shown before it, and its result."""
    formulas = Formulas(model, trace, *place)
    steps = trace.walk(*place)
    assert [panel.result.name for panel in panels] == [step.name for step in steps]
    for panel, step in zip(panels, steps, strict=True):
        assert panel.formula == step.formula
        formulas.check(panel)


def in_sequence(shown, formulas):
    """Panels of which each sees all those before it."""
    return [Panel(formula, shown[:i], shown[i]) for i, formula in enumerate(formulas)]
