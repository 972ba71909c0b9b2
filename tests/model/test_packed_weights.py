"""A model that is ready to run gives what the model gives, and leaves it as it was."""

import pytest
import torch

from regard.model.fast.packed_weights import ready_to_run
from regard.packing import pack
from tests.model.small import small_model

INPUTS, OUTPUTS = [[3, 4, 5], [6, 7, 8, 9, 10]], [[1, 11], [1, 12, 13]]


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.bfloat16, 5e-2)])
@pytest.mark.parametrize("settings", [{}, {"attention_bias": True, "feed_forward": "swiglu"}])
def test_packed_weights_give_the_same_log_probabilities(dtype, tolerance, settings):
    torch.manual_seed(1)
    model = small_model(dtype=torch.float32, **settings)
    model.compute_dtype = dtype
    ready = ready_to_run(model)
    assert ready.output_probabilities.product is not None
    with torch.inference_mode():
        expected, found = (each(pack(INPUTS), pack(OUTPUTS)).float() for each in (model, ready))
    torch.testing.assert_close(found, expected, atol=tolerance, rtol=tolerance)


def test_weights_are_shared_and_the_model_can_go_on_training():
    model = small_model(dtype=torch.float32)
    before = model(pack(INPUTS), pack(OUTPUTS)).detach()
    ready = ready_to_run(model)
    assert {id(each) for each in ready.parameters()} == {id(each) for each in model.parameters()}
    model(pack(INPUTS), pack(OUTPUTS)).sum().backward()
    with torch.no_grad():
        for weight in model.parameters():
            weight -= weight.grad
    with torch.inference_mode():
        assert not torch.allclose(model(pack(INPUTS), pack(OUTPUTS)), before)


def test_what_cannot_be_packed_runs_as_it_is():
    model = small_model(dtype=torch.float64)
    assert ready_to_run(model) is model
