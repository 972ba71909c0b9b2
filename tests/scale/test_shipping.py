"""A parcel stands for a model folder by its content, wherever that lies."""

import shutil
from pathlib import Path

import pytest

from regard import bundled
from regard.errors import BundleError
from regard.scale.shipping import packed, unpacked
from tests.architecture.sources import ROOT
from tests.refusals import refused

GOLDEN = ROOT / "tests" / "golden" / "v1-encoder-decoder"


@pytest.fixture
def run(tmp_path, monkeypatch):
    """The folder of a run with a best model, in an empty working folder."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(GOLDEN, tmp_path / "run" / "best")
    return tmp_path / "run"


def test_the_same_content_has_the_same_key(run):
    parcel = packed(run)
    assert (parcel.path, parcel.files) == (run, None)
    assert parcel.key == packed(run / "best").key == packed(GOLDEN).key
    (run / "best" / "manifest.json").write_bytes(parcel.manifest + b"\n")
    assert packed(run).key != parcel.key


def test_what_is_at_its_own_path_stays_there(run):
    parcel = packed(run)
    assert unpacked(parcel) == run
    shutil.rmtree(run)
    with refused("changed_model", str(run), error=BundleError):
        unpacked(parcel)


def test_a_bundled_model_is_known_by_its_name(run, monkeypatch):
    monkeypatch.setattr(bundled, "_HERE", run)
    (run / "best").rename(run / "zh-en")
    parcel = packed(Path(bundled.DEFAULT))
    assert (parcel.path, unpacked(parcel)) == (run / "zh-en", run / "zh-en")


def test_a_damaged_folder_is_not_sent(run):
    weights = run / "best" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"?")
    with refused("damaged_model_folder", "model.safetensors", error=BundleError):
        packed(run, pytest.importorskip("ray"))
