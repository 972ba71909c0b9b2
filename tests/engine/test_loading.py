"""A model folder is opened with the engine that was asked for, or the fastest that can do the work."""

import gc
import os
import re
import shutil
import subprocess
import sys

import pytest

import regard
from regard.bundle import save_bundle
from regard.errors import BundleError, ConfigError
from tests.architecture.sources import ROOT
from tests.model.small import small_model


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


def refused(error, words, *arguments, **options):
    with pytest.raises(error, match=re.escape(words)):
        regard.load(*arguments, **options)


def test_what_cannot_be_loaded_is_refused(talkers, tmp_path, subwords):
    one = talkers[0]
    refused(BundleError, "there is no such folder", tmp_path / "nowhere")
    refused(ConfigError, "at least one folder", [])
    refused(ConfigError, "no engine 'tensorrt'; there are auto, torch, ctranslate2", one, engine="tensorrt")
    refused(ConfigError, "one model, and not several", talkers, engine="ctranslate2")
    refused(ConfigError, "`device='cuda'` was asked for", one, engine="ctranslate2", device="cuda")
    refused(ConfigError, "`quantisation='int8'` is for CTranslate2", one, engine="torch", quantisation="int8")
    for architecture in ("decoder", "encoder"):
        alone = small_model(architecture=architecture)
        refused(BundleError, "has no subwords.model", save_bundle(tmp_path / f"mute-{architecture}", alone))
        folder = save_bundle(tmp_path / architecture, alone, subwords=subwords.model)
        words = f"a model of the {architecture} alone, which does not translate"
        assert regard.load([folder]).folders == (folder,)
        model = regard.load(folder)  # it can be looked at
        for ask, texts in (
            (model.translate, ("三",)),
            (model.stream, ("三",)),
            (model.score, (["三"], ["3"])),
        ):
            with pytest.raises(ConfigError, match=words):
                ask(*texts)
    mute = save_bundle(tmp_path / "mute", small_model())
    refused(BundleError, "has no subwords.model", mute)
    other = save_bundle(tmp_path / "other", small_model(), subwords=subwords.model + b"\x00")
    refused(BundleError, "has other subwords than", [one, other])


def test_a_device_that_is_not_there_is_refused(talkers):
    with pytest.raises(ConfigError, match="`device='cuda:99'` cannot be used"):
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
