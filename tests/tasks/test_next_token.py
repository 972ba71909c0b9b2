"""The objective compiled, on a batch filled to a fixed size, against the same one plain and unfilled."""

import numpy as np
import pytest
import torch

from regard.data.batches.examples import make_pairs_batch
from regard.model.transformer import Transformer
from regard.tasks import objectives as compiling
from regard.tasks.objectives import NextToken
from tests.training.copying import BOS, EOS, backwards, config

SIZES = (256, 384)
"""Unlike, and multiples of a tile."""


@pytest.fixture
def traced(monkeypatch):
    """Compile without the code generator, which needs a C compiler and a minute."""
    torch.compiler.reset()
    compile_ = torch.compile

    def trace(function, *, dynamic, fullgraph, options):
        assert options == compiling.COMPILER
        return compile_(function, backend="aot_eager", dynamic=dynamic, fullgraph=fullgraph)

    monkeypatch.setattr(torch, "compile", trace)


def objectives():
    """The same model twice. On CPUs FlexAttention has no gradient, so only what comes after it learns."""
    # FlexAttention wants heads of 16 and more.
    settings = ["model.dropout=0.0", "model.d_k=16", "model.d_v=16", "model.shared_embeddings=none"]
    model = Transformer(config(*settings).model).requires_grad_(False)
    last = model.decoder.layers[-1]
    for after in (last.feed_forward, last.add_and_norm[-1], model.output_probabilities):
        after.requires_grad_(True)
    return NextToken(model, 0.1).train(), NextToken(model, 0.1, compiled=True).train()


def gradients(objective, batch):
    objective.zero_grad()
    smoothed, told = objective(batch)
    smoothed.backward()
    return smoothed.detach(), told, [weight.grad for weight in objective.parameters() if weight.requires_grad]


# torch's own tracer does what torch warns of.
@pytest.mark.slow
@pytest.mark.usefixtures("traced")
@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
def test_compiled_and_filled_it_has_the_value_and_the_gradient_of_the_plain_one(tmp_path):
    plain, compiled = objectives()
    store, indices = backwards(tmp_path / "store", 30, 3), np.arange(30)
    free = make_pairs_batch(store, indices, bos=BOS, eos=EOS)
    filled = make_pairs_batch(store, indices, bos=BOS, eos=EOS, fill_to=SIZES)
    assert len(filled.targets_T) == SIZES[1] > free.n_tokens[1]
    expected, told, by_weight = gradients(plain, free)
    value, told_too, by_weight_too = gradients(compiled, filled)
    torch.testing.assert_close(value, expected, rtol=1e-5, atol=1e-4)
    torch.testing.assert_close(told_too, told, rtol=1e-5, atol=1e-4)
    assert not told_too.requires_grad
    assert len(by_weight) >= 6
    for one, other in zip(by_weight_too, by_weight, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


@pytest.mark.slow
@pytest.mark.usefixtures("traced")
@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
def test_batches_of_one_size_are_compiled_once(tmp_path):
    _, compiled = objectives()
    store = backwards(tmp_path / "store", 40, 3)
    batches = [
        make_pairs_batch(store, indices, bos=BOS, eos=EOS, fill_to=SIZES)
        for indices in np.array_split(np.arange(40), 3)
    ]
    compiled(batches[0])
    with torch.compiler.set_stance("fail_on_recompile"):
        for batch in batches[1:]:
            compiled(batch)


@pytest.mark.usefixtures("traced")
def test_in_evaluation_batches_may_have_any_size_and_nothing_is_smoothed(tmp_path):
    _, compiled = objectives()
    batch = make_pairs_batch(backwards(tmp_path / "store", 5, 3), np.arange(5), bos=BOS, eos=EOS)
    smoothed, told = compiled.eval()(batch)
    torch.testing.assert_close(smoothed, told[1])
