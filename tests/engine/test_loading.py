"""A model folder is opened with the engine that was asked for, or the fastest that can do the work."""

import gc
import os
import shutil
import subprocess
import sys

import pytest

import regard
from regard.bundle import describe_bundle, save_bundle
from regard.errors import BundleError
from tests.architecture.sources import ROOT
from tests.model.small import small_model
from tests.refusals import refused


def test_the_faster_engine_does_what_it_can_and_torch_the_rest(talkers):
    model = regard.load(talkers[0], threads=1)
    assert model.translate("三月").engine == "ctranslate2"
    mixed = model.translate("三月\n四月", glossary={"三": "three"})
    assert mixed.engine == "ctranslate2, torch"
    assert regard.load(talkers[0], engine="torch").translate("三月").engine == "torch"
    assert regard.load(talkers[0], engine="ctranslate2", threads=1).translate("三月").engine == "ctranslate2"


def test_a_cpu_without_int8_takes_float32(talkers, monkeypatch):
    monkeypatch.setattr("ctranslate2.get_supported_compute_types", lambda _: {"float32"})
    model = regard.load(talkers[0], threads=1)
    fine = regard.load(talkers[0], threads=1, quantisation="float32").translate("三月")
    assert model.translate("三月") == fine


def test_the_folder_of_a_run_means_its_best_model(talkers, tmp_path):
    shutil.copytree(talkers[0], tmp_path / "run" / "best")
    expected = regard.load(talkers[0], threads=1).translate("三月").text
    assert regard.load(tmp_path / "run", threads=1).translate("三月").text == expected


def test_several_models_are_one_ensemble(talkers):
    """Of the same model twice, the probabilities are its own; of two models, others."""
    texts = ["三月", "四月二日", "一千"]
    alone, twice, both = (
        [each.log_prob for each in regard.load(folders, engine="torch").translate(texts, beam_size=1)]
        for folders in (talkers[0], [talkers[0]] * 2, talkers)
    )
    assert twice == pytest.approx(alone, abs=1e-4)
    assert both != pytest.approx(alone, abs=1e-2)
    assert regard.load(talkers).translate("三月").engine == "torch"


def test_what_cannot_be_loaded_is_refused(talkers, tmp_path, subwords):
    one = talkers[0]
    mute = save_bundle(tmp_path / "mute", small_model())
    other = save_bundle(tmp_path / "other", small_model(), subwords=subwords.model + b"\x00")
    for code, place, folder, options in [
        ("no_model", "folder", [], {}),
        ("unknown_engine", "'tensorrt'; there are auto, torch, ctranslate2", one, {"engine": "tensorrt"}),
        ("unusable_engine", "not an ensemble", talkers, {"engine": "ctranslate2"}),
        ("unusable_engine", "`device='cuda'`", one, {"engine": "ctranslate2", "device": "cuda"}),
        ("unusable_quantisation", "'int8'", one, {"engine": "torch", "quantisation": "int8"}),
        ("no_vocabulary", "mute", mute, {}),
        ("ensemble_mismatch", "other", [one, other], {}),
    ]:
        with refused(code, place):
            regard.load(folder, **options)
    with pytest.raises(BundleError, match="nowhere"):
        regard.load(tmp_path / "nowhere")


@pytest.mark.parametrize(("architecture", "verb"), [("decoder", "generate"), ("encoder", "classify")])
def test_a_verb_that_a_model_lacks_names_its_own(tmp_path, subwords, architecture, verb):
    alone = small_model(architecture=architecture)
    with refused("no_vocabulary", "mute"):
        regard.load(save_bundle(tmp_path / "mute", alone))
    folder = save_bundle(tmp_path / "model", alone, subwords=subwords.model)
    assert regard.load([folder]).folders == (folder,)
    model = regard.load(folder)
    for method, arguments in {
        "translate": ("三",),
        "stream": ("三",),
        "score": (["三"], ["3"]),
        "respond": ("三",),
        "translate_lines": (["三"],),
        "measure_alignment": (["三"], ["3"]),
        "generate" if verb == "classify" else "classify": ("三",),
    }.items():
        with refused("wrong_task", str(folder), f"use {verb}"):
            getattr(model, method)(*arguments)
    with refused("wrong_task", "use translate"):
        regard.load().classify("三")


def test_a_model_folder_is_described_once_on_the_way_to_a_translation(talkers, monkeypatch):
    calls = []

    def counted(folder):
        calls.append(folder)
        return describe_bundle(folder)

    for name, module in list(sys.modules.items()):
        if name.startswith("regard.") and getattr(module, "describe_bundle", None) is describe_bundle:
            monkeypatch.setattr(module, "describe_bundle", counted)
    assert regard.load(talkers[0], threads=1).translate("三月").engine == "ctranslate2"
    assert calls == [talkers[0]]


def test_a_device_that_is_not_there_is_refused(talkers):
    with refused("unusable_device", "`device='cuda:99'`"):
        regard.load(talkers[0], device="cuda:99").translate("三月")


def test_a_stream_ends_when_ctranslate2_has_let_go_of_it(talkers):
    """Else its thread may come back to an interpreter that is ending, and abort the process."""
    model = regard.load(talkers[0], engine="ctranslate2", threads=1)
    for _ in range(20):
        assert "".join(model.stream("三月"))
        next(pieces := model.stream("三月"))
        pieces.close()
        assert not any(type(each).__name__ == "_Callback" for each in gc.get_objects())


def test_torch_is_not_imported_for_ctranslate2(talkers):
    program = (
        "import sys, regard\n"
        "model = regard.load(sys.argv[1], threads=1)\n"
        "result = model.translate('三月。', n_best=2, token_scores=True)\n"
        "print(len(''.join(model.stream('三月'))), result.engine, 'torch' in sys.modules)\n"
    )
    command = [sys.executable, "-c", program, str(talkers[0])]
    done = subprocess.run(command, env=os.environ, capture_output=True, text=True, check=True, cwd=ROOT)
    length, engine, has_torch = done.stdout.split()
    assert int(length) > 0
    assert (engine, has_torch) == ("ctranslate2", "False")
