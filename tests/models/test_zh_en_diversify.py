"""What a teacher's outputs make of the examples of both directions."""

import importlib

import numpy as np
import pytest

from regard.data.store.writing import write_store
from regard.tasks.pair_preparation import SIDES
from tests.architecture.sources import ROOT

ZH, EN = 4, 5
"""Tags: which language is wanted."""


@pytest.fixture(scope="module")
def diversify():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "models" / "zh-en"))
        yield importlib.import_module("diversify")


@pytest.fixture
def store(tmp_path):
    """One pair, there and back, that comes twice."""
    pair = [([EN, 10, 11], [20, 21]), ([ZH, 20, 21], [10, 11])] * 2
    examples = [tuple(np.array(side, np.uint16) for side in example) for example in pair]
    return write_store(tmp_path / "store", examples, sides=SIDES, key="key", vocab_size=50)


def key(*ids):
    return np.array(ids, np.uint16).tobytes()


def test_each_example_stands_there_as_it_was_with_the_output_and_the_other_way_round(diversify, store):
    outputs = {key(EN, 10, 11): np.array([22, 23, 24], np.uint16)}
    found = [tuple(side.tolist() for side in each) for each in diversify.threefold(store, outputs, 256)]
    translated = [([EN, 10, 11], [20, 21]), ([EN, 10, 11], [22, 23, 24]), ([ZH, 22, 23, 24], [10, 11])]
    assert found == [*translated, ([ZH, 20, 21], [10, 11])] * 2  # what has no translation stays alone


def test_what_is_no_translation_by_its_length_is_left_out(diversify, store):
    outputs = {key(EN, 10, 11): np.arange(30, 47, dtype=np.uint16)}
    assert len(list(diversify.threefold(store, outputs, 256))) == len(store)
    outputs = {key(EN, 10, 11): np.arange(30, 46, dtype=np.uint16)}
    assert len(list(diversify.threefold(store, outputs, 256))) == len(store) + 4
    assert len(list(diversify.threefold(store, outputs, 16))) == len(store)


def test_every_input_is_translated_once(diversify, store):
    inputs = diversify.distinct_inputs(store)
    assert sorted(each.tolist() for each in inputs) == [[ZH, 20, 21], [EN, 10, 11]]
