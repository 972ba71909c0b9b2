"""Batches keep to their budget, lose no example, and hold what the model wants to see."""

from itertools import chain

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.data.batches import Budget, _cut, one_pass, plan_batches
from regard.data.batches.examples import (
    LABELLED_EXTRA,
    PAIRS_EXTRA,
    PLAIN_EXTRA,
    make_labelled_batch,
    make_pairs_batch,
    make_text_batch,
    windows,
)
from regard.data.store import Side, Store, StoredFile, StoreFacts
from regard.packing import unpack
from tests.data.stores import PAIRS, numbered, write
from tests.refusals import refused

BOS, EOS, CLS = 1, 2, 0


def store_of_lengths(lengths: np.ndarray) -> Store:
    """A store that knows its lengths, one side a row, and has no ids."""
    none = StoredFile(0, 0)
    sides = tuple(
        Side(f"side{i}", int(row.sum()), int(row.max()), int(row.argmax()), none, none)
        for i, row in enumerate(lengths)
    )
    offsets = tuple(np.concatenate([[0], np.cumsum(row)]) for row in lengths)
    return Store(None, StoreFacts("a key", 17, lengths.shape[1], sides), (), (), offsets)


pairs_of_lengths = st.lists(st.tuples(st.integers(0, 13), st.integers(0, 13)), min_size=1, max_size=97)


@given(pairs_of_lengths, st.integers(14, 61), st.integers(14, 61), st.booleans(), st.randoms())
def test_every_example_is_in_one_batch_and_no_batch_is_too_large(lengths, most_in, most_out, fixed, random):
    store = store_of_lengths(np.array(lengths).T)
    budget = Budget(tokens=(most_in + fixed, most_out + fixed), extra=PAIRS_EXTRA, fixed=fixed)
    budget.check(store)
    order = np.array(random.sample(range(len(lengths)), len(lengths)))
    plan = plan_batches(store, order, budget)
    batches = [plan[i] for i in range(len(plan))]
    assert np.array_equal(np.concatenate(batches), order)
    taken = [[sum(lengths[i][side] + 1 for i in batch) for batch in batches] for side in (0, 1)]
    assert max(taken[0]) <= most_in
    assert max(taken[1]) <= most_out
    assert min(map(len, batches)) >= 1
    shares = [
        sum(row) / (len(plan) * (most + fixed)) for row, most in zip(taken, (most_in, most_out), strict=True)
    ]
    assert plan.fill == pytest.approx(shares)


@given(pairs_of_lengths, st.integers(14, 61))
def test_batches_are_as_few_as_a_loop_that_takes_what_fits(lengths, most):
    store, expected, taken = store_of_lengths(np.array(lengths).T), 1, np.zeros(2, dtype=int)
    for pair in np.array(lengths) + 1:
        if (taken + pair).max() > most:
            expected, taken = expected + 1, np.zeros(2, dtype=int)
        taken = taken + pair
    plan = plan_batches(store, np.arange(len(lengths)), Budget(tokens=(most, most), extra=PAIRS_EXTRA))
    assert len(plan) == expected


def test_the_last_batch_is_about_as_full_as_the_others():
    store = store_of_lengths(np.full((1, 1001), 9))
    plan = plan_batches(store, np.arange(1001), Budget(tokens=(1000,), extra=PLAIN_EXTRA))
    assert len(_cut(np.cumsum(np.full((1, 1001), 10), axis=1), np.array([1000]))) == 12
    assert np.diff(plan.cuts).tolist() == [91] * 11


def test_batches_of_sentences_are_nearly_full():
    random = np.random.default_rng(5)
    inputs = np.clip(np.exp(random.normal(2.6, 0.5, 100_003)), 1, 150)
    outputs = np.clip(1.7 * inputs * np.exp(random.normal(0, 0.2, 100_003)), 1, 150)
    store = store_of_lengths(np.stack([inputs, outputs]).astype(int))
    budget = Budget.balanced(store, 25_600, PAIRS_EXTRA, fixed=True)
    assert budget.tokens[1] == 25_600
    assert budget.tokens[0] % 128 == 0
    assert budget.tokens[0] < 18_000
    assert min(plan_batches(store, np.arange(100_003), budget).fill) > 0.96


def test_a_balanced_budget_has_room_for_the_longest_of_both_sides():
    lengths = np.full((2, 1000), 5)
    lengths[0] = 50
    lengths[1, 17] = 799
    budget = Budget.balanced(store_of_lengths(lengths), 1024, PAIRS_EXTRA, fixed=True)
    assert budget.tokens == (1024, 896)
    budget.check(store_of_lengths(lengths))


def test_the_batches_of_a_million_examples_hold_each_of_them_once():
    lengths = np.random.default_rng(3).integers(1, 60, (2, 1_000_003))
    store, order = store_of_lengths(lengths), np.random.default_rng(4).permutation(1_000_003)
    plan = plan_batches(store, order, Budget(tokens=(4096, 4096), extra=PAIRS_EXTRA))
    assert np.array_equal(np.sort(np.concatenate([plan[i] for i in range(len(plan))])), np.arange(1_000_003))


def test_an_example_that_is_longer_than_a_batch_is_named(tmp_path):
    store = write(tmp_path / "store")
    Budget(tokens=(5, 6), extra=PAIRS_EXTRA, fixed=True).check(store)
    for tokens, fixed, place in [
        ((3, 9), False, "example 1 of 4: its inputs take 4 tokens, but a batch holds at most 3"),
        ((9, 4), False, "example 3 of 4: its outputs take 5 tokens"),
        ((5, 5), True, "example 3 of 4: its outputs take 5 tokens, but a batch holds at most 4"),
    ]:
        budget = Budget(tokens=tokens, extra=PAIRS_EXTRA, fixed=fixed)
        with refused("example_too_long", place):
            budget.check(store)
        with refused("example_too_long", place):
            list(one_pass(store, budget))


def test_a_side_without_a_limit_takes_no_part(tmp_path):
    store = numbered(tmp_path / "store", 101)
    budget = Budget(tokens=(31, None), extra=LABELLED_EXTRA)
    assert len(plan_batches(store, np.arange(101), budget).fill) == 1


@pytest.mark.parametrize("at_once", [7, 1000])
def test_one_pass_goes_through_the_store_in_order(tmp_path, monkeypatch, at_once):
    monkeypatch.setattr("regard.data.batches.PASS", at_once)
    store = numbered(tmp_path / "store", 101)
    batches = list(one_pass(store, Budget(tokens=(31, 31), extra=PAIRS_EXTRA)))
    assert np.array_equal(np.concatenate(batches), np.arange(101))


# --- what a batch holds -----------------------------------------------------------------------------------


def as_lists(packed) -> list[list[int]]:
    return [one.tolist() for one in unpack(packed.ids_N, packed.boundaries)]


@given(st.permutations(range(len(PAIRS))), st.integers(1, len(PAIRS)))
def test_a_batch_of_pairs(tmp_path_factory, order, n):
    store = write(tmp_path_factory.mktemp("stores") / "store")
    chosen = [PAIRS[i] for i in order[:n]]
    inputs, outputs, targets_T, counted_T, n_tokens = make_pairs_batch(
        store, np.array(order[:n]), bos=BOS, eos=EOS
    )
    assert as_lists(inputs) == [[*source, EOS] for source, _ in chosen]
    assert as_lists(outputs) == [[BOS, *target] for _, target in chosen]
    assert targets_T.tolist() == [i for _, target in chosen for i in (*target, EOS)]
    assert counted_T is None
    assert n_tokens == (len(inputs.ids_N), len(outputs.ids_N))
    assert inputs.ids_N.dtype == outputs.ids_N.dtype == targets_T.dtype == torch.int64


def test_a_batch_of_fixed_size(tmp_path):
    store, indices = write(tmp_path / "store"), np.array([0, 2])
    free = make_pairs_batch(store, indices, bos=BOS, eos=EOS)
    filled = make_pairs_batch(store, indices, bos=BOS, eos=EOS, fill_to=(11, 13))
    assert filled.n_tokens == free.n_tokens == (6, 8)
    assert torch.equal(filled.inputs.ids_N[:6], free.inputs.ids_N)
    assert torch.equal(filled.outputs.ids_N[:8], free.outputs.ids_N)
    assert torch.equal(filled.targets_T[:8], free.targets_T)
    assert len(filled.inputs.ids_N) == 11
    assert len(filled.outputs.ids_N) == len(filled.targets_T) == 13
    assert filled.counted_T.tolist() == [True] * 8 + [False] * 5
    assert len(filled.inputs) == len(filled.outputs) == 3


def test_whatever_is_planned_for_a_fixed_size_can_be_filled_to_it(tmp_path):
    store = numbered(tmp_path / "store", 211)
    budget = Budget(tokens=(9, 9), extra=PAIRS_EXTRA, fixed=True)
    for indices in one_pass(store, budget):
        batch = make_pairs_batch(store, indices, bos=BOS, eos=EOS, fill_to=budget.tokens)
        assert len(batch.inputs.ids_N) == len(batch.outputs.ids_N) == 9


def test_a_batch_of_texts(tmp_path):
    store = write(tmp_path / "store", [[[BOS, 5, 6, 7]], [[BOS, EOS]], [[7, 8, EOS]]], sides=("text",))
    batch = make_text_batch(store, np.array([2, 1, 0]))
    assert as_lists(batch.outputs) == [[7, 8], [BOS], [BOS, 5, 6]]
    assert batch.targets_T.tolist() == [8, EOS, EOS, 5, 6, 7]
    filled = make_text_batch(store, np.array([2]), fill_to=(5,))
    assert filled.counted_T.tolist() == [True, True, False, False, False]
    assert filled.n_targets == 2


def test_a_batch_of_labelled_texts(tmp_path):
    store = write(tmp_path / "store", [([5, 6], [3]), ([], [4]), ([7], [0])], sides=("inputs", "label"))
    batch = make_labelled_batch(store, np.array([1, 0]), cls=CLS)
    assert as_lists(batch.inputs) == [[CLS], [CLS, 5, 6]]
    assert batch.labels_B.tolist() == [4, 3]
    assert batch.n_targets == 2


@given(st.lists(st.lists(st.integers(3, 16), max_size=23), max_size=7), st.integers(1, 11))
def test_every_token_of_a_document_is_asked_for_once(documents, longest):
    parts = list(windows(map(np.array, documents), longest, bos=BOS, eos=EOS))
    asked = [i for part in parts for i in part[1:].tolist()]
    assert asked == [*chain.from_iterable([*document, EOS] for document in documents)]
    assert all(2 <= len(part) <= longest + 1 for part in parts)
    read = [i for part in parts for i in part[:-1].tolist()]
    assert read == [*chain.from_iterable([BOS, *document] for document in documents)]
    assert len(parts) == sum(-(-(len(document) + 1) // longest) for document in documents)
