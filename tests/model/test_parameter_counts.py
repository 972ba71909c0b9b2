"""The paper's parameter counts (Table 3): 65 and 213 million, with 37,000 shared subwords."""

import pytest
import torch

from regard.config import preset
from regard.model.build import build
from tests.model.small import N_LABELS, D, F, H, K, U, V, small_model


def paper_count(d_model: int, d_ff: int, n_layers: int, vocab_size: int) -> int:
    """Figure 1, box by box. Attention has no biases (3.2.2); h · d_k = d_model, so each W is a square."""
    attention = 4 * d_model * d_model
    feed_forward = d_model * d_ff + d_ff + d_ff * d_model + d_model
    norm = 2 * d_model
    encoder_layer = attention + feed_forward + 2 * norm
    decoder_layer = 2 * attention + feed_forward + 3 * norm
    return vocab_size * d_model + n_layers * (encoder_layer + decoder_layer)


def n_parameters(name: str) -> int:
    """Built without memory for the numbers."""
    with torch.device("meta"):
        return build(preset(name).model).n_parameters


@pytest.mark.parametrize(
    ("name", "sizes", "exactly", "printed"),
    [
        ("paper-base", (512, 2048, 6, 37_000), 63_045_632, 65e6),
        ("paper-big", (1024, 4096, 6, 37_000), 214_171_648, 213e6),
    ],
)
def test_a_preset_has_the_parameters_of_the_formula_and_about_those_that_the_paper_prints(
    name, sizes, exactly, printed
):
    assert n_parameters(name) == paper_count(*sizes) == exactly
    assert exactly == pytest.approx(printed, rel=0.04)


@pytest.mark.parametrize(
    ("name", "d_model", "printed"),
    [
        ("paper-base", 512, 65), ("paper-base-d_k-16", 512, 58), ("paper-base-d_k-32", 512, 60),
        ("paper-base-layers-2", 512, 36), ("paper-base-layers-4", 512, 50), ("paper-base-layers-8", 512, 80),
        ("paper-base-d_model-256", 256, 28), ("paper-base-d_model-1024", 1024, 168),
        ("paper-base-d_ff-1024", 512, 53), ("paper-base-d_ff-4096", 512, 90),
    ],
)  # fmt: skip
def test_each_variation_of_table_3_has_the_printed_millions_if_the_paper_had_4000_subwords_more(
    name, d_model, printed
):
    """What the printed counts have beyond ours is 4,000 times d_model in every row, to the printed digit."""
    assert n_parameters(name) + 4000 * d_model == pytest.approx(printed * 1e6, abs=0.51e6)


def test_weights_that_are_shared_count_once():
    counts = {
        sharing: small_model(shared_embeddings=sharing).n_parameters
        for sharing in ("none", "two-way", "three-way")
    }
    assert counts["none"] - counts["two-way"] == counts["two-way"] - counts["three-way"] == V * D


def test_a_small_model_of_each_architecture_box_by_box():
    attention = 2 * D * H * K + D * H * U + H * U * D
    encoder_layer = attention + 2 * D * F + F + D + 2 * 2 * D
    decoder_alone = encoder_layer
    decoder_layer = encoder_layer + attention + 2 * D
    assert small_model().n_parameters == V * D + 2 * encoder_layer + 3 * decoder_layer
    assert small_model(architecture="decoder").n_parameters == V * D + 3 * decoder_alone
    classifier = V * D + 2 * encoder_layer + N_LABELS * D + N_LABELS
    assert small_model(architecture="encoder").n_parameters == classifier
