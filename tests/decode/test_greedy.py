"""Greedy search over a step whose log-probabilities are written down by hand."""

import math

import torch

from regard.decode.greedy import Hypothesis, greedy
from regard.model.transformer import Transformer
from regard.packing import pack
from tests.train.copying import config

BOS, EOS = 1, 0
# After the token in front, how likely the next ones (0 ends) are.
TABLE = {1: [0.1, 0.0, 0.6, 0.3], 2: [0.2, 0.0, 0.3, 0.5], 3: [0.7, 0.0, 0.2, 0.1]}


def by_table(last_R, state):
    rows = [[math.log(p) if p else -math.inf for p in TABLE[int(i)]] for i in last_R]
    return torch.tensor(rows), state + 1


def test_it_takes_the_likeliest_token_until_the_end():
    (found,) = greedy(by_table, 0, 1, bos=BOS, eos=EOS, limits=[9])
    assert found.ids == (2, 3)
    assert found.finished
    assert math.isclose(found.log_prob, math.log(0.6 * 0.5 * 0.7), rel_tol=1e-6)


def test_a_row_stops_at_its_own_limit_and_says_that_it_did_not_end():
    cut, whole = greedy(by_table, 0, 2, bos=BOS, eos=EOS, limits=[1, 9])
    assert cut == Hypothesis((2,), cut.log_prob, finished=False)
    assert whole.finished


def test_rows_that_leave_the_batch_change_nothing_for_the_others():
    settings = config("model.dropout=0.0")
    torch.manual_seed(3)
    model = Transformer(settings.model).eval()
    sources = [[5, 6, 7, 2], [8, 2], [9, 10, 11, 12, 5, 2], [3, 2]]

    def decode(keep):
        with torch.no_grad():
            cache = model.start(model.encode(pack(sources)), capacity=12)
            return greedy(model.step, cache, 4, bos=1, eos=2, limits=[3, 11, 7, 1], keep=keep)

    together, leaving = decode(None), decode(lambda cache, rows: cache.keep(rows))
    assert [h.ids for h in together] == [h.ids for h in leaving]
    for one, other in zip(together, leaving, strict=True):
        assert math.isclose(one.log_prob, other.log_prob, rel_tol=1e-4, abs_tol=1e-5)
    assert [len(h.ids) <= limit for h, limit in zip(leaving, [3, 11, 7, 1], strict=True)] == [True] * 4
