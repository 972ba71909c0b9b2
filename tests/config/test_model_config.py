from dataclasses import FrozenInstanceError

import pytest

from regard import ConfigError, ModelConfig


def problems(**settings):
    with pytest.raises(ConfigError) as caught:
        ModelConfig(**settings)
    assert caught.value.where == "ModelConfig"
    return caught.value.problems


def test_the_default_is_the_base_model_of_the_paper():
    config = ModelConfig()
    assert (config.d_model, config.n_heads, config.d_ff) == (512, 8, 2048)
    assert (config.key_width, config.value_width) == (64, 64)


def test_a_config_is_a_frozen_value():
    assert ModelConfig() == ModelConfig()
    with pytest.raises(FrozenInstanceError):
        ModelConfig().d_model = 256


def test_widths_of_keys_and_values_are_free_of_each_other():
    config = ModelConfig(d_model=14, n_heads=3, d_k=5, d_v=7)
    assert (config.key_width, config.value_width) == (5, 7)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"d_model": 510}, "model.d_model = 510 does not divide among 8 heads; 512 does"),
        ({"d_model": 3, "n_heads": 8}, "model.d_model = 3 does not divide among 8 heads; 8 does"),
        # Sinusoids need an even width and rotation an even share, so the suggestion allows for them.
        ({"d_model": 20, "n_heads": 7}, "model.d_model = 20 does not divide among 7 heads; 14 does"),
        (
            {"d_model": 20, "n_heads": 7, "positions": "learned"},
            "model.d_model = 20 does not divide among 7 heads; 21 does",
        ),
        (
            {"d_model": 20, "n_heads": 8, "positions": "rotary"},
            "model.d_model = 20 does not divide among 8 heads; 16 does",
        ),
        ({"d_model": 513, "d_v": 64}, "model.d_model = 513 does not divide among 8 heads; 512 does"),
        ({"vocab_size": 0}, "model.vocab_size = 0 must be at least 1"),
        ({"n_heads": -1}, "model.n_heads = -1 must be at least 1"),
        ({"d_k": 0}, "model.d_k = 0 must be at least 1"),
        ({"decoder_layers": -1}, "model.decoder_layers = -1 must be at least 0"),
        ({"dropout": 1.0}, "model.dropout = 1.0 must be at least 0 and below 1"),
        ({"dropout": float("nan")}, "model.dropout = nan must be at least 0 and below 1"),
        (
            {"positions": "rotary", "d_k": 5},
            'model.positions = "rotary" needs an even model.d_k, not 5',
        ),
        (
            {"d_model": 15, "n_heads": 3},
            'model.positions = "sinusoidal" needs an even model.d_model, not 15',
        ),
        (
            {"architecture": "encoder", "n_labels": 1},
            "model.n_labels = 1 is too few for the encoder alone; it needs 2 or more",
        ),
        (
            {"architecture": "decoder", "n_labels": 2},
            'model.n_labels = 2 is for model.architecture = "encoder", not "decoder"',
        ),
        ({"encoder_layers": 0}, 'model.encoder_layers = 0 leaves "encoder-decoder" without an encoder'),
        (
            {"architecture": "decoder", "decoder_layers": 0},
            'model.decoder_layers = 0 leaves "decoder" without a decoder',
        ),
        ({"d_model": "512"}, 'model.d_model expects an integer, got "512"'),
        ({"n_heads": True}, "model.n_heads expects an integer, got true"),
        ({"d_k": 1.5}, 'model.d_k expects an integer or "none", got 1.5'),
        ({"norm": "lyer"}, 'model.norm = "lyer" is not one of layer, rms; did you mean layer?'),
    ],
)
def test_one_contradiction_is_one_problem(settings, problem):
    assert problems(**settings) == (problem,)


def test_all_contradictions_come_at_once():
    found = problems(d_model=509, dropout=-0.1, n_labels=3, encoder_layers=0)
    assert [problem.split()[0] for problem in found] == [
        "model.d_model",
        "model.dropout",
        "model.n_labels",
        "model.encoder_layers",
    ]


@pytest.mark.parametrize(
    "settings",
    [
        {"architecture": "decoder", "encoder_layers": 0},
        {"architecture": "encoder", "n_labels": 2, "decoder_layers": 0},
        {"architecture": "decoder", "shared_embeddings": "three-way"},
        {"d_model": 13, "n_heads": 3, "d_k": 5, "d_v": 7, "positions": "learned"},
        {"dropout": 0},
    ],
)
def test_what_makes_sense_passes(settings):
    ModelConfig(**settings)
