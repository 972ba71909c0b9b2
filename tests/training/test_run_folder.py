"""Whose the folder of a run is."""

import pytest

from regard.bundle import describe_bundle
from regard.config import read_config
from regard.engine.loading import model_folder
from regard.training.checkpoints.run_folder import claim, locked
from tests.refusals import refused

CONFIG = read_config(preset="numerals")


def test_a_folder_with_nothing_but_prepared_data_is_free_for_a_run(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "key").write_text("made from this")
    claim(tmp_path, CONFIG)
    assert read_config(file=tmp_path / "config.toml") == CONFIG


def test_what_a_killed_process_left_does_not_keep_a_folder_from_being_used(tmp_path):
    (tmp_path / ".lock").touch()
    (tmp_path / ".config.toml.0a1b2c3d.partial").touch()
    claim(tmp_path, CONFIG)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".lock", "config.toml"]


def test_a_run_without_a_model_and_one_whose_model_is_set_aside_are_refused_with_what_to_do(tmp_path):
    run = tmp_path / "run"
    with locked(run):
        claim(run, CONFIG)
    with refused("not_a_model_folder", str(run), "`regard train`"):
        describe_bundle(model_folder(run))
    (run / ".best.0a1b2c3d.old").mkdir()
    with refused("missing_model", str(run / "best"), ".best.0a1b2c3d.old"):
        describe_bundle(model_folder(run))


@pytest.mark.parametrize("held", ["data/train.txt", "notes.txt"])
def test_a_folder_with_files_of_ones_own_is_not(tmp_path, held):
    (tmp_path / held).parent.mkdir(exist_ok=True)
    (tmp_path / held).write_text("mine")
    with refused("folder_in_use", str(tmp_path)):
        claim(tmp_path, CONFIG)
    assert [path.name for path in tmp_path.iterdir()] == [held.split("/")[0]]
