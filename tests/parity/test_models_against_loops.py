"""The three assemblies, whole, against plain loops, over every pair of settings."""

from collections.abc import Iterator
from itertools import combinations, product

import pytest
import torch

from regard.packing import pack, unpack
from tests.model.small import (
    INPUT_LENGTHS,
    OUTPUT_LENGTHS,
    random_ids,
    small_config,
    small_model,
    weights_of,
)
from tests.parity import loops
from tests.parity.tolerances import ANGLES, assert_close

SETTINGS = {
    "norm_position": ("post", "pre"),
    "norm": ("layer", "rms"),
    "feed_forward": ("relu", "gelu", "gelu-tanh", "swish", "swiglu", "geglu"),
    "positions": ("sinusoidal", "learned", "rotary", "none", "alibi", "t5-relative"),
    "similarity": ("scaled-dot", "dot", "cosine", "additive", "bilinear"),
    "shared_embeddings": ("none", "two-way", "three-way"),
}


def rows_in_which_every_two_values_meet(settings: dict[str, tuple[str, ...]]) -> Iterator[dict[str, object]]:
    """A few rows instead of all 2,160: any two values of two settings stand together in one of them."""
    candidates = [tuple(zip(settings, values, strict=True)) for values in product(*settings.values())]
    missing = {pair for row in candidates for pair in combinations(row, 2)}
    n_rows = 0
    while missing:
        row = max(candidates, key=lambda row: len(missing.intersection(combinations(row, 2))))
        missing.difference_update(combinations(row, 2))
        # A few switches more, in turns.
        yield dict(row) | {
            "scale_embeddings": n_rows % 2 == 0,
            "attention_bias": n_rows % 4 >= 2,
            "embedding_norm": n_rows % 3 == 0,
            "output_bias": n_rows % 5 >= 3,
            "norm_epsilon": (1e-5, 1e-2)[n_rows % 7 == 0],
        }
        n_rows += 1


ROWS = list(rows_in_which_every_two_values_meet(SETTINGS))
each_row = pytest.mark.parametrize("row", ROWS, ids=lambda row: "-".join(map(str, row.values())))


def precision(row: dict[str, object]) -> torch.dtype:
    return ANGLES if row["positions"] in ("sinusoidal", "rotary") else torch.float64


def test_the_rows_hold_every_value_of_every_setting():
    for name, values in SETTINGS.items():
        assert {row[name] for row in ROWS} == set(values)
    for name in ("scale_embeddings", "attention_bias", "embedding_norm", "output_bias"):
        assert {row[name] for row in ROWS} == {True, False}
    assert len({row["norm_epsilon"] for row in ROWS}) == 2
    assert len(ROWS) < 40


@each_row
def test_a_transformer_gives_the_loops_log_probabilities(row):
    config = small_config(**row)
    model = small_model(config)
    inputs, outputs = random_ids(INPUT_LENGTHS), random_ids(OUTPUT_LENGTHS)
    packed = pack(outputs)
    with torch.no_grad():
        states = model.decode(packed, model.encode(pack(inputs)))
        log_probs = model.output_probabilities.log_probs(states)
        assert_close(model(pack(inputs), packed).log_softmax(dim=-1), log_probs)
    weights = weights_of(model)
    for i, of_one in enumerate(unpack(log_probs, packed.boundaries)):
        expected = loops.transformer_log_probs(weights, config, inputs[i], outputs[i])
        assert_close(of_one, expected, precision(row))


@each_row
def test_a_language_model_gives_the_loops_log_probabilities(row):
    config = small_config(architecture="decoder", **row)
    model, outputs = small_model(config), random_ids(OUTPUT_LENGTHS)
    packed = pack(outputs)
    with torch.no_grad():
        log_probs = model(packed).log_softmax(dim=-1)
    for ids, of_one in zip(outputs, unpack(log_probs, packed.boundaries), strict=True):
        expected = loops.language_model_log_probs(weights_of(model), config, ids)
        assert_close(of_one, expected, precision(row))


@each_row
def test_a_classifier_gives_the_loops_log_probabilities(row):
    config = small_config(architecture="encoder", **row)
    model, inputs = small_model(config), random_ids(INPUT_LENGTHS)
    with torch.no_grad():
        log_probs = model(pack(inputs)).log_softmax(dim=-1)
    for ids, of_one in zip(inputs, log_probs, strict=True):
        expected = loops.classifier_log_probs(weights_of(model), config, ids)
        assert_close(of_one, expected, precision(row))


@pytest.mark.parametrize("label_head", ["tanh", "gelu-norm"])
def test_a_classifier_with_a_head_gives_the_loops_log_probabilities(label_head):
    config = small_config(architecture="encoder", label_head=label_head, positions="learned")
    model, inputs = small_model(config), random_ids(INPUT_LENGTHS)
    with torch.no_grad():
        log_probs = model(pack(inputs)).log_softmax(dim=-1)
    for ids, of_one in zip(inputs, log_probs, strict=True):
        assert_close(of_one, loops.classifier_log_probs(weights_of(model), config, ids), torch.float64)


@pytest.mark.parametrize("positions", ["sinusoidal", "rotary"])
def test_float32_models_are_as_near_to_the_loops_as_float32_allows(positions):
    config = small_config(positions=positions)
    model = small_model(config, torch.float32)
    inputs, outputs = random_ids(INPUT_LENGTHS), random_ids(OUTPUT_LENGTHS)
    with torch.no_grad():
        log_probs = model(pack(inputs), pack(outputs)).log_softmax(dim=-1)
    for i, of_one in enumerate(unpack(log_probs, pack(outputs).boundaries)):
        assert_close(of_one, loops.transformer_log_probs(weights_of(model), config, inputs[i], outputs[i]))
