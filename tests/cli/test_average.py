"""`regard average`, on the checkpoints of a real run."""

import pytest

from regard.bundle import load_bundle
from regard.cli import main
from regard.errors import BundleError
from regard.training.checkpoints.averaging import average_models, mean_of
from regard.training.checkpoints.checkpoint import checkpoints
from regard.training.loop import TrainingLoop
from tests.training.copying import config, data


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    TrainingLoop(folder / "run", config("training.max_steps=12"), data(folder / "data")).train()
    return folder / "run"


def ran(*words):
    with pytest.raises(SystemExit) as ended:
        main(["average", *map(str, words)])
    return ended.value.code


def test_checkpoints_and_model_folders_are_averaged(run, tmp_path, capsys):
    places = [*checkpoints(run / "checkpoints"), run / "last"]
    assert ran(*places, "--out", tmp_path / "mean") == 0
    assert "mean of 4 models" in capsys.readouterr().out
    written = load_bundle(tmp_path / "mean")
    expected = mean_of(places)
    for name, weight in written.model.named_parameters():
        assert (weight == expected[name]).all(), name
    assert written.metrics["averaged"] == [str(place) for place in places]


def test_another_model_is_refused_and_nothing_is_written(run, tmp_path, capsys):
    settings = config("training.max_steps=2", "model.d_ff=48")
    TrainingLoop(tmp_path / "run", settings, data(tmp_path / "data")).train()
    assert ran(run / "last", tmp_path / "run" / "last", "--out", tmp_path / "mean") == 2
    said = capsys.readouterr().err
    assert "error[ensemble_mismatch]" in said
    assert "feed_forward" in said
    assert not (tmp_path / "mean").exists()


def test_a_place_that_holds_no_weights_is_named(run, tmp_path):
    with pytest.raises(BundleError, match="nowhere"):
        average_models([run / "last", tmp_path / "nowhere"], tmp_path / "mean")
