"""Several steps as one."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.decode.beam import beam_search
from regard.decode.step import States, ensemble
from tests.decode.rigged import constraints, random_rig, start, stepping

seeds = st.integers(0, 2**32)


@given(seeds, seeds)
def test_probabilities_are_averaged(one, other):
    rigs = [random_rig(seed, n_tokens=5) for seed in (one, other)]
    log_probs, _ = ensemble([stepping(rig) for rig in rigs])(
        torch.tensor([1, 1]), States((start(2), start(2)))
    )
    for source in range(2):
        expected = sum(torch.tensor(rig(source, ()), dtype=torch.float64).exp() for rig in rigs) / 2
        torch.testing.assert_close(log_probs[source].exp(), expected)


@given(seeds, st.lists(st.integers(1, 9), min_size=1, max_size=4))
def test_one_model_twice_is_the_model(seed, limits):
    rig = random_rig(seed, n_tokens=5)

    def search(step, state):
        return beam_search(step, state, constraints(*limits), width=3, alpha=0.6, n_best=2)

    alone = search(stepping(rig), start(len(limits), 3))
    state = States((start(len(limits), 3), start(len(limits), 3)))
    twice = search(ensemble([stepping(rig), stepping(rig)]), state)
    assert [[h.ids for h in best] for best in twice] == [[h.ids for h in best] for best in alone]
