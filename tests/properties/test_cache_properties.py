"""Decoding with a cache, for prompts of any lengths and any number of beams."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.packing import pack, unpack
from tests.model.small import random_ids, small_config, small_model
from tests.parity.tolerances import assert_close

CONFIG = small_config(positions="rotary", encoder_layers=1, decoder_layers=2)
seeds = st.integers(0, 2**32)


@settings(max_examples=10)
@given(st.lists(st.integers(1, 11), min_size=1, max_size=5), st.integers(1, 3), st.data(), seeds)
def test_prompts_and_what_follows_are_answered_as_whole_texts(n_inputs, beams, data, seed):
    torch.manual_seed(seed)
    model = small_model(CONFIG)
    inputs, n_rows = random_ids(tuple(n_inputs)), len(n_inputs) * beams
    parts = [
        random_ids(tuple(data.draw(st.lists(st.integers(1, 7), min_size=n_rows, max_size=n_rows))))
        for _ in range(3)
    ]
    sources = [ids for ids in inputs for _ in range(beams)]
    rows: list[list[int]] = [[] for _ in range(n_rows)]
    with torch.no_grad():
        cache = model.start(model.encode(pack(inputs)), capacity=21, beams=beams)
        for part in parts:
            log_probs, cache = model.extend(pack(part), cache)
            rows = [[*row, *new] for row, new in zip(rows, part, strict=True)]
            whole = unpack(model(pack(sources), pack(rows)).log_softmax(dim=-1), pack(rows).boundaries)
            for of_one, expected in zip(unpack(log_probs, pack(part).boundaries), whole, strict=True):
                assert_close(of_one, expected[-len(of_one) :])


@settings(max_examples=10)
@given(st.lists(st.integers(1, 7), min_size=1, max_size=5), st.data(), seeds)
def test_rows_go_on_from_whichever_they_are_told_to(lengths, data, seed):
    torch.manual_seed(seed)
    model = small_model(small_config(architecture="decoder", positions="learned", decoder_layers=2))
    rows = random_ids(tuple(lengths))
    order = data.draw(st.lists(st.integers(0, len(rows) - 1), min_size=len(rows), max_size=len(rows)))
    new = torch.randint(model.config.vocab_size, (len(rows),))
    with torch.no_grad():
        _, cache = model.extend(pack(rows), model.start(len(rows), capacity=8))
        log_probs, _ = model.step(new, cache.reorder(torch.tensor(order)))
        texts = pack([[*rows[i], int(token)] for i, token in zip(order, new, strict=True)])
        assert_close(log_probs, model(texts)[texts.boundaries.ends_B].log_softmax(dim=-1))
