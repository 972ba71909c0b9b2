import json
from itertools import pairwise

import numpy as np
import pytest

from regard.data.cleaning import clean
from regard.data.cleaning.holding_out import HeldOutSizes
from regard.data.cleaning.report import TOO_MANY_TOKENS, Lengths, make_report
from regard.data.reading import parallel_corpus


@pytest.fixture
def cleaned(tmp_path):
    pairs = [(f"猫 {i}", f"cat {i}\r" if i == 4 else f"cat {i}") for i in range(100)]
    pairs[10] = ("", "x")
    pairs[11:16] = [pairs[0]] * 5
    for side, name in enumerate(("a.zh", "a.en")):
        (tmp_path / name).write_bytes("".join(pair[side] + "\n" for pair in pairs).encode())
    return clean(
        parallel_corpus(tmp_path / "a.zh", tmp_path / "a.en"), split=HeldOutSizes(validation=4, test=6)
    )


def examples(cleaned):
    """As many tokens as the number of the row has digits, and one more; on the other side 1."""
    for zh, _ in cleaned.rows():
        yield np.zeros(len(zh.split()[1]) + 1, np.uint16), np.zeros(1, np.uint16)


def test_examples_pass_and_are_measured(cleaned):
    made = make_report(cleaned, ["zh", "en"], vocab_size=400)
    passed = list(made.measure(examples(cleaned), cleaned, max_tokens=3))
    assert len(passed) == made.training == 84
    assert made.lengths[0].tokens == sum(len(a) for a, _ in passed)
    assert made.lengths[1].tokens == 84
    facts = made.as_dict()
    assert (facts["lines"], facts["training"], facts["validation"], facts["test"]) == (100, 84, 4, 6)
    assert facts["lines"] == facts["training"] + 4 + 6 + sum(d["lines"] for d in facts["dropped"].values())
    assert json.loads(json.dumps(facts)) == facts


def test_examples_with_too_many_tokens_are_dropped_with_their_lines(cleaned):
    made = make_report(cleaned, ["zh", "en"])
    passed = list(made.measure(examples(cleaned), cleaned, max_tokens=2))
    short = [zh for zh, _ in cleaned.rows() if len(zh) == 3]
    assert len(passed) == len(short) == made.training == made.lengths[0].sequences
    entry = made.as_dict()["dropped"][TOO_MANY_TOKENS]
    assert entry["lines"] == 84 - len(short)
    first = next(zh for zh, _ in cleaned.rows() if len(zh) == 4)
    assert entry["first"][0] == f"{cleaned.corpus.names[0]}:{int(first.split()[1]) + 1}"
    assert len(entry["first"]) == 3


def test_the_text_says_what_happened_and_where(cleaned):
    made = make_report(cleaned, ["zh", "en"], vocab_size=400)
    list(made.measure(examples(cleaned), cleaned, max_tokens=3))
    text = made.as_text()
    zh = cleaned.corpus.names[0]
    assert "100 lines; 84 for training, 4 for validation, 6 for test (split off)" in text
    lines = [" ".join(line.split()) for line in text.split("\n")]
    assert f"empty 1 1.00% {zh}:11" in lines
    assert f"duplicate 5 5.00% {zh}:12, 13, 14, …" in lines
    assert f"carriage return 1 {cleaned.corpus.names[1]}:5" in lines
    assert "400 subwords" in lines
    assert "█" in text
    assert max(map(len, text.split("\n")[1:])) < 160


def test_given_sets_are_said_to_be_given(cleaned):
    made = make_report(cleaned, ["zh", "en"], validation=50, test=70)
    assert "50 for validation, 70 for test (given)" in made.as_text()
    assert made.as_dict()["split_off"] == 0


def test_lengths_are_counted():
    lengths = Lengths()
    lengths.add(np.array([1, 2, 2, 3]))
    lengths.add(np.array([10]))
    lengths.add(np.array([], np.int64))
    assert (lengths.sequences, lengths.tokens) == (5, 18)
    assert [lengths.quantile(share) for share in (0.2, 0.5, 0.95, 1)] == [1, 2, 10, 10]
    assert lengths.as_dict()["longest"] == 10
    assert Lengths().as_dict() == {"tokens": 0}


@pytest.mark.parametrize("longest", [1, 9, 60, 1000, 30_000])
def test_bins_cover_every_length_once(longest):
    lengths = Lengths()
    lengths.add(np.arange(1, longest + 1))
    bins = lengths.bins()
    assert len(bins) <= 12
    assert sum(count for *_, count in bins) == longest
    assert bins[0][0] == 0
    assert all(before[1] + 1 == after[0] for before, after in pairwise(bins))
    assert bins[-1][1] >= longest


def test_one_very_long_sequence_does_not_squeeze_the_others():
    lengths = Lengths()
    lengths.add(np.concatenate([np.random.default_rng(1).integers(5, 50, 2000), [4000]]))
    assert sum(count > 0 for *_, count in lengths.bins()) >= 10
    assert lengths.bins()[-1][1:] == (4000, 1)
