"""The paper's parameter counts (Table 3): 65 and 213 million, with 37,000 shared subwords."""

import pytest
import torch

from regard.config import preset
from regard.model.build import build
from tests.architecture.sources import ROOT
from tests.model.small import N_LABELS, D, F, H, K, U, V, small_model
from tools import table_3

PAGE = (ROOT / "docs" / "table-3.md").read_text(encoding="utf-8")


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


# Layers, d_model, d_ff, heads, d_k, d_v and the millions of parameters, typed from Table 3 of the paper.
PRINTED = {
    "paper-base": (6, 512, 2048, 8, 64, 64, 65),
    "paper-base-heads-1": (6, 512, 2048, 1, 512, 512, None),
    "paper-base-heads-4": (6, 512, 2048, 4, 128, 128, None),
    "paper-base-heads-16": (6, 512, 2048, 16, 32, 32, None),
    "paper-base-heads-32": (6, 512, 2048, 32, 16, 16, None),
    "paper-base-d_k-16": (6, 512, 2048, 8, 16, 64, 58),
    "paper-base-d_k-32": (6, 512, 2048, 8, 32, 64, 60),
    "paper-base-layers-2": (2, 512, 2048, 8, 64, 64, 36),
    "paper-base-layers-4": (4, 512, 2048, 8, 64, 64, 50),
    "paper-base-layers-8": (8, 512, 2048, 8, 64, 64, 80),
    "paper-base-d_model-256": (6, 256, 2048, 8, 32, 32, 28),
    "paper-base-d_model-1024": (6, 1024, 2048, 8, 128, 128, 168),
    "paper-base-d_ff-1024": (6, 512, 1024, 8, 64, 64, 53),
    "paper-base-d_ff-4096": (6, 512, 4096, 8, 64, 64, 90),
    "paper-base-dropout-0.0": (6, 512, 2048, 8, 64, 64, None),
    "paper-base-dropout-0.2": (6, 512, 2048, 8, 64, 64, None),
    "paper-base-label-smoothing-0.0": (6, 512, 2048, 8, 64, 64, None),
    "paper-base-label-smoothing-0.2": (6, 512, 2048, 8, 64, 64, None),
    "paper-base-learned-positions": (6, 512, 2048, 8, 64, 64, None),
    "paper-big": (6, 1024, 4096, 16, 64, 64, 213),
}


def formula(name: str, vocab_size: int) -> int:
    """Figure 1, box by box, from the numbers of the paper's row; row E has two tables of 1,024 positions."""
    layers, d_model, d_ff, heads, d_k, d_v, _ = PRINTED[name]
    attention = heads * (2 * d_model * d_k + 2 * d_model * d_v)
    feed_forward = 2 * d_model * d_ff + d_ff + d_model
    stacks = layers * (3 * attention + 2 * feed_forward + 5 * 2 * d_model)
    positions = 2 * 1024 * d_model if name.endswith("learned-positions") else 0
    return vocab_size * d_model + stacks + positions


def test_the_page_of_table_3_has_our_counts_beside_the_papers():
    """Every row of the paper is on the page, with the counts of the formula and the reasons' numbers."""
    every = table_3.rows()
    assert {row.name: row.printed for row in every} == {name: row[-1] for name, row in PRINTED.items()}
    for row in every:
        assert row.parameters == n_parameters(row.name) == formula(row.name, 37_000)
        assert f"| `{row.name}` | " in PAGE
        assert f" | {row.parameters:,} | " in PAGE
        if row.vocabularies is not None:
            low, high = row.vocabularies
            rounded = [round(formula(row.name, size) / 1e6) for size in (low - 1, low, high, high + 1)]
            assert rounded == [row.printed - 1, row.printed, row.printed, row.printed + 1]
    assert table_3.page() == PAGE, "run `make docs`"


@pytest.mark.parametrize("name", [name for name, row in PRINTED.items() if row[-1] and name != "paper-big"])
def test_one_vocabulary_explains_every_printed_count_but_that_of_the_big_model(name):
    for size in (41_004, 41_100, 41_208):
        assert round(formula(name, size) / 1e6) == PRINTED[name][-1]
    assert "With 41,004 to 41,208 subwords" in PAGE
    assert round(formula("paper-big", 41_100) / 1e6) == 218


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
