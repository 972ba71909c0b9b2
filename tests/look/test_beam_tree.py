"""The tree is that of the search: it tells its n-best anew, and why everything else fell."""

import json
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.decode.beam import beam_search
from regard.decode.hypothesis import Hypothesis
from regard.decode.walk import likeliest, walk
from regard.engine.engines.protocol import Request, Search
from regard.engine.engines.torch_engine import TorchEngine
from regard.errors import RequestError
from regard.look.trace.beam import BeamRecorder, BeamTree
from tests.decode.rigged import EOS, constraints, random_rig, start, stepping, table_rig
from tests.look.traced import SOURCE, model_of, subwords
from tests.refusals import refused

seeds = st.integers(0, 2**32)
alphas = st.sampled_from([0.0, 0.6, 1.0, 2.0])


def recorded(rig, limit, *, width, alpha=0.0, n_best=1, patience=None, **others):
    """What the search finds, and its tree."""
    recording = BeamRecorder(lambda ids: [f"t{i}" for i in ids])
    (found,) = beam_search(
        stepping(rig),
        start(1, width),
        constraints(limit, **others),
        width=width,
        alpha=alpha,
        n_best=n_best,
        patience=patience,
        observer=recording,
    )
    return found, recording.tree()


def replayed(tree, n, alpha):
    """The n best, from the nodes' numbers alone."""
    paths = [tree.path(node.id) for node in tree.ended[:n]]
    return tuple(
        Hypothesis.of_tokens(
            [node.token for node in path], [node.log_prob for node in path], eos=EOS, alpha=alpha
        )
        for path in paths
    )


@settings(max_examples=60)
@given(seeds, st.integers(1, 9), st.integers(1, 5), alphas, st.data())
def test_the_nodes_tell_the_n_best_anew_to_the_bit(seed, limit, width, alpha, data):
    rig, n_best = random_rig(seed, data.draw(st.integers(2, 7))), data.draw(st.integers(1, width))
    found, tree = recorded(rig, limit, width=width, alpha=alpha, n_best=n_best)
    assert replayed(tree, n_best, alpha) == found
    assert tree.winner.fate == "winner"
    assert sum(node.fate == "winner" for node in tree.nodes) == 1


def open_hypotheses(tree, step):
    """Those that were continued at a step: the root, or what had gone on before."""
    if step == 0:
        return {(): None}
    return {
        tree.ids(node.id): node for node in tree.nodes if node.step == step - 1 and node.fate == "expanded"
    }


@settings(max_examples=60)
@given(seeds, st.integers(1, 7), st.integers(1, 4), alphas)
def test_every_fate_is_what_a_reading_of_all_candidates_says(seed, limit, width, alpha):
    """At each step all continuations of what went on are made again, and sorted by hand."""
    rig = random_rig(seed, n_tokens=6)
    _, tree = recorded(rig, limit, width=width, alpha=alpha)
    for step in range(tree.steps):
        everything = sorted(
            (
                (0.0 if parent is None else parent.total) + log_prob, (*ids, token)
            )
            for ids, parent in open_hypotheses(tree, step).items()
            for token, log_prob in enumerate(rig(0, ids))
        )[::-1]  # fmt: skip
        here = [node for node in tree.nodes if node.step == step]
        assert [tree.ids(node.id) for node in here] == [ids for _, ids in everything[: len(here)]]
        assert [node.rank for node in here] == list(range(len(here)))
        assert len(here) == min(2 * width, len(everything))
        going = [node for node in here if node.token != EOS][:width]
        for node in here:
            ends = node.rank < width and (node.token == EOS or step + 1 == limit)
            goes = node in going and step + 1 < tree.steps
            expected = {"finished", "winner"} if ends else {"expanded"} if goes else {"pruned"}
            assert node.fate in expected


@settings(max_examples=60)
@given(seeds, st.integers(1, 7), st.integers(1, 4), alphas)
def test_every_reason_is_true(seed, limit, width, alpha):
    _, tree = recorded(random_rig(seed, n_tokens=6), limit, width=width, alpha=alpha)
    greatest = ((5 + limit) / 6) ** alpha
    for node in tree.nodes:
        said = node.reason.english
        if node.fate != "pruned":
            continue
        if node.step + 1 == limit:
            assert f"ranked {node.rank + 1}." in said
            assert node.rank >= width
        elif "The search stopped" in said:
            assert node.step + 1 == tree.steps
            assert f"{node.total / greatest:.4f}" in said
            assert node.total / greatest <= tree.winner.score + 1e-6
        elif node.token == EOS:
            assert said.startswith(f"Dropped: an end token counts only among the first {width}")
            assert node.rank >= width
        else:
            kept = [n for n in tree.nodes if n.step == node.step and n.token != EOS and n.rank < node.rank]
            last = sorted(n.total for n in kept)[-width]
            assert said.startswith(f"Dropped: {width} better candidate")
            assert f"{last - node.total:.4f} below" in said


@given(seeds, st.integers(1, 9))
def test_a_beam_of_one_is_the_greedy_path(seed, limit):
    rig = random_rig(seed, n_tokens=5)
    _, tree = recorded(rig, limit, width=1)
    (greedy,) = walk(stepping(rig), start(1), constraints(limit), likeliest, 0.0)
    ids = tree.ids(tree.winner.id)
    assert (ids[:-1] if greedy.finished else ids) == greedy.ids
    assert [node.id for node in tree.path(tree.winner.id)] == [n.id for n in tree.nodes if n.rank == 0]


def test_a_search_by_hand():
    """Tokens 0 (ends), 2 and 3; probabilities that one can multiply."""
    table = {1: [0.1, 0.0, 0.5, 0.4], 2: [0.2, 0.0, 0.3, 0.5], 3: [0.7, 0.0, 0.2, 0.1]}
    _, tree = recorded(table_rig(table), 9, width=2)
    assert [(n.token, n.fate) for n in tree.nodes if n.step == 0] == [
        (2, "expanded"), (3, "expanded"), (0, "pruned"),
    ]  # fmt: skip
    assert [(n.parent, n.token, n.fate) for n in tree.nodes if n.step == 1] == [
        (1, 0, "winner"), (0, 3, "pruned"), (0, 2, "pruned"), (0, 0, "pruned"),
    ]  # fmt: skip
    assert tree.steps == 2
    assert tree.nodes[4].reason.english == (
        f"The search stopped: this hypothesis could reach at most {math.log(0.25):.4f};"
        f" one with {math.log(0.28):.4f} had ended."
    )
    assert tree.nodes[2].reason.english == (
        "Dropped: an end token counts only among the first 2 of its step; this one ranked 3."
    )
    assert tree.nodes[2].reason.chinese == "淘汰：结束符只有排在前 2 名才有效，它排第 3。"
    assert tree.ids(tree.winner.id) == (3, 0)
    assert math.isclose(tree.winner.total, math.log(0.28), rel_tol=1e-6)


def test_patience_gives_another_reason_to_stop():
    _, tree = recorded(random_rig(3, 5), 9, width=3, patience=0.34)
    stopped = [node.reason.english for node in tree.nodes if "stopped" in node.reason.english]
    assert stopped
    assert "the number required" in stopped[0]


def test_a_tree_is_plain_values_and_comes_back():
    _, tree = recorded(random_rig(5, 6), 6, width=3, alpha=0.6)
    values = tree.to_json()
    assert values["winner"] == tree.winner.id
    assert values["beam_size"] == 3
    assert values["steps"] == tree.steps == 1 + values["nodes"][-1]["step"]
    assert set(values["nodes"][0]["reason"]) == {"en", "zh"}
    assert values["nodes"][0]["text"] == f"t{tree.nodes[0].token}"
    assert BeamTree.from_json(json.loads(json.dumps(values))) == tree


def test_what_is_not_in_the_tree_is_refused():
    _, tree = recorded(random_rig(5, 6), 6, width=3)
    with refused("unknown_node", f"0 to {len(tree.nodes) - 1}"):
        tree.path(len(tree.nodes))
    assert BeamRecorder(lambda ids: ids).tree() is None


class TestTheEngine:
    """The record comes from the search that translates."""

    request = Request(ids=tuple(subwords().encode_one(SOURCE).tolist()))

    def engine(self):
        model = model_of(torch.float32)
        return TorchEngine([model], bos=subwords().bos_id, eos=subwords().eos_id)

    @pytest.mark.parametrize("beam_size", [1, 3])
    def test_being_observed_changes_nothing(self, beam_size):
        search = Search(beam_size=beam_size, n_best=beam_size, extra_length=4)
        recording = BeamRecorder(subwords().pieces)
        ((*watched,),) = self.engine().decode([self.request], search, recording)
        ((*alone,),) = self.engine().decode([self.request], search)
        assert [one.ids for one in watched] == [one.ids for one in alone]
        tree = recording.tree()
        best = tree.ids(tree.winner.id)
        assert best[: len(alone[0].ids)] == alone[0].ids
        assert tree.beam_size == beam_size

    def test_required_phrases_show_in_the_reasons(self):
        phrase = subwords().encode_one("dogs")
        request = Request(ids=self.request.ids, phrases=((tuple(phrase.tolist()),),))
        recording = BeamRecorder(subwords().pieces)
        self.engine().decode([request], Search(beam_size=2, extra_length=3), recording)
        assert any("required phrases" in node.reason.english for node in recording.tree().nodes)

    def test_only_one_search_can_be_observed(self):
        recording = BeamRecorder(subwords().pieces)
        with pytest.raises(RequestError, match="single request"):
            self.engine().decode([self.request] * 2, Search(), recording)
        with pytest.raises(RequestError, match="single request"):
            self.engine().decode([self.request], Search(sample=True), recording)
