"""Every step of a walk, worked out anew in float64 from the steps before it, gives the same numbers."""

import math
import re

import numpy as np
import pytest
import torch

from regard.look.interventions.interventions import HeadOff, MaskSource, Pin, SkipBlock
from regard.look.trace.data import Candidate
from tests.look.traced import ARCHITECTURES, DEPARTURES, model_of, trace_of
from tests.model.small import weights_of
from tests.parity import loops
from tests.parity.tolerances import ANGLES, TOLERANCES

each_setting = pytest.mark.parametrize(
    "changes", DEPARTURES, ids=lambda s: "-".join(map(str, s.values())) or "paper"
)
MODULES = {
    "encoder": "multi_head_attention",
    "decoder": "masked_multi_head_attention",
    "cross": "multi_head_attention",
}


class Anew:
    """Each step from the steps before it, by the formulas of the loops, with the model's weights."""

    def __init__(self, model, trace, kind, layer, head, query):
        self.w, self.config, self.trace = weights_of(model), model.config, trace
        self.kind, self.layer, self.number, self.query = kind, layer, head, query
        self.stack = "encoder" if kind == "encoder" else "decoder"
        self.layer_at = f"{self.stack}.layers.{layer}."
        self.at = f"{self.layer_at}{MODULES[kind]}."
        self.seen, self.reads, self.stream, self.sublayer = {}, None, None, int(kind == "cross")

    def check(self, step):
        self.values = np.asarray(step.values, dtype=np.float64)
        expected = getattr(self, step.name.replace("-", "_"))()
        np.testing.assert_allclose(self.values, expected, **TOLERANCES[ANGLES], err_msg=step.name)
        self.seen[step.name] = self.values

    def linear(self, name, x):
        return loops.linear(self.w, name, np.atleast_2d(x))[0]

    def norm_at(self, x, at):
        return loops.norm(self.w, self.config, at, np.atleast_2d(x))[0]

    def embedding(self):
        side = "input" if self.kind == "encoder" else "output"
        tokens = self.trace.queries(self.kind)
        return loops.embed(
            self.w[f"{side}_embedding.weight"], [tokens[self.query].id], self.config.scale_embeddings
        )[0]

    def position(self):
        if self.config.positions == "learned":
            side = "input" if self.kind == "encoder" else "output"
            return self.w[f"{side}_positions.weight"][self.query]
        return loops.sinusoids(self.query + 1, self.config.d_model)[-1]

    def x(self):
        self.stream = self.reads = self.values
        if "embedding" in self.seen:
            summed = self.seen["embedding"] + self.seen.get("position", 0)
            side = "input" if self.kind == "encoder" else "output"
            return self.norm_at(summed, f"{side}_norm.") if self.config.embedding_norm else summed
        return self.values  # of another layer's making: the walk starts here

    def normed(self):
        self.reads = self.values
        return self.norm_at(self.stream, f"{self.layer_at}add_and_norm.{self.sublayer}.norm.")

    def projected(self, name, x, positions):
        width = self.config.key_width
        of_head = slice(self.number * width, (self.number + 1) * width)
        rows = np.array([self.linear(f"{self.at}{name}", each)[of_head] for each in x])
        if self.config.positions == "rotary" and self.kind != "cross":
            whole = np.zeros((max(positions) + 1, width))
            whole[list(positions)] = rows
            rows = loops.rotate(whole)[list(positions)]
        return rows

    def prepared(self, rows, letter):
        match self.config.similarity:
            case "cosine":
                return rows / np.linalg.norm(rows, axis=-1, keepdims=True)
            case "bilinear" if letter == "q":
                return rows @ self.w[f"{self.at}similarity.weight"][self.number]
            case "additive":
                name = "query" if letter == "q" else "key"
                return rows @ self.w[f"{self.at}similarity.{name}"][self.number].T
        return rows

    def q(self):
        return self.prepared(self.projected("w_q", [self.reads], [self.query]), "q")[0]

    def block_reads(self):
        """What all the tokens that are looked at hand to this block."""
        if self.kind == "cross":
            return self.trace.arrays["encoder.output"]
        if self.config.norm_position == "pre":
            return self.trace.arrays[f"{self.layer_at}add_and_norm.0.normed"]
        return self.trace.stream(self.stack, self.layer - 1)

    def tokens(self):
        return self.block_reads()

    def memory(self):
        return self.trace.arrays["encoder.output"]

    def k(self):
        read = self.block_reads()
        return self.prepared(self.projected("w_k", read, range(len(read))), "k")

    def v(self):
        of_head = slice(self.number * self.config.value_width, (self.number + 1) * self.config.value_width)
        return np.array([self.linear(f"{self.at}w_v", each)[of_head] for each in self.block_reads()])

    def similarity(self):
        if self.config.similarity == "additive":
            u = self.w[f"{self.at}similarity.weight"][self.number]
            return np.tanh(self.seen["q"] + self.seen["k"]) @ u
        return self.seen["k"] @ self.seen["q"]

    def scaled(self):
        return self.seen["similarity"] / math.sqrt(self.config.key_width)

    def bias(self):
        name = f"{'input' if self.kind == 'encoder' else 'output'}_positions.weight"
        length, causal = len(self.seen["similarity"]), self.kind == "decoder"
        bias = loops.score_bias(self.w, self.config, name, length, causal)
        return bias[self.number, self.query]

    def biased(self):
        return self.seen.get("scaled", self.seen["similarity"]) + self.seen["bias"]

    def masked(self):
        scores = self.seen.get("biased", self.seen.get("scaled", self.seen["similarity"]))
        may = range(self.query + 1) if self.kind == "decoder" else range(len(scores))
        return [score if i in may else -np.inf for i, score in enumerate(scores)]

    def weights(self):
        return loops.softmax([None if s == -np.inf else s for s in self.seen["masked"]])

    def head(self):
        return self.seen["weights"] @ self.seen["v"]

    def concat(self):
        own = slice(self.number * self.config.value_width, (self.number + 1) * self.config.value_width)
        np.testing.assert_allclose(self.values[own], self.seen["head"], **TOLERANCES[ANGLES])
        return self.values  # the other heads have walks of their own

    def output(self):
        return self.linear(f"{self.at}w_o", self.seen["concat"])

    def cross(self):
        queries = np.repeat(self.reads[None], 2, axis=0)
        memory = self.trace.arrays["encoder.output"]
        return loops.multi_head_attention(
            self.w, f"{self.layer_at}multi_head_attention.", queries, memory, self.config.n_heads,
            loops.everyone(2, len(memory)), similarity=self.config.similarity,
        )[0]  # fmt: skip

    def feed_forward(self):
        return loops.feed_forward(
            self.w, f"{self.layer_at}feed_forward.", self.reads[None], self.config.feed_forward
        )[0]

    def residual(self):
        added = self.stream + self.seen[["output", "cross", "feed-forward"][self.n_added()]]
        self.stream = self.reads = self.values
        if self.config.norm_position == "pre":
            self.sublayer += 1
        return added

    def n_added(self):
        """Which block's output is added: the latest."""
        return max(i for i, name in enumerate(["output", "cross", "feed-forward"]) if name in self.seen)

    def norm(self):
        expected = self.norm_at(self.stream, f"{self.layer_at}add_and_norm.{self.sublayer}.norm.")
        self.sublayer += 1
        self.stream = self.reads = self.values
        return expected

    def final_norm(self):
        self.stream = self.values
        return self.norm_at(self.seen["residual"], f"{self.stack}.norm.")

    def all_logits(self):
        return self.linear("output_probabilities", self.stream)

    def logits(self):
        return sorted(self.all_logits(), reverse=True)[: len(self.values)]

    def normaliser(self):
        return np.log(np.exp(self.all_logits()).sum())

    def probabilities(self):
        return np.exp(self.seen["logits"] - self.seen["normaliser"])


def recompute(model, trace, *at):
    anew = Anew(model, trace, *at)
    for step in trace.walk(*at):
        anew.check(step)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@each_setting
def test_every_step_follows_from_those_before_it(architecture, changes):
    model = model_of(architecture=architecture, **changes)
    trace = trace_of(model)
    for kind in trace.kinds:
        n_layers = model.config.encoder_layers if kind == "encoder" else model.config.decoder_layers
        for layer in (0, n_layers - 1):
            for query in (0, len(trace.queries(kind)) - 1):
                recompute(model, trace, kind, layer, 2, query)


@torch.no_grad()
def test_the_last_layer_s_walk_ends_in_the_model_s_probabilities():
    for architecture in ARCHITECTURES:
        model = model_of(architecture=architecture, norm_position="pre")
        trace = trace_of(model)
        kind = trace.kinds[-1]
        layer = (model.config.encoder_layers if kind == "encoder" else model.config.decoder_layers) - 1
        last = trace.walk(kind, layer, 1, 0)[-1]
        assert last.name == "probabilities"
        assert last.values.tolist() == pytest.approx([each.probability for each in trace.candidates(0)])
        assert last.rows == tuple(each.piece for each in trace.candidates(0))


def names(steps):
    return [step.name for step in steps]


def test_the_steps_of_the_paper_s_model():
    trace = trace_of(model_of())
    begin = ["embedding", "position", "x"]
    ahead = ["similarity", "scaled", "masked", "weights", "v", "head", "concat", "output"]
    attention, across = (["q", read, "k", *ahead] for read in ("tokens", "memory"))
    added, fed = ["residual", "norm"], ["feed-forward", "residual", "norm"]
    said = ["logits", "normaliser", "probabilities"]
    assert names(trace.walk("encoder", 0, 0, 1)) == [*begin, *attention, *added, *fed]
    assert names(trace.walk("encoder", 1, 0, 1)) == ["x", *attention, *added, *fed]
    assert names(trace.walk("decoder", 0, 0, 1)) == [
        *begin,
        *attention,
        *added,
        "memory",
        "cross",
        *added,
        *fed,
    ]
    assert names(trace.walk("cross", 2, 0, 1)) == ["x", *across, *added, *fed, *said]


def test_the_steps_of_a_pre_norm_model_without_added_positions():
    trace = trace_of(model_of(norm_position="pre", positions="rotary", similarity="cosine"))
    attention = [
        "normed",
        "q",
        "tokens",
        "k",
        "similarity",
        "masked",
        "weights",
        "v",
        "head",
        "concat",
        "output",
        "residual",
    ]
    fed = ["normed", "feed-forward", "residual"]
    assert names(trace.walk("encoder", 0, 0, 1)) == ["embedding", "x", *attention, *fed]
    assert names(trace.walk("encoder", 1, 0, 1)) == ["x", *attention, *fed, "final-norm"]


def test_only_the_first_token_of_a_classifier_says_a_label():
    trace = trace_of(model_of(architecture="encoder"))
    assert names(trace.walk("encoder", 1, 0, 0))[-1] == "probabilities"
    assert "logits" not in names(trace.walk("encoder", 1, 0, 1))


def test_an_intervention_is_a_step_where_it_changes_the_numbers():
    model = model_of()
    pinned = trace_of(model, interventions=[Pin(kind="cross", layer=1, head=0, query=2, key=4)])
    steps = {step.name: step.values for step in pinned.walk("cross", 1, 0, 2)}
    assert steps["intervention"][4] == 0
    assert steps["weights"].tolist() == np.eye(len(pinned.inputs))[4].tolist()
    assert "intervention" not in names(pinned.walk("cross", 1, 0, 1))
    off = trace_of(model, interventions=[HeadOff(kind="cross", layer=1, head=0)])
    steps = {step.name: step.values for step in off.walk("cross", 1, 0, 2)}
    assert not steps["intervention"].any()
    assert not steps["concat"][: len(steps["head"])].any()
    assert "intervention" not in names(off.walk("cross", 1, 1, 2))  # another head's
    skipped = trace_of(model, interventions=[SkipBlock(block="decoder-feed-forward", layer=1)])
    assert "intervention" in names(skipped.walk("cross", 1, 0, 2))
    assert "feed-forward" not in names(skipped.walk("cross", 1, 0, 2))
    masked = trace_of(model, interventions=[MaskSource(token=1)])
    steps = {step.name: step for step in masked.walk("encoder", 0, 0, 2)}
    assert np.isneginf(steps["masked"].values[1])
    assert steps["masked"].english == "Scores of masked tokens become −∞."


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@each_setting
def test_every_step_is_told_in_both_languages_and_both_scripts(architecture, changes):
    trace = trace_of(model_of(architecture=architecture, **changes))
    for kind in trace.kinds:
        for layer in (0, 1):
            for step in trace.walk(kind, layer, 0, 1):
                assert re.search(r"[a-z]{3,}.*\.$", step.english)
                assert re.search("[\u4e00-\u9fff]+.*。$", step.chinese)
                assert not re.search(r"[\u4e00-\u9fff]", step.formula + step.latex)
                assert step.latex.count("{") == step.latex.count("}")
                assert len(step.rows) in (0, len(step.values) if step.values.ndim else 0)
                assert step.rows == () or step.values.ndim


def test_the_sentences_name_the_token_and_where_it_looks():
    trace = trace_of(model_of())
    steps = {step.name: step for step in trace.walk("cross", 2, 1, 2)}
    token = trace.outputs[2].text
    row = trace.attention("cross", 2, 1)[2]
    most = trace.inputs[int(row.argmax())].text
    assert f"“{token}”" in steps["q"].english
    assert f"“{token}”" in steps["q"].chinese
    assert f"{row.max():.3f}, goes to “{most}”" in steps["weights"].english
    assert f"{row.max():.3f} 归“{most}”" in steps["weights"].chinese
    assert steps["k"].rows == tuple(trace.inputs.texts)
    assert (steps["k"].formula, steps["v"].formula) == ("k_j = memory_j W_K", "v_j = memory_j W_V")
    best = trace.candidates(2)[0]
    assert f"“{best.text}” comes next with {best.probability:.3f}" in steps["probabilities"].english
    own = {step.name: step for step in trace.walk("decoder", 1, 1, 2)}
    assert (own["k"].formula, own["v"].formula) == ("k_j = x_j W_K", "v_j = x_j W_V")
    assert [Candidate(9, piece, 0.5).text for piece in ("▁the", "▁", "<0xE7>")] == ["the", "␣", "<0xE7>"]
    bytes_alone = ("<0x0A>", "<0x41>", "<0x20>", "<0x1B>")
    assert [Candidate(9, piece, 0.5).text for piece in bytes_alone] == ["␊", "A", "<0x20>", "␛"]
