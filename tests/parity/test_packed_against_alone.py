"""Packed with others, alone, or on ordinary tensors with a mask: a sequence gets the same answer."""

import pytest
import torch

from regard.loss import label_smoothed_cross_entropy
from regard.model.encoder import Encoder
from regard.model.masks import SameSequence, length_mask
from regard.packing import Boundaries, pack, unpack
from tests.model.small import INPUT_LENGTHS, OUTPUT_LENGTHS, D, random_ids, small_config, small_model, stirred
from tests.parity.tolerances import assert_close

SETTINGS = [
    {},
    {"positions": "rotary", "norm_position": "pre", "norm": "rms"},
    {"positions": "learned", "similarity": "additive"},
    {"positions": "none", "similarity": "cosine", "feed_forward": "swiglu"},
    {"positions": "alibi"},
    {"positions": "t5-relative", "similarity": "dot"},
]
each_setting = pytest.mark.parametrize("settings", SETTINGS, ids=lambda s: "-".join(s.values()) or "paper")


@each_setting
def test_a_transformer_answers_each_pair_as_if_it_were_alone(settings):
    model = small_model(**settings)
    inputs, outputs = random_ids(INPUT_LENGTHS), random_ids(OUTPUT_LENGTHS)
    with torch.no_grad():
        together = unpack(model(pack(inputs), pack(outputs)), pack(outputs).boundaries)
        for i, of_one in enumerate(together):
            assert_close(of_one, model(pack(inputs[i : i + 1]), pack(outputs[i : i + 1])))


@each_setting
def test_a_language_model_answers_each_text_as_if_it_were_alone(settings):
    model, outputs = small_model(architecture="decoder", **settings), random_ids(OUTPUT_LENGTHS)
    with torch.no_grad():
        together = unpack(model(pack(outputs)), pack(outputs).boundaries)
        for ids, of_one in zip(outputs, together, strict=True):
            assert_close(of_one, model(pack([ids])))


@each_setting
def test_a_classifier_answers_each_text_as_if_it_were_alone(settings):
    model, inputs = small_model(architecture="encoder", **settings), random_ids(INPUT_LENGTHS)
    with torch.no_grad():
        for ids, of_one in zip(inputs, model(pack(inputs)), strict=True):
            assert_close(of_one[None], model(pack([ids])))


@each_setting
def test_gradients_of_a_batch_are_the_sum_of_the_gradients_of_its_sequences(settings):
    model = small_model(**settings)
    inputs, outputs = random_ids(INPUT_LENGTHS), random_ids(OUTPUT_LENGTHS)
    targets = random_ids(OUTPUT_LENGTHS)

    def gradients(of: slice) -> list[torch.Tensor]:
        states = model.decode(pack(outputs[of]), model.encode(pack(inputs[of])))
        ids = pack(targets[of]).ids_N
        loss = label_smoothed_cross_entropy(states, model.output_probabilities.weight, ids, 0.1)
        return list(torch.autograd.grad(loss.smoothed, list(model.parameters())))

    each = [gradients(slice(i, i + 1)) for i in range(len(inputs))]
    for together, *alone in zip(gradients(slice(None)), *each, strict=True):
        assert_close(together, sum(alone))


@pytest.mark.parametrize("similarity", ["scaled-dot", "additive"])
@pytest.mark.parametrize("positions", ["none", "rotary"])
def test_packed_tokens_and_ordinary_tensors_with_a_mask_agree(similarity, positions):
    encoder = stirred(Encoder(small_config(similarity=similarity, positions=positions))).double()
    own = Boundaries.of_lengths(INPUT_LENGTHS)
    x = torch.randn(own.n_tokens, D, dtype=torch.float64)
    may_attend = length_mask(torch.tensor(INPUT_LENGTHS))
    with torch.no_grad():
        packed = encoder(x, SameSequence(own, own, causal=False))
        ordinary = encoder(own.padded.pad(x)[0], may_attend)
    assert_close(packed, own.padded.unpad([ordinary]))


@pytest.mark.parametrize("positions", ["learned", "alibi", "t5-relative"])
def test_a_filler_sequence_changes_nothing_for_the_others(positions):
    model = small_model(positions=positions)
    inputs, outputs = pack(random_ids(INPUT_LENGTHS)), pack(random_ids(OUTPUT_LENGTHS))
    n = outputs.boundaries.n_tokens
    with torch.no_grad():
        filled = model(inputs.filled(53), outputs.filled(61))
        assert_close(filled[:n], model(inputs, outputs))
    assert filled.shape[0] == 61
    assert filled.isfinite().all()
