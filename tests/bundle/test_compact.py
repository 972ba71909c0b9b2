"""A folder in 8 bits is the model, to within half a step of each row; both roads read the same numbers."""

import numpy as np
import pytest
import torch

from regard.bundle import compact, describe_bundle, load_bundle, save_bundle
from regard.bundle.weights import float32_weights, int8_weights
from regard.exchange.ctranslate2.convert import variables_of
from regard.exchange.ctranslate2.weights_file import quantised
from regard.model.build import build
from tests.bundle.folders import KINDS, SMALL, outputs_of
from tests.refusals import refused


@pytest.mark.parametrize("kind", KINDS)
def test_every_number_is_within_half_a_step_of_what_it_was(tmp_path, kind):
    model = build(KINDS[kind])
    save_bundle(tmp_path / "whole", model, subwords=b"pieces", metrics={"bleu": 31.5})
    loaded = load_bundle(compact(tmp_path / "whole", tmp_path / "small"))
    for (name, before), (same, now) in zip(
        model.named_parameters(), loaded.model.named_parameters(), strict=True
    ):
        assert (name, now.dtype) == (same, torch.float32)
        if before.ndim == 2:
            step = before.abs().amax(1, keepdim=True) / 127
            assert bool(((now - before).abs() <= 0.501 * step).all()), name
        else:
            assert torch.equal(now, before), name
    assert not torch.equal(outputs_of(loaded.model), outputs_of(model))
    torch.testing.assert_close(outputs_of(loaded.model), outputs_of(model), rtol=0.1, atol=0.1)
    assert (loaded.config, loaded.subwords, loaded.metrics) == (model.config, b"pieces", {"bleu": 31.5})


def test_both_roads_read_the_same_numbers(tmp_path):
    save_bundle(tmp_path / "whole", build(SMALL))
    small = compact(tmp_path / "whole", tmp_path / "small")
    by_numpy = float32_weights((small / "model.safetensors").read_bytes())
    by_torch = dict(load_bundle(small).model.named_parameters())
    assert set(by_numpy) == set(by_torch)
    for name, array in by_numpy.items():
        assert np.array_equal(array, by_torch[name].detach().numpy()), name


def test_ctranslate2_gets_the_integers_that_were_saved():
    config = KINDS["two-way"]
    content = _saved(config)
    first = quantised(dict(variables_of(config, float32_weights(content))), "int8")
    again = quantised(dict(variables_of(config, float32_weights(int8_weights(content, {})))), "int8")
    integers = [name for name, array in first.items() if array.dtype == np.int8]
    assert integers
    for name in integers:
        assert np.array_equal(first[name], again[name]), name


def test_it_says_what_it_is_and_takes_a_quarter(tmp_path):
    config = KINDS["three-way"]
    save_bundle(tmp_path / "whole", build(config))
    compact(tmp_path / "whole", tmp_path / "small", notes="Of one sort.")
    whole, small = describe_bundle(tmp_path / "whole"), describe_bundle(tmp_path / "small")
    assert small.n_parameters == whole.n_parameters
    assert small.dtype == "float32, int8"
    assert small.files["model.safetensors"] < whole.files["model.safetensors"]
    assert "Of one sort." in (tmp_path / "small" / "card.md").read_text()
    assert "int8" in (tmp_path / "small" / "card.md").read_text()


def test_a_row_of_zeros_stays_one():
    from safetensors.numpy import save

    matrix = np.array([[0, 0, 0], [1, -2, 127]], np.float32)
    assert np.array_equal(float32_weights(int8_weights(save({"a": matrix}), {}))["a"], matrix)


def test_a_damaged_folder_is_not_made_smaller(tmp_path):
    save_bundle(tmp_path / "whole", build(SMALL))
    weights = tmp_path / "whole" / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    with refused("damaged_model_folder", "model.safetensors"):
        compact(tmp_path / "whole", tmp_path / "small")
    assert not (tmp_path / "small").exists()


def _saved(config):
    from regard.bundle.weights import to_bytes

    return to_bytes(build(config))
