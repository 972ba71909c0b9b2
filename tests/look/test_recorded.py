"""A trace holds what ran, also where the configuration describes something else."""

import numpy as np
import pytest
import torch

from regard.look.interventions.apply import intervened, replacing
from regard.look.interventions.interventions import NoPositions, Uniform
from regard.look.trace.trace import Trace
from regard.model.positional_encoding import Positions
from regard.model.scaled_dot_product_attention import masked_softmax
from regard.model.similarity import DotProduct
from regard.model.taps import recording, tap
from tests.look.test_trace import address, close, heads_of, packs
from tests.look.traced import DEPARTURES, model_of, trace_of
from tests.refusals import refused


class Distance(DotProduct):
    """Swapped into a model whose configuration names another similarity: minus the squared distance."""

    is_dot_product = False

    def scores(self, q_BHLK, k_BHMK):
        return -(q_BHLK[:, :, :, None] - k_BHMK[:, :, None]).square().sum(-1)


class Far(Positions):
    """Swapped in for positions without a bias."""

    def score_bias(self, queries_L, keys_M):
        return 0.3 * (keys_M - queries_L[:, None]).abs()[None].expand(3, -1, -1).double()


def swapped(**settings):
    """A model with a similarity and a bias of one's own in two of its blocks, and with none in the others."""
    model = model_of(**settings)
    for attention in (
        model.encoder.layers[1].multi_head_attention,
        model.decoder.layers[0].multi_head_attention,
    ):
        attention.similarity = Distance(3, attention.d_k)
    return model


@pytest.mark.parametrize("settings", DEPARTURES)
@pytest.mark.parametrize("changes", [(), (NoPositions(),), (Uniform(kind="cross", layer=1, head=0),)])
@torch.no_grad()
def test_a_swapped_in_similarity_is_shown_as_it_ran(settings, changes):
    if settings.get("positions") == "none" and changes:
        changes = changes[1:]
    model = swapped(**settings)
    trace = trace_of(model, interventions=changes)
    running = intervened(model, changes)
    with recording(running, replacing(changes, running.config)) as seen:
        log_probs = running(*packs(trace)).log_softmax(-1)
    close(trace.log_probs, log_probs[range(len(trace.targets)), trace.targets])
    again = Trace.from_bytes(trace.to_bytes())
    for kind, layer, head in heads_of(trace):
        at = address(kind, layer)
        close(again.attention(kind, layer, head), seen[f"{at}.weights"][0, head])
        close(again.scores(kind, layer, head), seen[f"{at}.scores"][0, head])
        close(again.head_output(kind, layer, head), seen[f"{at}.heads"][:, head])
    stored = {name for name in trace.arrays if name.endswith((".scores", ".weights"))}
    assert stored == {f"{address('encoder', 1)}.scores", f"{address('cross', 0)}.scores"}


@torch.no_grad()
def test_a_swapped_in_bias_is_shown_as_it_ran():
    model = model_of()
    model.input_positions = Far(model.config, causal=False)
    trace = trace_of(model)
    with recording(model) as seen:
        model(*packs(trace))
    for kind, layer, head in heads_of(trace):
        close(trace.attention(kind, layer, head), seen[f"{address(kind, layer)}.weights"][0, head])


def halved(name, **settings):
    """A model in which one block halves its scores, its weights or its heads."""
    model = model_of(**settings)

    class Halved(type(model.decoder.layers[1].multi_head_attention)):
        """Attention, with half of what is computed at one place."""

        def attend_padded(self, q, k, v, may_attend, score_bias):  # noqa: ARG002
            scores = self.similarity.scores(q, k) * (0.5 if name == "scores" else 1)
            scores = tap(self, "scores", scores)
            weights = masked_softmax(scores, may_attend) * (0.5 if name == "weights" else 1)
            return (tap(self, "weights", weights) @ v) * (0.5 if name == "heads" else 1)

    model.decoder.layers[1].multi_head_attention.__class__ = Halved
    return model


@pytest.mark.parametrize("name", ["scores", "weights", "heads"])
@torch.no_grad()
def test_what_a_module_makes_of_its_numbers_is_what_the_trace_shows(name):
    model, at = halved(name), address("cross", 1)
    trace = trace_of(model)
    with recording(model) as seen:
        model(*packs(trace))
    shown = {"scores": trace.scores, "weights": trace.attention}
    for head in range(3):
        for each, method in shown.items():
            close(method("cross", 1, head), seen[f"{at}.{each}"][0, head])
        close(trace.head_output("cross", 1, head), seen[f"{at}.heads"][:, head])
    assert {each for each in trace.arrays if each.rsplit(".", 1)[1] in ("scores", "weights", "heads")} == {
        f"{at}.{name}"
    }
    steps = trace.walk("cross", 1, 2, 1)
    by_name = {step.name: step.values for step in steps}
    close(by_name["concat"], np.concatenate([seen[f"{at}.heads"][1, head] for head in range(3)]))
    close(by_name["masked"], seen[f"{at}.scores"][0, 2, 1])
    if name != "scores":
        close(
            by_name["intervention"],
            seen[f"{at}.{name}"][0, 2, 1] if name == "weights" else seen[f"{at}.heads"][1, 2],
        )


def test_a_block_that_records_nothing_is_refused():
    model = model_of()

    class Silent(torch.nn.Module):
        def forward(self, x, *_):
            return x

    model.encoder.layers[0].multi_head_attention = Silent()
    with refused("not_recorded", "encoder.layers.0.multi_head_attention"):
        trace_of(model)
