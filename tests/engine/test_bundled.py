"""Models that come with the package are found by name, and one of them where no name is given."""

import shutil

import pytest

import regard
from regard import bundled
from regard.engine.loading import model_folder
from regard.errors import ConfigError


@pytest.fixture
def bundle(talkers, tmp_path, monkeypatch):
    """A package that has one model."""
    shutil.copytree(talkers[0], tmp_path / "package" / bundled.DEFAULT)
    monkeypatch.setattr(bundled, "_HERE", tmp_path / "package")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "package" / bundled.DEFAULT


def test_the_default_is_what_is_loaded_without_a_name(bundle, talkers):
    assert bundled.names() == [bundle.name]
    assert regard.load().translate("一百").text == regard.load(talkers[0]).translate("一百").text


def test_a_folder_of_that_name_in_the_working_directory_is_meant_first(bundle, talkers, tmp_path):
    assert model_folder("zh-en") == bundle
    shutil.copytree(talkers[1], tmp_path / "zh-en")
    assert model_folder("zh-en").resolve() == tmp_path / "zh-en"


def test_what_is_not_bundled_is_said_in_words(tmp_path, monkeypatch):
    monkeypatch.setattr(bundled, "_HERE", tmp_path)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match="no model 'zh-en' comes with this installation"):
        regard.load()
