"""Whose the folder of a run is."""

import pytest

from regard.config import read_config
from regard.training.checkpoints.run_folder import claim
from tests.refusals import refused

CONFIG = read_config(preset="numerals")


def test_a_folder_with_nothing_but_prepared_data_is_free_for_a_run(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "key").write_text("made from this")
    claim(tmp_path, CONFIG)
    assert read_config(file=tmp_path / "config.toml") == CONFIG


@pytest.mark.parametrize("held", ["data/train.txt", "notes.txt"])
def test_a_folder_with_files_of_ones_own_is_not(tmp_path, held):
    (tmp_path / held).parent.mkdir(exist_ok=True)
    (tmp_path / held).write_text("mine")
    with refused("folder_in_use", str(tmp_path)):
        claim(tmp_path, CONFIG)
    assert [path.name for path in tmp_path.iterdir()] == [held.split("/")[0]]
