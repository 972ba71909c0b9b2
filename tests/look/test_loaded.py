"""What `regard.load` opens shows how it works, whatever found the output."""

import subprocess
import sys

import numpy as np
import pytest
import torch

import regard
from regard.config import TaskConfig
from regard.engine.engines.torch_engine import TorchEngine
from regard.look.influence.attribution import integrated_gradients
from regard.look.interventions.ablation import effect_of_each_head
from regard.look.interventions.activations import Ablate, Patch
from regard.look.interventions.interventions import HeadOff, MaskSource, NoPositions
from regard.look.trace.recorder import look
from regard.look.trace.trace import Trace
from tests.look.traced import ARCHITECTURES, SOURCE, TARGET, model_of, subwords
from tests.refusals import refused


@pytest.fixture(scope="module", autouse=True)
def _conversions_are_kept_elsewhere(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REGARD_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A model folder of each architecture."""
    place = tmp_path_factory.mktemp("folders")
    decoding = regard.DecodingConfig(beam_size=3, extra_length=4)
    return {
        name: regard.save_bundle(
            place / name,
            model_of(
                torch.float32, architecture=name, n_heads=2, d_k=7, d_v=7
            ),  # CTranslate2 wants equal widths
            subwords=subwords().model,
            decoding=decoding,
        )
        for name in ARCHITECTURES
    }


@pytest.fixture(scope="module")
def models(folders):
    return {engine: regard.load(folders["encoder-decoder"], engine=engine, threads=1, quantisation=q)
            for engine, q in (("torch", None), ("ctranslate2", "float32"))}  # fmt: skip


@pytest.mark.parametrize("engine", ["torch", "ctranslate2"])
def test_what_is_found_is_what_the_engine_translates(models, folders, engine):
    trace = models[engine].look(SOURCE)
    found = models[engine].translate(SOURCE, whole_lines=True)
    assert trace.engine == found.engine == engine
    assert tuple(subwords().pieces(trace.targets[:-1])) == found.tokens
    assert trace.weights_hash == regard.describe_bundle(folders["encoder-decoder"]).weights_hash
    assert (trace.beam is None) == (engine == "ctranslate2")


def test_a_beam_size_brings_the_tree_of_the_search_whatever_the_engine(models):
    trace = models["ctranslate2"].look(SOURCE, beam_size=2)
    assert trace.engine == "torch"
    assert trace.beam.beam_size == 2
    ids = trace.beam.ids(trace.beam.winner.id)
    assert ids[: len(trace.targets) - 1] == trace.targets[:-1]
    assert models["torch"].look(SOURCE).beam.beam_size == 3


def test_every_node_of_the_tree_can_be_looked_at(models):
    model = models["torch"]
    tree = model.look(SOURCE).beam
    for node in tree.nodes[:: max(1, len(tree.nodes) // 7)]:
        path = tree.path(node.id)
        trace = model.look(SOURCE, tree.ids(node.id))
        np.testing.assert_allclose(trace.log_probs[: len(path)], [n.log_prob for n in path], atol=1e-4)
        assert (trace.engine, trace.beam) == ("", None)
    ended = tree.ids(tree.winner.id)
    if ended[-1] == subwords().eos_id:
        assert model.look(SOURCE, ended) == model.look(SOURCE, ended[:-1])


def test_a_given_target_is_read_and_the_model_may_be_changed(models):
    model, changes = models["ctranslate2"], [HeadOff(kind="cross", layer=1, head=1)]
    plain, changed = model.look(SOURCE, TARGET), model.look(SOURCE, TARGET, interventions=changes)
    assert plain.outputs.text == changed.outputs.text == TARGET
    assert not np.array_equal(plain.log_probs, changed.log_probs)
    searched = model.look(SOURCE, interventions=changes)
    assert searched.engine == "torch"
    path = searched.beam.path(searched.beam.winner.id)
    np.testing.assert_allclose(searched.log_probs[: len(path)], [n.log_prob for n in path], atol=1e-4)


@pytest.mark.parametrize(
    "changes",
    [
        [HeadOff(kind="cross", layer=0, head=1)],
        [NoPositions(), MaskSource(token=0)],
        [Ablate(at="input_positions.added", by="zero", positions=(1, 2))],
        [Patch(at="decoder.layers.0.multi_head_attention.heads", head=0, text=(SOURCE, TARGET + TARGET))],
        [Ablate(at="encoder.layers.0.multi_head_attention.heads", by="mean", texts=((SOURCE, None),))],
    ],
)
def test_a_changed_output_is_that_of_two_traces(models, changes):
    model = models["torch"]
    intact = model.look(SOURCE, beam_size=3).targets[:-1]
    found = model.changed_output(SOURCE, intact, changes, beam_size=3)
    free = model.look(SOURCE, beam_size=3, interventions=changes)
    forced = model.look(SOURCE, intact, interventions=changes)
    assert found.ids == free.targets[:-1]
    assert found.log_prob == pytest.approx(free.log_probs.sum(), abs=1e-4)
    assert found.log_prob_of_intact == pytest.approx(forced.log_probs.sum(), abs=1e-4)


def test_one_engine_searches_for_all_who_look_and_another_without_positions(folders, monkeypatch):
    model, made = regard.load(folders["encoder-decoder"], engine="ctranslate2"), []
    make = TorchEngine.__init__
    monkeypatch.setattr(
        TorchEngine, "__init__", lambda self, *args, **more: made.append(self) or make(self, *args, **more)
    )
    changes = [HeadOff(kind="cross", layer=1, head=1)]
    found = [model.look(SOURCE, beam_size=3, interventions=each) for each in ((), changes, ())]
    assert len(made) == 1
    assert found[0] == found[2], "a change is gone with the look that made it"
    assert found[0].targets != found[1].targets or not np.array_equal(found[0].log_probs, found[1].log_probs)
    unplaced = model.look(SOURCE, beam_size=3, interventions=[NoPositions()])
    assert len(made) == 2
    path = unplaced.beam.path(unplaced.beam.winner.id)
    np.testing.assert_allclose(unplaced.log_probs[: len(path)], [n.log_prob for n in path], atol=1e-4)


@pytest.mark.parametrize("architecture", ["decoder", "encoder"])
def test_models_for_other_tasks_can_be_looked_at(folders, architecture):
    trace = regard.load(folders[architecture]).look("the cat sat")
    direct = look(regard.load_bundle(folders[architecture]).model, subwords(), "the cat sat")
    assert trace.kinds == (architecture,)
    assert trace.arrays.keys() == direct.arrays.keys()
    assert np.array_equal(trace.log_probs, direct.log_probs)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_what_a_trace_can_be_asked_is_asked_of_the_weights_in_the_folder(folders, architecture):
    loaded, model = regard.load(folders[architecture]), regard.load_bundle(folders[architecture]).model.eval()
    trace = loaded.look(SOURCE, None if architecture == "encoder" else TARGET)
    for kind, found in loaded.head_effects(trace).items():
        assert np.array_equal(found, effect_of_each_head(model, trace)[kind])
    influence = loaded.influence(trace)
    assert np.array_equal(influence, integrated_gradients(model, trace, 0))
    assert np.array_equal(loaded.with_influence(trace).influence, influence)
    side = "output" if architecture == "decoder" else "input"
    added = trace.arrays[f"{side}_embedding.positions"]
    assert np.array_equal(loaded.positions(len(added)), added)


def test_a_classifier_is_asked_for_a_label_by_its_name_or_its_number(tmp_path):
    model = model_of(torch.float32, architecture="encoder")
    labels = ["cats", "dogs", "birds", "mats", "rest"]
    loaded = regard.load(
        regard.save_bundle(tmp_path / "labels", model, subwords=subwords().model, labels=labels)
    )
    assert loaded.look(SOURCE, "birds") == loaded.look(SOURCE, [2])
    assert loaded.look(SOURCE, [2]).targets == (2,)
    with refused("unknown_label", "'bird'", "did you mean"):
        loaded.look(SOURCE, "bird")
    with refused("unknown_label", "0 to 4"):
        loaded.look(SOURCE, [5])


def test_what_led_to_a_trace_is_kept_in_its_file(models, tmp_path):
    trace = models["torch"].look(SOURCE)
    trace.save(tmp_path / "trace.safetensors")
    again = Trace.load(tmp_path / "trace.safetensors")
    assert again == trace
    assert again.beam == trace.beam
    assert (again.engine, again.weights_hash) == (trace.engine, trace.weights_hash)


def test_what_cannot_be_looked_at_is_refused(models, folders):
    with refused("too_long", "63"):
        models["torch"].look("the " * 99)
    with refused("too_long", "63"):
        models["torch"].look("the", [9] * 64)
    with refused("no_search", "`beam_size`"):
        models["torch"].look("the", "cat", beam_size=2)
    with refused("no_search", "`prefix`"):
        models["torch"].look("the", "cat", prefix=[9])
    with refused("no_search", "`prefix`"):
        regard.load(folders["decoder"]).look("the", prefix=[9])
    with refused("bad_option", "`beam_size=0`"):
        models["torch"].look("the", beam_size=0)
    with refused("no_search", "`beam_size`"):
        regard.load(folders["decoder"]).look("the", beam_size=2)
    with refused("ensemble", "2 models"):
        regard.load([folders["encoder-decoder"]] * 2).look("the")


@pytest.mark.parametrize("engine", ["torch", "ctranslate2"])
@pytest.mark.parametrize("wrong", [-1, 10**6, 1.5])
def test_ids_that_are_no_tokens_are_refused_before_anything_runs(models, engine, wrong):
    for source, target in (([wrong], None), ([wrong], [9]), ([9], [wrong])):
        with refused("unknown_token", str(wrong)):
            models[engine].look(source, target)


@pytest.mark.parametrize("engine", ["torch", "ctranslate2"])
def test_a_search_begins_with_its_prefix_whatever_the_engine(models, engine):
    assert models[engine].look(SOURCE, prefix=[9, 11]).outputs.ids[1:3] == (9, 11)


def test_translating_does_not_wait_for_what_looking_needs(folders):
    program = (
        "import sys, regard\n"
        "regard.load(sys.argv[1], threads=1, engine='ctranslate2').translate('猫')\n"
        "sys.exit(any(name in sys.modules for name in ('torch', 'regard.look.trace.recorder')))"
    )
    command = [sys.executable, "-c", program, str(folders["encoder-decoder"])]
    assert subprocess.run(command, check=False).returncode == 0


def test_a_model_of_both_directions_is_told_which_one(tmp_path):
    both = regard.save_bundle(
        tmp_path / "both",
        model_of(torch.float32),
        subwords=subwords().model,
        task=TaskConfig(source="zh", target="en", both_directions=True),
    )
    model = regard.load(both, engine="torch", threads=1)
    assert [model.look(text, "a cat").inputs[0].text for text in ("猫", "the cat")] == ["<2en>", "<2zh>"]
    asked = model.look("12", "a cat", to="zh")
    assert (asked.inputs[0].text, asked.inputs[0].special) == ("<2zh>", True)
