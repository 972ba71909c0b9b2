import pytest

from regard import ConfigError, RunConfig, preset
from regard.config import PRESETS, summary
from tests.refusals import refused


def differences(name):
    """What a preset changes of the paper's base model."""
    base, other = preset("paper-base"), preset(name)
    return {
        setting: getattr(getattr(other, section), setting)
        for section in ("model", "training", "decoding")
        for setting in getattr(base, section).__dataclass_fields__
        if getattr(getattr(base, section), setting) != getattr(getattr(other, section), setting)
    }


def test_the_base_model_is_the_default():
    assert preset("paper-base") == RunConfig()


# The paper's Table 3, typed from the paper and not from our code.
TABLE_3 = {
    "paper-base-heads-1": {"n_heads": 1, "d_k": 512, "d_v": 512},
    "paper-base-heads-4": {"n_heads": 4, "d_k": 128, "d_v": 128},
    "paper-base-heads-16": {"n_heads": 16, "d_k": 32, "d_v": 32},
    "paper-base-heads-32": {"n_heads": 32, "d_k": 16, "d_v": 16},
    "paper-base-d_k-16": {"d_k": 16},
    "paper-base-d_k-32": {"d_k": 32},
    "paper-base-layers-2": {"encoder_layers": 2, "decoder_layers": 2},
    "paper-base-layers-4": {"encoder_layers": 4, "decoder_layers": 4},
    "paper-base-layers-8": {"encoder_layers": 8, "decoder_layers": 8},
    "paper-base-d_model-256": {"d_model": 256, "d_k": 32, "d_v": 32},
    "paper-base-d_model-1024": {"d_model": 1024, "d_k": 128, "d_v": 128},
    "paper-base-d_ff-1024": {"d_ff": 1024},
    "paper-base-d_ff-4096": {"d_ff": 4096},
    "paper-base-dropout-0.0": {"dropout": 0.0},
    "paper-base-dropout-0.2": {"dropout": 0.2},
    "paper-base-label-smoothing-0.0": {"label_smoothing": 0.0},
    "paper-base-label-smoothing-0.2": {"label_smoothing": 0.2},
    "paper-base-learned-positions": {"positions": "learned"},
    "paper-big": {"d_model": 1024, "d_ff": 4096, "n_heads": 16, "dropout": 0.3, "max_steps": 300_000},
}


# Section 6.1: the last 20 checkpoints of the big model, every ten minutes, which are 600 steps of a second.
# Section 6.2: no checkpoint averaging in Table 3.
BIG = {"average_checkpoints": 20, "checkpoint_every": 600}
AVERAGING = {name: BIG if name == "paper-big" else {"average_checkpoints": 1} for name in TABLE_3}


@pytest.mark.parametrize("name", TABLE_3)
def test_a_variation_changes_what_table_3_says_and_nothing_else(name):
    assert differences(name) == TABLE_3[name] | AVERAGING[name]


def test_the_papers_models_are_chosen_as_in_the_paper_and_ours_by_their_loss():
    base = preset("paper-base").training
    assert (base.average_checkpoints, base.checkpoint_every, base.selection) == (5, 1500, "last")
    for name in PRESETS:
        assert preset(name).training.selection == ("last" if name.startswith("paper-") else "best")


def test_all_the_published_models_are_in_the_table():
    assert {name for name in PRESETS if name.startswith("paper-")} == {"paper-base", *TABLE_3}


@pytest.mark.parametrize(
    ("name", "d_model", "n_heads", "d_ff", "layers"),
    [
        ("tiny", 128, 4, 512, (2, 2)),
        ("small", 256, 4, 1024, (3, 3)),
        ("base", 512, 8, 2048, (6, 6)),
        ("deep-shallow", 512, 8, 2048, (12, 2)),
    ],
)
def test_our_presets_normalise_first(name, d_model, n_heads, d_ff, layers):
    model = preset(name).model
    assert (model.d_model, model.n_heads, model.d_ff) == (d_model, n_heads, d_ff)
    assert (model.encoder_layers, model.decoder_layers) == layers
    assert model.norm_position == "pre"


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_says_what_it_is_in_one_line(name):
    assert summary(name).endswith(".")


@pytest.mark.parametrize(
    ("name", "advice"), [("paper-bigg", "did you mean paper-big?"), ("xyz", "`regard config --list`")]
)
def test_an_unknown_preset_is_refused(name, advice):
    with refused("unknown_preset", name, advice, error=ConfigError):
        preset(name)
