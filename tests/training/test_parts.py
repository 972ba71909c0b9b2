"""However a step is divided, every example is in one part of one process."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.data.batches import Budget
from regard.data.batches.examples import PAIRS_EXTRA, make_pairs_batch
from regard.data.batches.stream import Division
from regard.model.transformer import Transformer
from regard.packing import unpack
from regard.tasks.objectives import NextToken
from regard.tasks.pairs import PairsLesson
from tests.data.stores import numbered, write
from tests.training.copying import backwards, config

FREE = Budget(tokens=(1000, 1000), extra=PAIRS_EXTRA)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Ids tell which example it is; 0, 1 and 2 are never a first one."""
    return numbered(tmp_path_factory.mktemp("sharing") / "store", 61, longest=11)


def lesson(store):
    return PairsLesson(store, store, bos=0, eos=0)


def shares(store, indices, world_size, n_parts, budget=FREE):
    longest = tuple(side.longest for side in store.facts.sides)
    return [
        Division(
            lesson=lesson(store),
            budget=budget,
            longest=longest,
            n_parts=n_parts,
            rank=rank,
            world_size=world_size,
        )(store, indices)
        for rank in range(world_size)
    ]


def examples_in(batch):
    """The numbers of the examples that count in a batch, from its targets."""
    if batch.n_tokens[1] == 0:
        return []
    pieces = unpack(batch.targets_T[: batch.outputs.boundaries.n_tokens], batch.outputs.boundaries)
    kept = pieces if batch.counted_T is None else pieces[:-1]
    return [int(piece[0]) for piece in kept]


@given(
    n=st.integers(1, 60),
    world_size=st.integers(1, 7),
    n_parts=st.integers(1, 9),
    fixed=st.booleans(),
    seed=st.integers(0, 99),
)
def test_every_example_is_in_one_part_of_one_process(store, n, world_size, n_parts, fixed, seed):
    budget = Budget(tokens=(1024, 1024), extra=PAIRS_EXTRA, fixed=fixed)
    indices = 1 + np.random.default_rng(seed).permutation(60)[:n]
    shared = shares(store, indices, world_size, n_parts, budget)
    dealt = [i for share in shared for batch in share.batches for i in examples_in(batch)]
    assert sorted(dealt) == sorted(indices.tolist())
    for share in shared:
        assert np.array_equal(share.indices, indices)
        assert share.wanted_parts == n_parts


@given(n=st.integers(1, 60), world_size=st.integers(1, 7), n_parts=st.integers(1, 9))
def test_all_processes_agree_on_tokens_and_on_the_number_of_parts(store, n, world_size, n_parts):
    """A sharded process that had a part more than the others would wait for them for ever."""
    indices = np.arange(1, n + 1)
    shared = shares(store, indices, world_size, n_parts)
    counted = sum(batch.n_tokens[1] for share in shared for batch in share.batches)
    assert {share.n_targets for share in shared} == {counted}
    (taken,) = {len(share.batches) for share in shared}
    assert taken == min(n_parts, -(-n // world_size))


def test_shares_are_about_equally_heavy(store):
    shared = shares(store, np.arange(1, 61), 3, 1)
    tokens = [share.batches[0].n_tokens[1] for share in shared]
    assert max(tokens) - min(tokens) <= 11


@pytest.mark.parametrize(("world_size", "n_parts"), [(1, 1), (2, 1), (1, 4), (3, 2)])
def test_parts_of_fixed_size_have_one_shape(tmp_path, world_size, n_parts):
    store = numbered(tmp_path / "store", 900, longest=19)
    budget = Budget.balanced(store, 2048, PAIRS_EXTRA, fixed=True)
    shapes = set()
    for indices in np.array_split(np.random.default_rng(3).permutation(900), 6):
        for share in shares(store, indices, world_size, n_parts, budget):
            shapes |= {(len(batch.inputs.ids_N), len(batch.targets_T)) for batch in share.batches}
    assert len(shapes) == 1
    (shape,) = shapes
    assert all(size % 128 == 0 for size in shape)
    assert all(size <= most for size, most in zip(shape, budget.tokens, strict=True))


def test_a_short_last_step_and_idle_processes_have_that_shape_too(store):
    budget = Budget(tokens=(1024, 1024), extra=PAIRS_EXTRA, fixed=True)
    shapes = {
        len(batch.targets_T)
        for n in (1, 2, 5, 60)
        for share in shares(store, np.arange(1, n + 1), 3, 2, budget)
        for batch in share.batches
    }
    assert len(shapes) == 1


def test_a_part_that_is_heavier_than_planned_gets_a_size_of_its_own(tmp_path):
    """One side says nothing of the other: all the long inputs may meet in one hand."""
    pairs = [([3] * (120 if i % 4 in (0, 3) else 1), [4] * (1 + i)) for i in range(40)]
    store = write(tmp_path / "store", pairs)
    budget = Budget(tokens=(2560, 2560), extra=PAIRS_EXTRA, fixed=True)
    heavy, light = shares(store, np.arange(40), 2, 1, budget)
    planned = Division(lesson=lesson(store), budget=budget, longest=(120, 40), rank=0, world_size=2).sizes(1)
    assert len(light.batches[0].inputs.ids_N) == planned[0]
    (batch,) = heavy.batches
    assert len(batch.inputs.ids_N) > planned[0]
    assert len(batch.inputs.ids_N) % 128 == 0
    assert batch.n_tokens[0] == 20 * 121


@pytest.mark.parametrize("fixed", [False, True])
def test_idle_processes_count_for_nothing(tmp_path, fixed):
    store = backwards(tmp_path / "store", 5, 3)
    budget = Budget(tokens=(256, 256), extra=PAIRS_EXTRA, fixed=fixed)
    model = Transformer(config("model.dropout=0.0").model)
    objective = NextToken(model, 0.1).train()
    working, idle = shares(store, np.arange(1), 2, 1, budget)
    assert idle.batches[0].n_tokens == (0, 0)
    smoothed, told = objective(idle.batches[0])
    smoothed.backward()
    assert told.tolist() == [0.0, 0.0, 0.0]
    assert all(weight.grad is None or not weight.grad.any() for weight in model.parameters())
    alone = make_pairs_batch(store, np.arange(1), bos=0, eos=0)
    torch.testing.assert_close(objective(working.batches[0])[0], objective(alone)[0])
    assert working.n_targets == idle.n_targets == alone.n_tokens[1]
