import json
import logging
import struct
import sys
from dataclasses import replace
from time import sleep

import pytest

from regard.config import RunConfig
from regard.training.display.trackers import TRACKERS, numbers_of, open_tracker
from tests.refusals import refused

CONFIG = RunConfig(model=replace(RunConfig().model, d_model=64))


def step(number, **others):
    return {"step": number, "loss": 8.0 / number, "learning_rate": 1e-3, "accuracy": 0.25, **others}


RUN = [
    {"message": "words alone"},
    *map(step, range(1, 8)),
    {"step": 7, "valid_loss": 2.5, "sample": {"source": "a", "output": "b", "reference": "c"}},
    {"step": 7, "averaged": 5, "valid_loss": 2.25},
]
"""A run of seven steps."""


def follow(name, folder, events, config=CONFIG):
    with open_tracker(name, folder, config) as tell:
        for event in events:
            tell(event)


def killed_and_resumed(name, folder, pause=0.0):
    """A run that got as far as its fifth step, and was started again from a checkpoint of its third."""
    follow(name, folder, RUN[:6])
    sleep(pause)
    longer = replace(CONFIG, training=replace(CONFIG.training, max_steps=10**6))
    follow(name, folder, RUN[4:], longer)


def test_the_numbers_of_an_event():
    assert numbers_of(RUN[1]) == {"loss": 8.0, "learning_rate": 1e-3, "accuracy": 0.25}
    assert numbers_of(RUN[-2]) == {"valid_loss": 2.5}
    assert numbers_of(RUN[-1]) == {"averaged_valid_loss": 2.25}
    assert numbers_of({"step": 1, "loss": None, "done": True, "share_done": 0.5, "message": "x"}) == {}


@pytest.mark.parametrize(
    ("name", "hint"), [("tensorbord", "did you mean tensorboard"), ("x", "wandb, mlflow")]
)
def test_an_unknown_tracker_is_refused_with_the_known_ones(name, hint, tmp_path):
    with refused("unknown_choice", repr(name), hint):
        follow(name, tmp_path, [])


@pytest.mark.parametrize("name", TRACKERS)
def test_a_missing_package_is_told_with_the_command(name, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, TRACKERS[name].module, None)
    with refused("missing_package", name, "pip install 'regard[track]'"):
        follow(name, tmp_path, [])


# TensorBoard


def tensorboard_points(folder):
    """What TensorBoard would show: step and value of each point, by name."""
    accumulators = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    found = accumulators.EventAccumulator(str(folder / "tensorboard"), size_guidance={"scalars": 0})
    found.Reload()
    return {name: [(e.step, e.value) for e in found.Scalars(name)] for name in found.Tags()["scalars"]}


@pytest.fixture
def _tensorboard():
    pytest.importorskip("tensorboard")
    logging.getLogger("tensorboard").setLevel(logging.ERROR)


@pytest.mark.usefixtures("_tensorboard")
def test_tensorboard_shows_the_run(tmp_path):
    follow("tensorboard", tmp_path, RUN)
    points = tensorboard_points(tmp_path)
    assert points["loss"] == [(n, pytest.approx(8.0 / n)) for n in range(1, 8)]
    assert points["valid_loss"] == [(7, 2.5)]
    assert points["averaged_valid_loss"] == [(7, 2.25)]


@pytest.mark.usefixtures("_tensorboard")
def test_tensorboard_shows_no_step_twice_after_a_resume(tmp_path):
    killed_and_resumed("tensorboard", tmp_path)
    assert [number for number, _ in tensorboard_points(tmp_path)["loss"]] == [1, 2, 3, 4, 5, 6, 7]


@pytest.mark.usefixtures("_tensorboard")
def test_tensorboard_starts_with_the_first_number(tmp_path):
    follow("tensorboard", tmp_path, [{"message": "words"}, {"step": 1}])
    assert not (tmp_path / "tensorboard").exists()


# Weights & Biases, offline


@pytest.fixture
def _wandb(monkeypatch):
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    monkeypatch.delenv("WANDB_PROJECT", raising=False)


def wandb_records(file):
    """The records of one of their files: a header, then blocks of 32 KiB with checked, typed fragments."""
    internal = pytest.importorskip("wandb.proto.wandb_internal_pb2")
    data, place, whole = file.read_bytes(), 7, b""
    while place + 7 <= len(data):
        if (left := -place % 32768 or 32768) < 7:
            place += left
            continue
        _, length, kind = struct.unpack("<IHB", data[place : place + 7])
        whole += data[place + 7 : place + 7 + length]
        place += 7 + length
        if kind in (1, 4):  # a whole record, or the end of one
            yield internal.Record.FromString(whole)
            whole = b""


def wandb_files(folder):
    """One for each process of a run, once their own process has written them to the end."""
    import wandb

    wandb.teardown()
    return sorted(folder.glob("wandb/offline-run-*/*.wandb"))


def wandb_rows(folder):
    """Every number in every file of a run: (name, step, value)."""
    rows = []
    for file in wandb_files(folder):
        for record in wandb_records(file):
            items = {item.key or ".".join(item.nested_key): item.value_json for item in record.history.item}
            number = int(items["_step"]) if "_step" in items else record.history.step.num
            rows += [(name, number, json.loads(value)) for name, value in items.items() if name[0] != "_"]
    return rows


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("_wandb")
def test_wandb_is_told_each_step_once_by_both_halves_of_a_resumed_run(tmp_path):
    killed_and_resumed("wandb", tmp_path, pause=1.1)  # they name folders by the second
    rows = wandb_rows(tmp_path)
    assert sorted(n for name, n, _ in rows if name == "loss") == [1, 2, 3, 4, 5, 6, 7]
    assert ("valid_loss", 7, 2.5) in rows
    files = wandb_files(tmp_path)
    assert len(files) == 2
    assert len({file.name for file in files}) == 1, "both halves are one run to them"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("_wandb")
def test_wandb_knows_the_settings_and_begins_anew_with_a_first_step(tmp_path):
    follow("wandb", tmp_path, RUN[:3])
    follow("wandb", tmp_path, RUN[:3])
    files = wandb_files(tmp_path)
    assert len({file.name for file in files}) == 2
    assert sorted(n for name, n, _ in wandb_rows(tmp_path) if name == "loss") == [1, 1, 2, 2]
    (run,) = [r.run for r in wandb_records(files[0]) if r.WhichOneof("record_type") == "run"][:1]
    settings = {update.key: json.loads(update.value_json) for update in run.config.update}
    assert settings["model"]["d_model"] == 64
    assert run.project == "regard"


# MLflow, in a folder


@pytest.fixture
def _mlflow(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "mlruns").as_uri())
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    pytest.importorskip("mlflow")


def mlflow_runs():
    import mlflow

    return mlflow.MlflowClient().search_runs(["0"])


def mlflow_steps(run, name):
    import mlflow

    return [(m.step, m.value) for m in mlflow.MlflowClient().get_metric_history(run.info.run_id, name)]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("_mlflow")
def test_mlflow_is_told_each_step_once_by_both_halves_of_a_resumed_run(tmp_path):
    killed_and_resumed("mlflow", tmp_path)
    (run,) = mlflow_runs()
    assert sorted(mlflow_steps(run, "loss")) == [(n, 8.0 / n) for n in range(1, 8)]
    assert mlflow_steps(run, "averaged_valid_loss") == [(7, 2.25)]
    assert run.data.params["model.d_model"] == "64"
    assert (run.info.status, run.info.run_name) == ("FINISHED", tmp_path.name)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("_mlflow")
def test_mlflow_has_everything_when_the_run_is_over(tmp_path):
    follow("mlflow", tmp_path, map(step, range(1, 301)))
    (run,) = mlflow_runs()
    assert len(mlflow_steps(run, "loss")) == 300


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("_mlflow")
def test_mlflow_hears_of_a_failure(tmp_path):
    def events():
        yield step(1)
        raise ValueError("out of luck")

    with pytest.raises(ValueError, match="out of luck"):
        follow("mlflow", tmp_path, events())
    (run,) = mlflow_runs()
    assert run.info.status == "FAILED"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("_mlflow")
def test_a_tracker_that_does_not_start_is_a_mistake_one_can_mend(tmp_path):
    (tmp_path / "mlflow.json").write_text('{"id": "no such run", "told": {}}', encoding="utf-8")
    with refused("tracker_failed", "mlflow"):
        follow("mlflow", tmp_path, [step(5)])
