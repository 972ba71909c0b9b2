"""Order: outputs cannot peek ahead, and without positions there is no order at all."""

import pytest
import torch

from regard.model.decoder import Decoder
from regard.model.encoder import Encoder
from regard.model.masks import SameSequence, causal_mask
from regard.packing import Boundaries, pack, unpack
from tests.model.small import D, V, random_ids, small_config, small_model, stirred
from tests.parity.tolerances import assert_close, differ

SIMILARITIES = ("scaled-dot", "cosine", "additive")
POSITIONS = ("sinusoidal", "learned", "rotary")


@pytest.mark.parametrize("positions", [*POSITIONS, "none"])
@pytest.mark.parametrize("architecture", ["encoder-decoder", "decoder"])
def test_what_comes_after_a_token_does_not_change_its_prediction(architecture, positions):
    model = small_model(architecture=architecture, positions=positions)
    outputs = random_ids((7, 3))
    changed = [list(ids) for ids in outputs]
    for t in range(4, 7):
        changed[0][t] = (changed[0][t] + 5) % V
    first = () if architecture == "decoder" else (pack(random_ids((5, 11))),)
    with torch.no_grad():
        before, after = model(*first, pack(outputs)), model(*first, pack(changed))
    assert torch.equal(before[:4], after[:4])
    assert differ(before[4:7], after[4:7])
    assert torch.equal(before[7:], after[7:])


@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize("packed", [True, False])
def test_no_gradient_comes_back_from_a_later_token(similarity, packed):
    length, t = 7, 3
    decoder = stirred(Decoder(small_config(similarity=similarity, positions="none"), memory=False)).double()
    x = torch.randn(length, D, dtype=torch.float64, requires_grad=True)
    if packed:
        own = Boundaries.of_lengths([length])
        states = decoder(x, None, SameSequence(own, own, causal=True))
    else:
        states = decoder(x[None], None, causal_mask(length))[0]
    (gradient,) = torch.autograd.grad(states[t].square().sum(), x)
    assert (gradient[t + 1 :] == 0).all()
    assert (gradient[: t + 1].abs().sum(dim=1) > 0).all()


@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_without_positions_shuffled_inputs_give_shuffled_memory(similarity):
    encoder = stirred(Encoder(small_config(similarity=similarity, positions="none"))).double()
    x, order = torch.randn(2, 7, D, dtype=torch.float64), torch.randperm(7)
    with torch.no_grad():
        assert_close(encoder(x[:, order]), encoder(x)[:, order])
    assert order.tolist() != sorted(order.tolist())


def memory_of(model, ids: list[int]) -> torch.Tensor:
    with torch.no_grad():
        return model.encode(pack([ids])).states_SD


def test_a_whole_encoder_without_positions_does_not_see_order():
    model, ids = small_model(positions="none"), list(range(7))
    order = [3, 0, 6, 1, 5, 2, 4]
    assert_close(memory_of(model, [ids[i] for i in order]), memory_of(model, ids)[order])


@pytest.mark.parametrize("positions", POSITIONS)
def test_a_whole_encoder_with_positions_sees_order(positions):
    model, ids = small_model(positions=positions), list(range(7))
    order = [3, 0, 6, 1, 5, 2, 4]
    assert differ(memory_of(model, [ids[i] for i in order]), memory_of(model, ids)[order])


def test_without_positions_the_order_of_inputs_does_not_change_a_prediction_but_that_of_outputs_does():
    model = small_model(positions="none")
    inputs, outputs = [1, 2, 3, 5, 8], [13, 0, 4]
    with torch.no_grad():
        plain = model(pack([inputs]), pack([outputs]))
        assert_close(model(pack([inputs[::-1]]), pack([outputs])), plain)
        # The causal mask is itself a kind of order: the second token sees two, the third three.
        assert differ(model(pack([inputs]), pack([outputs[::-1]]))[0], plain[-1])


@pytest.mark.parametrize("positions", POSITIONS)
def test_the_order_of_sequences_in_a_batch_does_not_matter(positions):
    model, inputs, outputs = small_model(positions=positions), random_ids((7, 2, 13)), random_ids((3, 11, 5))
    order = (2, 0, 1)
    with torch.no_grad():
        plain = unpack(model(pack(inputs), pack(outputs)), pack(outputs).boundaries)
        shuffled = pack([outputs[i] for i in order])
        moved = unpack(model(pack([inputs[i] for i in order]), shuffled), shuffled.boundaries)
    for i, of_one in zip(order, moved, strict=True):
        assert_close(of_one, plain[i])
