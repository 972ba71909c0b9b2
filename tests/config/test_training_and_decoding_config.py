import pytest

from regard import ConfigError, DataConfig, DecodingConfig, TrainingConfig


@pytest.mark.parametrize(
    ("section", "settings", "problem"),
    [
        (TrainingConfig, {"seed": -1}, "training.seed = -1 must be at least 0"),
        (TrainingConfig, {"batch_tokens": 0}, "training.batch_tokens = 0 must be at least 1"),
        (TrainingConfig, {"warmup_steps": 0}, "training.warmup_steps = 0 must be at least 1"),
        (TrainingConfig, {"learning_rate": 0.0}, "training.learning_rate = 0.0 must be above 0 and finite"),
        (TrainingConfig, {"adam_beta2": 1.0}, "training.adam_beta2 = 1.0 must be at least 0 and below 1"),
        (
            TrainingConfig,
            {"clip_norm": float("inf")},
            "training.clip_norm = inf must be at least 0 and finite",
        ),
        (
            TrainingConfig,
            {"schedule": "linear"},
            'training.schedule = "linear" is not one of paper, cosine, warmup-stable-decay. '
            "If it is your own, import the module that registers it first",
        ),
        (DataConfig, {"max_characters": 0}, "data.max_characters = 0 must be at least 1"),
        (DataConfig, {"valid_lines": 0}, "data.valid_lines = 0 must be at least 1"),
        (DataConfig, {"test_lines": 0}, "data.test_lines = 0 must be at least 1"),
        (DataConfig, {"max_ratio": 1.0}, "data.max_ratio = 1.0 must be above 1 and finite"),
        (DataConfig, {"max_ratio": float("nan")}, "data.max_ratio = nan must be above 1 and finite"),
        (DecodingConfig, {"beam_size": 0}, "decoding.beam_size = 0 must be at least 1"),
        (
            DecodingConfig,
            {"length_penalty": -0.5},
            "decoding.length_penalty = -0.5 must be at least 0 and finite",
        ),
        (DecodingConfig, {"extra_length": -1}, "decoding.extra_length = -1 must be at least 0"),
    ],
)
def test_one_wrong_setting_is_one_problem(section, settings, problem):
    with pytest.raises(ConfigError) as caught:
        section(**settings)
    assert caught.value.problems == (problem,)


def test_the_defaults_are_the_papers():
    training, decoding = TrainingConfig(), DecodingConfig()
    assert (training.adam_beta1, training.adam_beta2, training.adam_epsilon) == (0.9, 0.98, 1e-9)
    assert (training.warmup_steps, training.label_smoothing, training.max_steps) == (4000, 0.1, 100_000)
    assert (decoding.beam_size, decoding.length_penalty, decoding.extra_length) == (4, 0.6, 50)
