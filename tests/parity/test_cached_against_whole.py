"""Decoding with a cache against running the whole prefix again, at every step."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from regard.model.fast import cached_decoder
from regard.model.fast.cache import BLOCK
from regard.packing import pack, unpack
from tests.model.small import INPUT_LENGTHS, V, random_ids, small_model
from tests.parity.tolerances import assert_close

SETTINGS = [
    {},
    {"positions": "learned", "norm_position": "pre"},
    {"positions": "rotary", "similarity": "bilinear"},
    {"positions": "none", "similarity": "additive", "attention_bias": True},
    {"positions": "rotary", "similarity": "cosine", "norm": "rms", "feed_forward": "geglu"},
    {"similarity": "dot"},
    {"positions": "alibi"},
    {"positions": "t5-relative", "norm_position": "pre", "similarity": "additive"},
    {"positions": "t5-relative", "similarity": "dot"},
]
each_setting = pytest.mark.parametrize(
    "settings", SETTINGS, ids=lambda s: "-".join(str(value) for value in s.values()) or "paper"
)
PROMPTS = (2, 5, 1)


@pytest.fixture(autouse=True)
def _no_gradients():
    with torch.no_grad():
        yield


def last_of_whole(model, inputs: list[list[int]] | None, rows: list[list[int]]) -> Tensor:
    """Log-probabilities after the last token of each row, every row from its beginning."""
    packed = pack(rows)
    logits = model(packed) if inputs is None else model(pack(inputs), packed)
    return logits[packed.boundaries.ends_B].log_softmax(dim=-1)


def grow(rows: list[list[int]]) -> Tensor:
    """One more random token in each row; gives the tokens."""
    new = torch.randint(V, (len(rows),))
    for row, token in zip(rows, new.tolist(), strict=True):
        row.append(token)
    return new


def steps_agree(model, cache, rows: list[list[int]], whole: Callable[[], Tensor], n_steps: int):
    """Step on; at every step the answer is that of the whole prefix."""
    for _ in range(n_steps):
        log_probs, cache = model.step(grow(rows), cache)
        assert_close(log_probs, whole())
        assert cache.lengths_R.tolist() == [len(row) for row in rows]
    return cache


@each_setting
def test_a_transformer_from_its_first_token(settings):
    model, inputs = small_model(**settings), random_ids(INPUT_LENGTHS)
    cache = model.start(model.encode(pack(inputs)), capacity=7)
    rows = [[] for _ in inputs]
    steps_agree(model, cache, rows, lambda: last_of_whole(model, inputs, rows), n_steps=7)


@each_setting
def test_a_transformer_from_prompts_of_unlike_length(settings):
    model, inputs = small_model(**settings), random_ids(INPUT_LENGTHS)
    rows = random_ids(PROMPTS)
    prompts = pack(rows)
    log_probs, cache = model.extend(prompts, model.start(model.encode(pack(inputs)), capacity=11))
    assert_close(log_probs, model(pack(inputs), prompts).log_softmax(dim=-1))
    steps_agree(model, cache, rows, lambda: last_of_whole(model, inputs, rows), n_steps=3)


@each_setting
def test_a_language_model_from_prompts_of_unlike_length_extended_twice(settings):
    model = small_model(architecture="decoder", **settings)
    rows, more = random_ids(PROMPTS), random_ids((3, 1, 2))
    _, cache = model.extend(pack(rows), model.start(len(rows), capacity=13))
    log_probs, cache = model.extend(pack(more), cache)
    rows = [[*row, *new] for row, new in zip(rows, more, strict=True)]
    whole = unpack(model(pack(rows)).log_softmax(dim=-1), pack(rows).boundaries)
    for of_one, expected, new in zip(unpack(log_probs, pack(more).boundaries), whole, more, strict=True):
        assert_close(of_one, expected[-len(new) :])
    steps_agree(model, cache, rows, lambda: last_of_whole(model, None, rows), n_steps=2)


@each_setting
def test_beams_reordered_within_their_source_and_finished_sources_gone(settings):
    beams = 2
    model, inputs = small_model(**settings), random_ids(INPUT_LENGTHS)
    cache = model.start(model.encode(pack(inputs)), capacity=11, beams=beams)
    rows: list[list[int]] = [[] for _ in range(len(inputs) * beams)]
    sources = [one for one in inputs for _ in range(beams)]

    cache = steps_agree(model, cache, rows, lambda: last_of_whole(model, sources, rows), n_steps=2)

    order = torch.tensor([1, 1, 2, 2, 5, 4])
    cache = cache.reorder(order)
    rows = [list(rows[i]) for i in order]
    cache = steps_agree(model, cache, rows, lambda: last_of_whole(model, sources, rows), n_steps=2)

    cache = cache.keep(torch.tensor([2, 0]))
    rows = [rows[i] for i in (4, 5, 0, 1)]
    sources = [sources[i] for i in (4, 5, 0, 1)]
    assert cache.n_rows == 4
    steps_agree(model, cache, rows, lambda: last_of_whole(model, sources, rows), n_steps=2)


@pytest.mark.parametrize("prompts", [(1, 1, 1), (14, 2, 9)], ids=["even", "uneven"])
def test_a_cache_grows_by_blocks_and_copies_leave_out_what_is_empty(prompts):
    model, rows = small_model(architecture="decoder", max_length=61, positions="rotary"), random_ids(prompts)
    _, cache = model.extend(pack(rows), model.start(len(rows), capacity=3 * BLOCK + 5))
    assert cache.room == BLOCK
    cache = steps_agree(model, cache, rows, lambda: last_of_whole(model, None, rows), n_steps=BLOCK + 3)
    rows = [list(rows[i]) for i in (2, 1, 1)]
    cache = cache.writable(3 * BLOCK + 5).reorder(torch.tensor([2, 1, 1]))
    assert cache.room == (2 if prompts[0] == 1 else 3) * BLOCK
    steps_agree(model, cache, rows, lambda: last_of_whole(model, None, rows), n_steps=BLOCK)


def test_beams_that_start_from_prompts_of_unlike_length():
    model, inputs = small_model(positions="rotary"), random_ids((3, 7))
    rows = random_ids((2, 5, 1, 3, 1, 2))
    sources = [one for one in inputs for _ in range(3)]
    log_probs, cache = model.extend(pack(rows), model.start(model.encode(pack(inputs)), 11, beams=3))
    assert_close(log_probs, model(pack(sources), pack(rows)).log_softmax(dim=-1))
    steps_agree(model, cache, rows, lambda: last_of_whole(model, sources, rows), n_steps=2)


def test_texts_of_a_language_model_reordered_and_finished_ones_gone():
    model, rows = small_model(architecture="decoder", positions="rotary"), random_ids(PROMPTS)
    _, cache = model.extend(pack(rows), model.start(len(rows), capacity=11))
    rows = [list(rows[i]) for i in (2, 1, 1)]
    cache = cache.reorder(torch.tensor([2, 1, 1]))
    cache = steps_agree(model, cache, rows, lambda: last_of_whole(model, None, rows), n_steps=2)
    rows = [rows[i] for i in (2, 0)]
    steps_agree(
        model, cache.keep(torch.tensor([2, 0])), rows, lambda: last_of_whole(model, None, rows), n_steps=2
    )


def test_the_cache_handed_in_stays_right_for_its_own_length():
    model, rows = small_model(architecture="decoder"), random_ids(PROMPTS)
    _, before = model.extend(pack(rows), model.start(len(rows), capacity=11))
    tokens = torch.randint(V, (len(rows),))
    first, after = model.step(tokens, before)
    model.step(torch.randint(V, (len(rows),)), after)
    assert before.lengths_R.tolist() == list(PROMPTS)
    again, _ = model.step(tokens, before)
    assert torch.equal(first, again)


def test_two_continuations_of_one_cache_do_not_meet_once_it_is_reordered():
    model, rows = small_model(architecture="decoder"), random_ids(PROMPTS)
    _, cache = model.extend(pack(rows), model.start(len(rows), capacity=11))
    other = cache.reorder(torch.arange(len(rows)))
    one_way, other_way = [list(row) for row in rows], [list(row) for row in rows]
    _, cache = model.step(grow(one_way), cache)
    _, other = model.step(grow(other_way), other)
    assert one_way != other_way
    steps_agree(model, cache, one_way, lambda: last_of_whole(model, None, one_way), n_steps=1)
    steps_agree(model, other, other_way, lambda: last_of_whole(model, None, other_way), n_steps=1)


def test_the_memory_s_keys_and_values_are_worked_out_once(monkeypatch):
    model, inputs = small_model(), random_ids(INPUT_LENGTHS)
    calls = []
    remember = cached_decoder._keys_values
    monkeypatch.setattr(cached_decoder, "_keys_values", lambda *given: calls.append(1) or remember(*given))
    cache = model.start(model.encode(pack(inputs)), capacity=5, beams=2)
    for _ in range(3):
        _, after = model.step(torch.randint(V, (cache.n_rows,)), cache)
        assert all(one is other for one, other in zip(cache.memory, after.memory, strict=True))
        cache = after
    assert len(calls) == len(model.decoder.layers)


def test_rows_that_fit_are_not_refused_because_other_rows_are_longer():
    """Rows of 5 and 1 tokens get 1 and 5 more: both then hold 6, which is what there is room for."""
    model = small_model(architecture="decoder", positions="learned", max_length=6)
    rows, more = random_ids((5, 1)), random_ids((1, 5))
    _, cache = model.extend(pack(rows), model.start(2, capacity=6))
    log_probs, cache = model.extend(pack(more), cache)
    rows = [[*row, *new] for row, new in zip(rows, more, strict=True)]
    assert_close(log_probs[[0, -1]], last_of_whole(model, None, rows))
    assert cache.longest == 6


def test_rows_that_fit_are_not_refused_because_a_longer_one_has_left():
    """Of rows of 5 and 1 tokens the short one stays, and gets the 5 more that there is room for."""
    model = small_model(architecture="decoder", positions="learned", max_length=6)
    rows, more = random_ids((5, 1)), random_ids((5,))
    _, cache = model.extend(pack(rows), model.start(2, capacity=6))
    log_probs, _ = model.extend(pack(more), cache.keep(torch.tensor([1])))
    assert_close(log_probs[-1:], last_of_whole(model, None, [[*rows[1], *more[0]]]))


@pytest.mark.parametrize(
    "leave",
    [lambda cache: cache.keep(torch.tensor([1])), lambda cache: cache.reorder(torch.tensor([1]))],
    ids=["keep", "reorder"],
)
def test_a_row_may_step_on_though_a_longer_one_was_full(leave):
    model = small_model(architecture="decoder", positions="learned", max_length=6)
    rows = random_ids((6, 1))
    _, cache = model.extend(pack(rows), model.start(2, capacity=6))
    rows = [list(rows[1])]
    steps_agree(model, leave(cache), rows, lambda: last_of_whole(model, None, rows), n_steps=5)


class TestACacheIsAValue:
    @pytest.mark.parametrize("prompts", [(3, 3), (2, 5)], ids=["even", "uneven"])
    @pytest.mark.parametrize("positions", ["sinusoidal", "t5-relative"])
    def test_several_continuations_of_one_cache_do_not_disturb_each_other(self, prompts, positions):
        model, inputs = small_model(positions=positions), random_ids((4, 7))
        rows = random_ids(prompts)
        _, cache = model.extend(pack(rows), model.start(model.encode(pack(inputs)), capacity=19))
        branches = [([list(row) for row in rows], cache) for _ in range(3)]
        for _ in range(4):  # in turn, so that each could overwrite what the others wrote
            for i, (own, before) in enumerate(branches):
                log_probs, after = model.step(grow(own), before)
                assert_close(log_probs, last_of_whole(model, inputs, own))
                branches[i] = own, after
        own = [list(row) for row in rows]
        log_probs, _ = model.extend(pack([[1, 2], [3, 4]]), cache)
        own = [[*row, *new] for row, new in zip(own, ([1, 2], [3, 4]), strict=True)]
        assert_close(log_probs[[1, 3]], last_of_whole(model, inputs, own))

    def test_the_usual_way_copies_nothing_and_the_storage_is_shared(self):
        model = small_model(architecture="decoder")
        cache = model.start(1, capacity=5)
        _, first = model.step(torch.tensor([1]), cache)
        _, second = model.step(torch.tensor([2]), first)
        assert second.own[0].k_BHMK is cache.own[0].k_BHMK
        _, again = model.step(torch.tensor([3]), first)
        assert again.own[0].k_BHMK is not cache.own[0].k_BHMK

    def test_reordering_a_cache_that_has_been_continued(self):
        model = small_model(architecture="decoder")
        rows = random_ids((3, 3))
        _, cache = model.extend(pack(rows), model.start(2, capacity=9))
        model.step(torch.tensor([5, 6]), cache)
        swapped, rows = cache.reorder(torch.tensor([1, 0])), [list(rows[1]), list(rows[0])]
        steps_agree(model, swapped, rows, lambda: last_of_whole(model, None, rows), n_steps=3)


@pytest.mark.parametrize("architecture", ["encoder-decoder", "decoder"])
def test_forward_hooks_are_called_in_every_step(architecture):
    model = small_model(architecture=architecture)
    layer = model.decoder.layers[1]
    blocks = [layer, layer.masked_multi_head_attention, layer.feed_forward, layer.add_and_norm[0]]
    blocks += [layer.multi_head_attention] if layer.multi_head_attention is not None else []
    is_whole = architecture == "decoder"
    inputs = None if is_whole else random_ids((4, 7))
    start = model.start(2, 5) if is_whole else model.start(model.encode(pack(inputs)), 5)
    plain, cache = model.step(torch.tensor([1, 2]), start)
    seen = {}
    hooks = [
        block.register_forward_hook(lambda block, _, result: seen.setdefault(block, []).append(result))
        for block in blocks
    ]
    again, _ = model.step(torch.tensor([1, 2]), start)
    assert_close(again, plain)
    for _ in range(2):
        _, cache = model.step(torch.tensor([3, 4]), cache)
    assert [len(seen[block]) for block in blocks] == [3] * len(blocks)
    assert all(result.shape == (2, model.config.d_model) for each in seen.values() for result in each)
    for hook in hooks:
        hook.remove()
    layer.register_forward_hook(lambda *_: torch.zeros(2, model.config.d_model, dtype=torch.float64))
    changed, _ = model.step(torch.tensor([1, 2]), start)
    assert (changed - plain).abs().max() > 1e-3
