"""What a step needs, estimated and measured; and a step that does not fit, taken in parts that do."""

import json

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.bundle import weights_hash
from regard.config import ModelConfig
from regard.data.batches.examples import PairsBatch
from regard.model.transformer import Transformer
from regard.packing import pack
from regard.tasks.objectives import NextToken
from regard.training.distributed.world import World
from regard.training.loop import TrainingLoop
from regard.training.memory import bytes_per_token, parts_that_fit, parts_within
from regard.training.optimizers.optimizer import Optimizer
from tests.refusals import refused
from tests.training.copying import config, data

CPU = torch.device("cpu")
GIB = 1 << 30


def model_of(**changes):
    sizes = {"vocab_size": 101, "d_model": 64, "n_heads": 4, "d_ff": 256, "encoder_layers": 2}
    return ModelConfig(**sizes | {"decoder_layers": 2, "max_length": 256} | changes)


def kept_for_the_backward_pass(settings, dtype, lengths):
    """Bytes of all that autograd holds on to, weights left out, divided by the tokens of a side."""
    model = Transformer(settings)
    model.compute_dtype = dtype
    sides = [pack([torch.randint(settings.vocab_size, (n,)).tolist() for n in lengths]) for _ in range(2)]
    n_tokens = sum(lengths)
    targets_T = torch.randint(settings.vocab_size, (n_tokens,))
    weights = {weight.untyped_storage().data_ptr() for weight in model.parameters()}
    held = {}

    def hold(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            held[storage.data_ptr()] = storage
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(hold, lambda tensor: tensor):
        NextToken(model, 0.1).train()(PairsBatch(*sides, targets_T, None, (n_tokens, n_tokens)))
    return sum(storage.nbytes() for storage in held.values()) / n_tokens


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"feed_forward": "swiglu", "norm": "rms", "norm_position": "pre", "positions": "rotary"},
        {"feed_forward": "gelu", "d_k": 32, "d_v": 48},
        {"similarity": "cosine", "dropout": 0.0},
    ],
    ids=["paper", "modern", "wide-heads", "cosine"],
)
def test_the_estimate_is_no_lower_than_the_truth_and_not_far_above_it(changes, dtype):
    lengths = np.random.default_rng(5).integers(5, 60, 100).tolist()
    measured = kept_for_the_backward_pass(model_of(**changes), dtype, lengths)
    assert measured <= bytes_per_token(model_of(**changes), dtype, CPU) <= 3 * measured


def test_the_estimate_holds_for_the_longest_rows_that_attention_writes_out():
    measured = kept_for_the_backward_pass(model_of(n_heads=8), torch.float32, [250] * 12)
    assert measured <= bytes_per_token(model_of(n_heads=8), torch.float32, CPU)


@given(n=st.integers(1, 10**6), more=st.integers(0, 10**6), free=st.integers(0, 64 * GIB))
def test_more_tokens_or_less_room_never_take_fewer_parts(n, more, free):
    def parts(free, n):
        return parts_within(free, model_of(), 10**7, torch.float32, n, CPU)

    assert 1 <= parts(free, n) <= parts(free, n + more)
    assert parts(free + more, n) <= parts(free, n)


@pytest.mark.parametrize(
    "larger",
    [
        {"d_model": 128},
        {"d_ff": 512},
        {"encoder_layers": 5},
        {"decoder_layers": 5},
        {"feed_forward": "geglu"},
    ],
)
def test_a_larger_model_never_takes_fewer_parts(larger):
    small, large = (
        parts_within(4 * GIB, model_of(**changes), 10**6, torch.float32, 10**6, CPU)
        for changes in ({}, larger)
    )
    assert small < large
    heavier = parts_within(4 * GIB, model_of(), 10**8, torch.float32, 10**6, CPU)
    assert small < heavier


def test_each_part_fits_into_what_is_free():
    n_tokens, free, n_parameters = 3_000_000, 8 * GIB, 10**7
    n_parts = parts_within(free, model_of(), n_parameters, torch.bfloat16, n_tokens, CPU)
    assert n_parts > 1
    of_part = n_tokens / n_parts * bytes_per_token(model_of(), torch.bfloat16, CPU)
    assert of_part + 16 * n_parameters < free


def test_a_small_step_is_taken_whole_here():
    assert parts_that_fit(model_of(), 10**5, torch.float32, 10, World(CPU)) == 1


# --- steps that do not fit --------------------------------------------------------------------------------


def room_for(monkeypatch, n_tokens):
    """From here on the device has room for batches of so many tokens."""
    forward = NextToken.forward

    def limited(self, batch):
        if self.training and batch.outputs.boundaries.n_tokens > n_tokens:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        return forward(self, batch)

    monkeypatch.setattr(NextToken, "forward", limited)


def journal(folder):
    return [json.loads(line) for line in (folder / "journal.jsonl").read_text().splitlines()]


def short_run(folder, **options):
    settings = config("model.dropout=0.0", "training.max_steps=12")
    return TrainingLoop(folder, settings, data(folder.parent / "data"), **options)


def test_a_step_that_does_not_fit_is_taken_in_parts_and_learns_the_same(tmp_path, monkeypatch):
    whole = short_run(tmp_path / "whole")
    whole.train()
    room_for(monkeypatch, 90)
    cut = short_run(tmp_path / "cut")
    cut.train()
    losses = [
        [entry["loss"] for entry in journal(folder) if "loss" in entry]
        for folder in (tmp_path / "whole", tmp_path / "cut")
    ]
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-4)
    for one, other in zip(cut.model.parameters(), whole.model.parameters(), strict=True):
        torch.testing.assert_close(one, other, atol=1e-3, rtol=1e-3)
    messages = [entry["message"] for entry in journal(tmp_path / "cut") if "message" in entry]
    assert [message.split()[-2:] for message in messages] == [["2", "parts"], ["4", "parts"]]
    assert cut.progress.parts == 4


def test_a_run_that_was_cut_up_goes_on_so(tmp_path, monkeypatch):
    room_for(monkeypatch, 90)
    short_run(tmp_path / "run").train()
    assert short_run(tmp_path / "run").progress.parts == 4


def test_an_example_that_does_not_fit_alone_is_told(tmp_path, monkeypatch):
    room_for(monkeypatch, 2)
    run = short_run(tmp_path / "run")
    with refused("out_of_memory", "training.batch_tokens"):
        run.train()
    assert all(weight.grad is None for weight in run.model.parameters())


def test_a_step_that_has_begun_to_change_weights_is_not_taken_again(tmp_path, monkeypatch):
    run = short_run(tmp_path / "run")
    before = weights_hash(run.model)

    def no_room(*_):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(Optimizer, "step", no_room)
    with refused("out_of_memory", "updating the weights"):
        run.train()
    assert run.progress.parts == 1
    assert weights_hash(run.model) == before
