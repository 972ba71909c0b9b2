"""The stream gives the same batches whoever reads them, and from wherever it goes on."""

import gc
import json
import subprocess
import sys
import threading
import time
from itertools import count, islice
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data.batches import Budget
from regard.data.batches import stream as streaming
from regard.data.batches.examples import PAIRS_EXTRA, make_pairs_batch
from regard.data.batches.stream import BatchStream, Prefetch
from regard.data.store import Store
from tests.data.stores import numbered, write
from tests.refusals import refused

ROOT = Path(__file__).parents[2]
N = 211
LONG = 600
"""Seconds after which something hangs, and is not only slow, however busy the machine."""
FREE = Budget(tokens=(31, 29), extra=PAIRS_EXTRA)
FIXED = Budget(tokens=(31, 29), extra=PAIRS_EXTRA, fixed=True)
budgets = pytest.mark.parametrize("budget", [FREE, FIXED], ids=["free", "fixed"])


@pytest.fixture(scope="module", autouse=True)
def _small_windows():
    """Seven examples a block, and five windows an epoch, as a store of a million has at full size."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streaming, "BLOCK_TOKENS", 37)
        patch.setattr(streaming, "WINDOW_TOKENS", (211, 211))
        patch.setattr(streaming, "POOL_BATCHES", 2)
        yield


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return numbered(tmp_path_factory.mktemp("stores") / "store", N)


def numbers(part: Store, indices: np.ndarray) -> list[int]:
    """Which examples a batch has: their ids tell."""
    return [int(part[i][0][0]) for i in indices]


def stream_of(store, **other) -> BatchStream[list[int]]:
    return BatchStream(store, numbers, **({"budget": FREE, "seed": 3, "prefetch": 0} | other))


def first(n: int, store, **other) -> list[list[int]]:
    with stream_of(store, **other) as stream:
        return list(islice(stream, n))


def epochs(store, n: int, **other) -> list[list[int]]:
    """The examples of the first epochs, as they come."""
    found = [[] for _ in range(n)]
    with stream_of(store, **other) as stream:
        while (now := stream.position.epoch) < n:
            found[now] += next(stream)
    return found


# --- what comes -------------------------------------------------------------------------------------------


@budgets
def test_every_epoch_has_every_example_once_in_another_order(store, budget):
    order = stream_of(store, budget=budget).order
    assert (order.block, order.n_windows) == (7, 5)
    found = epochs(store, 3, budget=budget)
    assert all(sorted(epoch) == list(range(N)) for epoch in found)
    assert len({tuple(epoch) for epoch in [*found, list(range(N))]}) == 4


@budgets
def test_the_seed_decides(store, budget):
    assert epochs(store, 2, seed=5, budget=budget) == epochs(store, 2, seed=5, budget=budget)
    assert epochs(store, 1, seed=5, budget=budget) != epochs(store, 1, seed=6, budget=budget)


def test_the_order_stays_what_it_is():
    """OutputLine down, since a run that goes on under another version of numpy must not see other batches."""
    assert streaming._shuffle(11, 1, 0, 0).tolist() == [2, 6, 8, 3, 9, 5, 10, 0, 1, 4, 7]
    assert streaming._shuffle(11, 1, 0, 1).tolist() == [8, 10, 6, 7, 0, 5, 3, 1, 2, 4, 9]


def test_uses_of_one_seed_have_nothing_to_do_with_each_other():
    uses = [(0, 0), (0, 1), (0, 1, 0), (1, 0), (1, 1), (1, 1, 0), (0,), (0, 0, 0)]
    assert len({tuple(streaming._shuffle(53, 3, *use).tolist()) for use in uses}) == len(uses)


def test_a_store_of_one_window_is_shuffled_as_a_whole(store, monkeypatch):
    """Any two examples come in either order about equally often, neighbours too."""
    monkeypatch.setattr(streaming, "WINDOW_TOKENS", (9999, 9999))
    order = stream_of(store, budget=FIXED).order
    assert order.n_windows == 1
    places = np.stack([np.argsort(order.window(epoch, 0)[1].order) for epoch in range(400)])
    earlier = (places[:, :-1] < places[:, 1:]).mean(axis=0)
    assert abs(earlier - 0.5).max() < 0.15
    assert abs(places.mean(axis=0) - (N - 1) / 2).max() < 15


@budgets
def test_a_window_has_examples_from_all_over_the_store(store, budget):
    order = stream_of(store, budget=budget).order
    windows = [order.window(0, window) for window in range(5)]
    found = [sorted(numbers(part, plan.order)) for part, plan in windows]
    assert sorted(i for window in found for i in window) == list(range(N))
    assert all(35 <= len(window) <= 49 for window in found)
    assert all(window[0] < N / 2 < window[-1] for window in found)


def test_batches_of_free_size_have_examples_of_like_length(store, monkeypatch):
    monkeypatch.setattr(streaming, "WINDOW_TOKENS", (9999, 9999))
    monkeypatch.setattr(streaming, "POOL_BATCHES", 1000)

    def spread(budget: Budget) -> float:
        part, plan = stream_of(store, budget=budget).order.window(0, 0)
        return np.mean([np.ptp(part.lengths(1, plan[i])) for i in range(len(plan))])

    assert spread(FREE) < 2 < 4 < spread(FIXED)
    longest = [store.lengths(1, np.array(batch)).max() for batch in first(20, store)]
    assert longest != sorted(longest)  # yet they do not come by length


def test_an_epoch_of_one_example(tmp_path):
    store = write(tmp_path / "store", [([5, 6], [7])])
    with stream_of(store, prefetch=3) as stream:
        assert list(islice(stream, 5)) == [[5]] * 5
        assert stream.epochs == 5
        assert stream.order.batches_per_epoch == 1


def test_how_far_it_has_come(store):
    with stream_of(store) as stream:
        seen = 0
        assert stream.epochs == 0
        for batch in islice(stream, 100):
            seen += len(batch)
            assert stream.epochs == pytest.approx(seen / N)
        assert stream.epochs > 2


@budgets
def test_how_many_batches_an_epoch_has(store, budget):
    with stream_of(store, budget=budget) as stream:
        about, n = stream.order.batches_per_epoch, 0
        while stream.position.epoch == 0:
            next(stream)
            n += 1
        assert about == pytest.approx(n, rel=0.1)


def test_a_budget_that_is_too_small_is_refused_at_once(store):
    with refused("example_too_long", "8 tokens", "at most 7"):
        stream_of(store, budget=Budget(tokens=(7, 29), extra=PAIRS_EXTRA))


# --- going on ---------------------------------------------------------------------------------------------


@given(st.integers(0, 90), st.integers(0, 5), st.sampled_from([FREE, FIXED]), st.integers(0, 2**70))
def test_going_on_gives_what_would_have_come(store, n, prefetch, budget, seed):
    options = {"budget": budget, "seed": seed}
    with stream_of(store, **options, prefetch=prefetch) as stream:
        for _ in range(n):
            next(stream)
        state = json.loads(json.dumps(stream.state()))
        rest = list(islice(stream, 30))
        state_after = stream.state()
    with stream_of(store, **options, state=state) as resumed:
        assert resumed.state() == state
        assert list(islice(resumed, 30)) == rest
        assert resumed.state() == state_after
    assert first(n + 30, store, **options)[n:] == rest


def test_a_change_of_what_decides_the_order_is_named(store, tmp_path):
    state = stream_of(store).state()
    with refused("setting_changed", "seed was 3, and is 4", "fixed size was False, and is True") as caught:
        stream_of(store, state=state, seed=4, budget=FIXED)
    assert len(caught.value.problems) == 3
    with refused("setting_changed", "budget was [31, 29], and is [37, 29]"):
        stream_of(store, state=state, budget=Budget(tokens=(37, 29), extra=PAIRS_EXTRA))
    other = numbered(tmp_path / "store", 17)
    with refused("data_changed", "211 examples", "17 examples"):
        stream_of(other, state=state)


# --- the thread -------------------------------------------------------------------------------------------


@pytest.fixture
def threads():
    """Those that make batches in advance, without any that another test left behind."""
    before = threading.enumerate()
    return lambda: [each for each in threading.enumerate() if each.name == "prefetch" and each not in before]


@pytest.mark.parametrize("prefetch", [1, 2, 8])
@budgets
def test_batches_made_ahead_are_the_same_batches(store, prefetch, budget):
    def make(part: Store, indices: np.ndarray):
        batch = make_pairs_batch(
            part, indices, bos=1, eos=2, fill_to=budget.tokens if budget.fixed else (None, None)
        )
        return indices.tolist(), batch.inputs.ids_N.tolist(), batch.targets_T.tolist()

    options = {"budget": budget, "seed": 3}
    plain = BatchStream(store, make, **options, prefetch=0)
    with BatchStream(store, make, **options, prefetch=prefetch) as ahead:
        for one, other in islice(zip(ahead, plain, strict=True), 90):
            assert one == other
            assert ahead.state() == plain.state()


def test_the_thread_runs_ahead_but_not_away(store):
    made, enough = [], threading.Event()

    def make(_: Store, indices: np.ndarray) -> None:
        made.append(indices)
        if len(made) == 7:
            enough.set()

    with BatchStream(store, make, budget=FREE, seed=1, prefetch=5) as stream:
        next(stream)
        assert enough.wait(LONG)
        time.sleep(0.05)
        assert len(made) == 7  # one handed out, five ready, one that waits to be put
        assert stream.position.batch == 1


def test_the_thread_ends_when_the_stream_is_closed_or_forgotten(store, threads):
    assert threads() == []
    with stream_of(store, prefetch=2) as stream:
        next(stream)
        assert len(threads()) == 1
    assert threads() == []
    stream.close()
    with pytest.raises(AssertionError, match="closed"):
        next(stream)
    stream = stream_of(store, prefetch=2)
    next(stream)
    del stream
    gc.collect()
    assert threads() == []


def test_a_stream_that_nobody_closed_does_not_hold_the_process_up(store):
    program = """
import sys
from regard.data.batches import Budget
from regard.data.store import open_store
from regard.data.batches.stream import BatchStream
from tests.refusals import refused

budget = Budget(tokens=(31, 29), extra=(1, 1))
stream = BatchStream(open_store(sys.argv[1]), lambda *_: 0, budget=budget, seed=1)
print(next(stream))
"""
    command = [sys.executable, "-c", program, str(store.folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LONG)
    assert (done.returncode, done.stderr) == (0, "")


def test_an_error_comes_where_its_batch_would_have_come(store, threads):
    counted = count()

    def make(*_: object) -> int:
        if (number := next(counted)) == 3:
            raise ValueError("a batch that cannot be made")
        return number

    with BatchStream(store, make, budget=FREE, seed=1, prefetch=2) as stream:
        assert list(islice(stream, 3)) == [0, 1, 2]
        state = stream.state()
        for _ in range(2):
            with pytest.raises(ValueError, match="a batch that cannot be made"):
                next(stream)
        assert stream.state() == state
    assert threads() == []


def test_an_iterator_that_ends_ends_ahead_as_well():
    ahead = Prefetch(iter(range(5)), 2)
    assert list(ahead) == [0, 1, 2, 3, 4]
    assert list(ahead) == []
    ahead.close()


def test_a_slow_reader_costs_the_thread_nothing_and_a_slow_maker_is_waited_for(store):
    def slowly(part: Store, indices: np.ndarray) -> list[int]:
        time.sleep(0.01)
        return numbers(part, indices)

    with BatchStream(store, slowly, budget=FREE, seed=3, prefetch=3) as stream:
        assert list(islice(stream, 20)) == first(20, store)
