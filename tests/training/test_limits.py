"""A run whose limits change goes on or ends; one that is interrupted early has a model."""

import json

import pytest
import torch

from regard.bundle import describe_bundle, load_bundle, weights_hash
from regard.config import read_config
from regard.engine.loading import model_folder
from regard.training.checkpoints.averaging import with_weights
from regard.training.loop import TrainingLoop
from regard.training.run import warmup_note
from regard.training.schedule import learning_rate
from regard.training.stopping import INTERRUPTED, Progress, limits_note, limits_of
from tests.refusals import refused
from tests.training.copying import config, data, stop_at

PAPER = ("training.schedule=paper", "training.learning_rate=0.5")


def train(folder, *settings, listeners=()):
    heard = []
    listeners = [*listeners, lambda event: heard.append(event["message"]) if "message" in event else None]
    run = TrainingLoop(folder / "run", config(*settings), data(folder / "data"), listeners=listeners)
    return run, run.train(), heard


def rates(folder):
    entries = map(json.loads, (folder / "run" / "journal.jsonl").read_text().splitlines())
    return {entry["step"]: entry["learning_rate"] for entry in entries if "learning_rate" in entry}


def test_a_finished_run_with_a_higher_limit_ends_like_one_that_had_it_from_the_start(tmp_path):
    """The paper's schedule does not depend on the end of the run."""
    whole, _, _ = train(tmp_path / "whole", *PAPER)
    _, reason, _ = train(tmp_path / "parts", *PAPER, "training.max_steps=13")
    assert reason == "13 steps are done"
    parts, reason, heard = train(tmp_path / "parts", *PAPER)
    assert (reason, heard) == ("30 steps are done", ["training.max_steps was 13 and is 30"])
    assert weights_hash(parts.model) == weights_hash(whole.model)
    assert rates(tmp_path / "parts") == rates(tmp_path / "whole")
    assert read_config(file=tmp_path / "parts" / "run" / "config.toml").training.max_steps == 30


@pytest.mark.parametrize("schedule", ["cosine", "warmup-stable-decay"])
def test_a_schedule_that_ends_with_the_run_follows_the_new_limit(tmp_path, schedule):
    settings, longer = f"training.schedule={schedule}", "training.max_steps=50"
    train(tmp_path, settings)
    run, reason, (note,) = train(tmp_path, settings, longer, listeners=stop_at(33))
    rate = learning_rate(run.config.training, 24, 31)
    assert (reason, rate > 5 * rates(tmp_path)[30]) == (INTERRUPTED, True)
    assert note == (
        f"training.max_steps was 30 and is 50: the schedule {schedule} follows the new limit, and the "
        f"learning rate of the next step is {rate:.2e} instead of 0.00e+00"
    )
    # From now on the run is as if it had always had this limit, and resumes to the bit.
    resumed, reason, heard = train(tmp_path, settings, longer)
    assert (reason, heard) == ("50 steps are done", [])
    expected = {step: learning_rate(run.config.training, 24, step) for step in range(31, 51)}
    assert {step: rate for step, rate in rates(tmp_path).items() if step > 30} == pytest.approx(expected)
    train(tmp_path / "again", settings)
    again, _, _ = train(tmp_path / "again", settings, longer)
    assert weights_hash(again.model) == weights_hash(resumed.model)


def test_a_limit_below_what_is_done_ends_the_run_with_a_whole_model(tmp_path):
    train(tmp_path, listeners=stop_at(7))
    run, reason, heard = train(tmp_path, "training.max_steps=5")
    assert heard == ["training.max_steps was 30 and is 5: the run ends here, at step 7"]
    assert reason == "7 steps are done"
    for name in ("best", "last"):
        assert weights_hash(tmp_path / "run" / name) == weights_hash(run.model)
    assert load_bundle(tmp_path / "run" / "best").metrics["valid_loss"] > 0
    longer, reason, heard = train(tmp_path)  # and it can go on
    assert (reason, longer.progress.step, heard) == ("30 steps are done", 30, [])


def test_other_limits_of_a_resumed_run_may_change_and_other_settings_may_not(tmp_path):
    train(tmp_path, "training.max_epochs=1")
    _, reason, heard = train(tmp_path, "training.max_minutes=1e-9", "training.patience=5")
    assert reason == "1e-09 minutes are over"
    assert "training.max_epochs was 1 and is none" in heard[0]
    assert "training.max_minutes was none and is 1e-09" in heard[0]
    assert "training.patience was 0 and is 5" in heard[0]
    before = (tmp_path / "run" / "config.toml").read_text()
    with refused("settings_changed", "training.warmup_steps was 10 and is 11") as caught:
        train(tmp_path, "training.max_steps=60", "training.warmup_steps=11")
    assert len(caught.value.problems) == 1
    assert (tmp_path / "run" / "config.toml").read_text() == before


def test_a_checkpoint_of_an_older_version_says_nothing_of_limits():
    training = config().training
    assert limits_note({}, training, 24, Progress(step=3), 0.1) is None
    assert limits_note(limits_of(training), training, 24, Progress(step=3), 0.1) is None


def test_the_average_that_an_ended_run_kept_is_what_later_models_must_be_better_than(tmp_path):
    settings = [
        *("training.average_checkpoints=3", "training.learning_rate=0.5", "training.schedule=paper"),
        "training.max_steps=60",
    ]
    run, _, _ = train(tmp_path, *settings)
    best = load_bundle(tmp_path / "run" / "best")
    assert best.metrics["averaged"] == 3
    assert best.metrics["valid_loss"] == run.progress.best_loss
    worse = config(*settings, "training.max_steps=61")
    longer = TrainingLoop(tmp_path / "run", worse, data(tmp_path / "data"))
    assert longer.progress.best_loss == best.metrics["valid_loss"]


def test_a_run_without_a_validated_model_has_that_of_its_newest_checkpoint(tmp_path):
    """Whether it was asked to stop or killed; with the first validation the best one takes its place."""
    ema = "training.ema_decay=0.8"

    def crash(event):
        if event.get("step") == 7 and "loss" in event:
            raise MemoryError

    with pytest.raises(MemoryError):
        train(tmp_path, ema, listeners=[crash])
    path = tmp_path / "run"
    with pytest.warns(UserWarning, match=r"run has no validated model yet: using the model of step 4$"):
        assert describe_bundle(model_folder(path)).metrics == {"step": 4}
    run, reason, _ = train(tmp_path, ema, listeners=stop_at(6))
    assert reason == INTERRUPTED
    with pytest.warns(UserWarning, match="using the model of step 6$"):
        kept = load_bundle(model_folder(path))
    with with_weights(run.model, run.learner.average.weights):
        for name, weight in kept.model.named_parameters():
            assert torch.equal(weight, dict(run.model.named_parameters())[name])
    train(tmp_path, ema, listeners=stop_at(11))
    assert model_folder(path) == path / "best"
    assert not (path / "last").exists()


@pytest.mark.parametrize(
    ("settings", "beginning"),
    [
        (
            (*PAPER, "training.max_steps=8"),
            "the learning rate was still rising: training.warmup_steps is 20, and",
        ),
        # A schedule that ends with the run has fallen before a warm-up that is too long is over.
        (("training.max_steps=8",), "training.warmup_steps is 20, and the run had 8 steps"),
        (("training.max_steps=20",), None),
    ],
)
def test_the_rate_is_said_to_rise_only_if_it_did(tmp_path, settings, beginning):
    run, _, _ = train(tmp_path, "training.warmup_steps=20", *settings)
    note = warmup_note(run)
    assert note is None if beginning is None else note.startswith(beginning)
