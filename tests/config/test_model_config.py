from dataclasses import FrozenInstanceError

import pytest

from regard import ConfigError, ModelConfig


def problems(**settings):
    with pytest.raises(ConfigError) as caught:
        ModelConfig(**settings)
    assert caught.value.where == "ModelConfig"
    return caught.value


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
    ],
)
def test_a_width_that_does_not_divide_gets_a_suggestion(settings, problem):
    error = problems(**settings)
    assert error.problems == (problem,)
    assert error.code == "bad_value"


@pytest.mark.parametrize(
    ("settings", "code", "places"),
    [
        ({"vocab_size": 0}, "bad_value", ["model.vocab_size = 0", "1"]),
        ({"n_heads": -1}, "bad_value", ["model.n_heads = -1", "1"]),
        ({"d_k": 0}, "bad_value", ["model.d_k = 0", "1"]),
        ({"decoder_layers": -1}, "bad_value", ["model.decoder_layers = -1", "0"]),
        ({"dropout": 1.0}, "bad_value", ["model.dropout = 1.0"]),
        ({"dropout": float("nan")}, "bad_value", ["model.dropout = nan"]),
        ({"positions": "rotary", "d_k": 5}, "bad_value", ["model.positions", "rotary", "model.d_k", "5"]),
        (
            {"d_model": 15, "n_heads": 3},
            "bad_value",
            ["sinusoidal", "model.d_model", "15"],
        ),
        ({"architecture": "encoder", "n_labels": 1}, "bad_value", ["model.n_labels = 1", "2"]),
        (
            {"architecture": "decoder", "n_labels": 2},
            "bad_value",
            ["model.n_labels = 2", "decoder"],
        ),
        ({"encoder_layers": 0}, "bad_value", ["model.encoder_layers = 0", "encoder-decoder"]),
        (
            {"architecture": "decoder", "decoder_layers": 0},
            "bad_value",
            ["model.decoder_layers = 0"],
        ),
        ({"d_model": "512"}, "wrong_type", ["model.d_model", "an integer", '"512"']),
        ({"n_heads": True}, "wrong_type", ["model.n_heads", "an integer", "true"]),
        ({"d_k": 1.5}, "wrong_type", ["model.d_k", 'an integer or "none"', "1.5"]),
        ({"norm": "lyer"}, "unknown_choice", ["model.norm", "lyer", "rms", "layer?"]),
    ],
)
def test_one_contradiction_is_one_problem(settings, code, places):
    error = problems(**settings)
    (problem,) = error.problems
    assert error.code == code
    assert [place for place in places if place not in problem] == []


def test_all_contradictions_come_at_once():
    found = problems(d_model=509, dropout=-0.1, n_labels=3, encoder_layers=0).problems
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
