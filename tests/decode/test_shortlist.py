"""A shortlist has what pairs teach, what is frequent and the input itself; a file keeps it."""

from __future__ import annotations

import numpy as np
import pytest
from safetensors.numpy import load, save

from regard.decode.shortlist import Shortlist, learn, read_shortlist
from tests.refusals import refused

VOCABULARY, EOS, TAG, OTHER_TAG = 499, 2, 3, 4
WORDS = range(5, 250)


def translation(word):
    """The token that stands for a word of the first language."""
    return word + 249


@pytest.fixture(scope="module")
def pairs():
    """Sentences in any order, with a frequent token that has no counterpart, both ways."""
    rng = np.random.default_rng(3)
    found = []
    for _ in range(700):
        words = rng.choice(list(WORDS), size=5, replace=False)
        written = [translation(word) for word in rng.permutation(words)]
        found += [([TAG, *words.tolist()], [*written, 498]), ([OTHER_TAG, *written], words.tolist())]
    return found


@pytest.fixture(scope="module")
def shortlist(pairs):
    return learn(pairs, VOCABULARY, special=[0, 1, EOS], tags=[TAG, OTHER_TAG], spelling=[495, 496])


def test_candidates_are_learned_from_pairs(shortlist):
    found = [shortlist.candidates([[TAG, word]]) for word in WORDS]
    assert all(translation(word) in ids for word, ids in zip(WORDS, found, strict=True))
    assert max(map(len, found)) < VOCABULARY / 4


def test_frequent_tokens_belong_to_their_language(shortlist):
    assert 498 in shortlist.candidates([[TAG]])
    assert 498 not in shortlist.candidates([[OTHER_TAG]])


def test_a_token_may_be_copied_and_a_byte_may_become_any_byte(shortlist):
    assert {0, 1, EOS, 333} <= {*shortlist.candidates([[333]]).tolist()}
    assert {495, 496} <= {*shortlist.candidates([[495]]).tolist()}
    assert 496 not in shortlist.candidates([[494]])


def test_a_batch_has_the_candidates_of_all_its_inputs(shortlist):
    inputs = [[TAG, 7], [TAG, 8, 9]]
    each = [shortlist.candidates([one]).tolist() for one in inputs]
    assert shortlist.candidates(inputs).tolist() == sorted({*each[0], *each[1]})


def test_without_tags_frequent_tokens_are_always_there(pairs):
    found = learn([(read[1:], written) for read, written in pairs[::2]], VOCABULARY, special=[EOS])
    assert 498 in found.always
    assert translation(7) in found.candidates([[7]])


def test_pairs_within_the_limit_are_taken_from_all_over():
    in_order = [([TAG, word], [translation(word)]) for word in WORDS for _ in range(8)]
    few = learn(in_order, VOCABULARY, special=[EOS], tags=[TAG], most_cells=len(in_order) * 3 // 2)
    assert all(translation(word) in few.candidates([[TAG, word]]) for word in WORDS)


def test_everything_leaves_nothing_out():
    assert Shortlist.of_everything(7).candidates([[3]]).tolist() == [*range(7)]


def test_a_file_keeps_it(shortlist):
    kept = Shortlist.from_bytes(shortlist.to_bytes(), VOCABULARY)
    assert kept.as_lists == shortlist.as_lists
    assert kept.always.tolist() == shortlist.always.tolist()


@pytest.mark.parametrize("damage", ["cut", "ids", "counts", "names", "vocabulary"])
def test_a_damaged_file_is_refused(shortlist, damage, tmp_path):
    arrays, size = load(shortlist.to_bytes()), VOCABULARY
    if damage == "ids":
        arrays["ids"][0] = VOCABULARY
    elif damage == "counts":
        arrays["counts"][0] += 1
    elif damage == "names":
        arrays["more"] = arrays.pop("always")
    elif damage == "vocabulary":
        size += 1
    content = save(arrays)[: 40 if damage == "cut" else None]
    with refused("damaged_file", "shortlist"):
        read_shortlist(content, size, tmp_path)
