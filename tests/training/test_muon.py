"""Muon against torch's own, against the singular value decomposition, and the weights that it takes."""

import pytest
import torch

from regard.model.transformer import Transformer
from regard.training.optimizers.muon import Muon, orthogonal
from regard.training.optimizers.optimizer import Optimizer
from tests.training.copying import config

SHAPES = [(13, 7), (7, 13), (13, 7), (11, 11)]
"""Tall, wide and square, and two that go through the iterations together."""


def twins():
    first = [torch.nn.Parameter(torch.randn(shape)) for shape in SHAPES]
    return first, [torch.nn.Parameter(each.detach().clone()) for each in first]


def test_it_takes_the_steps_of_torchs_muon():
    ours, theirs = twins()
    mine = Muon(ours, momentum=0.9, weight_decay=0.3)
    reference = torch.optim.Muon(
        theirs, momentum=0.9, weight_decay=0.3, nesterov=True, adjust_lr_fn="match_rms_adamw"
    )
    for rate in (0.1, 0.03, 0.2, 0.01):
        for one, other in zip(ours, theirs, strict=True):
            one.grad = torch.randn_like(one)
            other.grad = one.grad.clone()
        for optimizer in (mine, reference):
            for group in optimizer.param_groups:
                group["lr"] = rate
            optimizer.step()
        for one, other in zip(ours, theirs, strict=True):
            # Both iterate in bfloat16, in another order of additions.
            torch.testing.assert_close(one, other, atol=0.02 * rate, rtol=0.0)


@pytest.mark.parametrize("shape", [(23, 11), (11, 23), (17, 17)])
def test_an_update_has_the_directions_of_the_gradient_and_singular_values_near_one(shape):
    u, _, v = torch.linalg.svd(torch.randn(3, *shape), full_matrices=False)
    gradients = u @ torch.diag_embed(torch.rand(3, min(shape)) + 0.05) @ v
    within = u.mT @ orthogonal(gradients).float() @ v.mT
    strengths = torch.diagonal(within, dim1=1, dim2=2)
    assert strengths.min() > 0.5
    assert strengths.max() < 1.3
    torch.testing.assert_close(within, torch.diag_embed(strengths), atol=0.05, rtol=0.0)


def test_no_gradient_gives_no_update():
    assert orthogonal(torch.zeros(2, 5, 3)).abs().max() == 0


def test_a_matrix_without_a_gradient_stays_as_it_is():
    (first, second, *_), _ = twins()
    before = second.detach().clone()
    first.grad = torch.ones_like(first)
    muon = Muon([first, second], weight_decay=0.5)
    muon.param_groups[0]["lr"] = 0.1
    muon.step()
    assert torch.equal(second, before)


@pytest.mark.parametrize("shared", ["three-way", "none"])
def test_muon_takes_the_matrices_of_the_layers_and_adam_all_else(shared):
    settings = config(
        f"model.shared_embeddings={shared}", "training.optimizer=muon", "model.positions=learned"
    )
    model = Transformer(settings.model)
    adamw, muon = Optimizer(model, settings.training).parts
    names = {id(weight): name for name, weight in model.named_parameters()}

    def taken(optimizer):
        return [names[id(weight)] for group in optimizer.param_groups for weight in group["params"]]

    assert sorted(taken(adamw) + taken(muon)) == sorted(names.values())
    layers = ("encoder.layers.", "decoder.layers.")
    assert set(taken(muon)) == {
        name for name, weight in model.named_parameters() if name.startswith(layers) and weight.dim() == 2
    }
    assert {"input_embedding.weight", "encoder.layers.0.feed_forward.widen.bias"} <= set(taken(adamw))
    assert any("norm" in name for name in taken(adamw))
    assert ("output_probabilities.weight" in taken(adamw)) == (shared == "none")


def test_adam_alone_takes_everything_and_decays_matrices_only():
    settings = config("training.weight_decay=0.1")
    model = Transformer(settings.model)
    (adamw,) = Optimizer(model, settings.training).parts
    decayed, spared = adamw.param_groups
    assert sum(len(group["params"]) for group in adamw.param_groups) == len(list(model.parameters()))
    assert (decayed["weight_decay"], spared["weight_decay"]) == (0.1, 0.0)
    assert {weight.dim() for weight in decayed["params"]} == {2}
    assert {weight.dim() for weight in spared["params"]} == {1}
