import pytest

from regard import ConfigError, DataConfig, DecodingConfig, TrainingConfig
from tests.refusals import refused


@pytest.mark.parametrize(
    ("section", "setting", "value", "bound"),
    [
        (TrainingConfig, "seed", -1, "at least 0"),
        (TrainingConfig, "batch_tokens", 0, "at least 1"),
        (TrainingConfig, "warmup_steps", 0, "at least 1"),
        (TrainingConfig, "agreement", -1.0, "at least 0"),
        (TrainingConfig, "checkpoint_every", 0, "at least 1"),
        (TrainingConfig, "learning_rate", 0.0, "above 0"),
        (TrainingConfig, "adam_beta2", 1.0, "below 1"),
        (TrainingConfig, "clip_norm", float("inf"), "finite"),
        (DataConfig, "max_characters", 0, "at least 1"),
        (DataConfig, "valid_lines", 0, "at least 1"),
        (DataConfig, "test_lines", 0, "at least 1"),
        (DataConfig, "max_ratio", 1.0, "above 1"),
        (DataConfig, "max_ratio", float("nan"), "finite"),
        (DecodingConfig, "beam_size", 0, "at least 1"),
        (DecodingConfig, "length_penalty", -0.5, "at least 0"),
        (DecodingConfig, "extra_length", -1, "at least 0"),
    ],
)
def test_one_wrong_setting_is_one_problem(section, setting, value, bound):
    name = f"{section.SECTION}.{setting} = {value}"
    with refused("bad_value", name, bound, error=ConfigError) as caught:
        section(**{setting: value})
    assert len(caught.value.problems) == 1


def test_the_defaults_are_the_papers():
    training, decoding = TrainingConfig(), DecodingConfig()
    assert (training.adam_beta1, training.adam_beta2, training.adam_epsilon) == (0.9, 0.98, 1e-9)
    assert (training.warmup_steps, training.label_smoothing, training.max_steps) == (4000, 0.1, 100_000)
    assert (decoding.beam_size, decoding.length_penalty, decoding.extra_length) == (4, 0.6, 50)
