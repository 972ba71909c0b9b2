"""Embeddings and positions (3.4, 3.5), on numbers one can do by hand."""

import math

import pytest
import torch

from regard.model.build import build
from regard.model.embedding import Embedding
from regard.model.positional_encoding import LearnedPositions, SinusoidalPositions, rotate, sinusoids
from regard.packing import Boundaries, pack
from tests.model import small
from tests.model.small import random_ids, small_config, small_model
from tests.parity import loops
from tests.parity.tolerances import assert_close

D = 2 * 3


def test_sinusoids_of_position_two_written_out():
    expected = [f(2 / 10000 ** (2 * i / D)) for i in range(3) for f in (math.sin, math.cos)]
    assert_close(sinusoids(torch.tensor([2]), D)[0], expected)


def test_sinusoids_are_those_of_the_loops_and_no_two_positions_are_alike():
    table = sinusoids(torch.arange(211), D)
    assert_close(table, loops.sinusoids(211, D))
    assert torch.unique(table, dim=0).shape[0] == 211


def test_beyond_its_table_sinusoidal_positions_are_worked_out_anew():
    boundaries = Boundaries.of_lengths((11, 3))
    inside, beyond = (
        SinusoidalPositions(small_config(max_length=n), causal=False)(boundaries) for n in (11, 7)
    )
    assert torch.equal(inside, beyond)
    assert_close(beyond[11:], loops.sinusoids(3, small.D))


def test_a_model_with_sinusoids_reads_sequences_longer_than_its_max_length():
    ids = random_ids((13, 2))
    short, long = (small_model(architecture="decoder", max_length=n) for n in (5, 17))
    short.load_state_dict(long.state_dict())
    with torch.no_grad():
        assert_close(short(pack(ids)), long(pack(ids)), torch.float32)


def test_the_table_of_sinusoids_is_not_saved_with_the_weights():
    assert not any("table" in name for name in small_model().state_dict())


def test_learned_positions_start_over_in_each_sequence():
    positions = LearnedPositions(small_config(max_length=7), causal=False)
    assert torch.equal(positions(Boundaries.of_lengths((3, 2))), positions.weight[[0, 1, 2, 0, 1]])


class TestRotation:
    def test_a_pair_turns_by_its_position(self):
        x = torch.tensor([[[1.0, 0.0, 1.0, 0.0]]])
        turned = rotate(x, torch.tensor([3]))
        second = 3 / 10000 ** (2 / 4)
        assert_close(turned[0, 0], [math.cos(3), math.sin(3), math.cos(second), math.sin(second)])

    def test_at_position_zero_nothing_turns_and_lengths_never_change(self):
        x = torch.randn(5, 3, D)
        turned = rotate(x, torch.arange(5))
        assert_close(turned[0], x[0])
        assert_close(turned.norm(dim=-1), x.norm(dim=-1))

    def test_products_depend_on_the_distance_alone(self):
        q, k = torch.randn(1, 1, D).expand(7, 1, D), torch.randn(1, 1, D).expand(7, 1, D)
        near, far = (
            rotate(q, at + torch.arange(7))[:, 0] @ rotate(k, at + torch.arange(7))[:, 0].t()
            for at in (0, 101)
        )
        assert_close(near, far)
        assert_close(near.diagonal(2), near.diagonal(2)[:1].expand(5))

    def test_rotation_turns_queries_and_keys_but_not_what_is_added_to_embeddings(self):
        model = small_model(positions="rotary")
        boundaries = Boundaries.of_lengths((3,))
        assert model.input_positions(boundaries) is None
        assert model.output_positions(boundaries) is None
        layer = model.decoder.layers[0]
        assert layer.masked_multi_head_attention.turn is rotate
        assert layer.multi_head_attention.turn is None


class TestEmbedding:
    @pytest.mark.parametrize("scaled", [True, False])
    def test_it_is_the_row_of_the_id_times_the_root_of_d_model(self, scaled):
        embedding = Embedding(11, D, scaled=scaled)
        ids = torch.tensor([7, 0, 7])
        assert_close(embedding(ids), embedding.weight[ids] * (math.sqrt(D) if scaled else 1.0))

    @pytest.mark.parametrize(("sharing", "n_tables"), [("none", 3), ("two-way", 2), ("three-way", 1)])
    def test_shared_weights_are_one_and_stay_one_in_training(self, sharing, n_tables):
        model = small_model(shared_embeddings=sharing)
        boxes = (model.input_embedding, model.output_embedding, model.output_probabilities)
        assert len({id(box.weight) for box in boxes}) == n_tables
        names = [name for name, _ in model.named_parameters() if "embedding" in name or "output_prob" in name]
        assert len(names) == n_tables

    def test_a_decoder_alone_shares_its_two_tables_either_way(self):
        for sharing in ("two-way", "three-way"):
            model = small_model(architecture="decoder", shared_embeddings=sharing)
            assert model.output_probabilities.weight is model.output_embedding.weight


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary", "alibi", "t5-relative", "none"])
@pytest.mark.parametrize("architecture", ["encoder-decoder", "decoder", "encoder"])
def test_a_model_made_on_the_meta_device_has_every_table_after_loading(positions, architecture):
    config = small_config(positions=positions, architecture=architecture)
    model = small_model(config, dtype=torch.float32)
    with torch.device("meta"):
        empty = build(config)
    before = {name: buffer.is_meta for name, buffer in empty.named_buffers()}
    assert all(before.values())
    filled = empty.to_empty(device="cpu").eval()
    filled.load_state_dict(model.state_dict())
    for name, buffer in model.named_buffers():
        assert torch.equal(filled.get_buffer(name), buffer), name
    packs = [pack(random_ids((7, 2)))] * (2 if architecture == "encoder-decoder" else 1)
    with torch.no_grad():
        assert torch.equal(filled(*packs), model(*packs))


def test_tables_follow_the_dtype_and_device_of_the_model():
    model = small_model(positions="sinusoidal", dtype=torch.float32)
    table = model.input_positions.table
    assert torch.equal(model.double().input_positions.table, table.double())
    assert model.to("meta").input_positions.table.is_meta
