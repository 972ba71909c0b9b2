"""Sizes that follow from the data and the machine, and that stay where they are written."""

import re
from dataclasses import replace

import pytest
import torch

from regard.config import read_config
from regard.training import plan_table, planning
from regard.training.display.standing import duration
from regard.training.distributed.world import World
from regard.training.plan_table import rounded
from regard.training.planning import plan, seconds_per_step, with_room
from regard.training.recipes import RECIPES
from regard.training.run import train
from tests.training.copying import data

WORLD = World(torch.device("cpu"))
QUICK = ("training.precision=float32", "model.max_length=24")


def config(*settings):
    return read_config(preset="small", settings=[*QUICK, *settings])


@pytest.fixture(scope="module")
def lesson(tmp_path_factory):
    return data(tmp_path_factory.mktemp("planning"))


@pytest.fixture
def corpus(lesson, monkeypatch):
    """A lesson whose corpus has any number of tokens, and a machine whose steps take any time."""

    def of(tokens, seconds=lambda _: 0.1):
        monkeypatch.setattr(type(lesson), "n_tokens", lambda *_: tokens)
        monkeypatch.setattr(planning, "seconds_per_step", lambda config, *_, **__: seconds(config))
        return lesson

    return of


def test_larger_corpora_get_larger_models_batches_and_more_steps_and_less_dropout(corpus):
    plans = [plan(config(), corpus(n), (), WORLD).config for n in (5_000, 100_000, 3_000_000, 100_000_000)]
    for what in ("d_model", "encoder_layers"):
        sizes = [getattr(each.model, what) for each in plans]
        assert sizes == sorted(sizes)
    assert [each.model.dropout for each in plans] == sorted(
        (each.model.dropout for each in plans), reverse=True
    )
    assert plans[0].model.d_model < plans[1].model.d_model < plans[-1].model.d_model
    assert plans[0].training.batch_tokens < plans[-1].training.batch_tokens
    assert plans[0].training.max_steps < plans[1].training.max_steps < plans[2].training.max_steps


def test_a_slow_machine_gets_fewer_steps_and_then_a_smaller_model(corpus):
    def like_products(slowness):
        return lambda config: slowness * config.model.d_model**2 * config.model.encoder_layers

    plans = [plan(config(), corpus(100_000, like_products(s)), (), WORLD).config for s in (1e-8, 2e-6, 2e-5)]
    assert [each.model.d_model for each in plans] == [256, 256, 128]
    assert plans[0].training.max_steps > plans[1].training.max_steps
    for each, slowness in zip(plans, (1e-8, 2e-6, 2e-5), strict=True):
        minutes = each.training.max_steps * like_products(slowness)(each) / 60
        assert minutes <= RECIPES["encoder-decoder"].usual_minutes(100_000)


def test_what_is_written_stays_and_the_rest_follows_it(corpus):
    written = ("training.max_steps", "model.d_model", "training.learning_rate")
    own = config("training.max_steps=40", "model.d_model=48", "training.learning_rate=0.0007")
    planned = plan(own, corpus(100_000), written, WORLD).config
    assert (planned.model.d_model, planned.training.max_steps, planned.training.learning_rate) == (
        48,
        40,
        7e-4,
    )
    assert planned.training.warmup_steps == 4
    assert planned.training.validate_every < 40


def test_a_limit_in_minutes_chooses_the_model_but_not_the_steps(corpus):
    def seconds(config):
        return 0.5 if config.model.d_model == 256 else 0.05

    short, long = (
        plan(
            config(f"training.max_minutes={minutes}"),
            corpus(100_000, seconds),
            ("training.max_minutes",),
            WORLD,
        )
        for minutes in (1, 60)
    )
    assert short.config.model.d_model < long.config.model.d_model == 256
    assert short.config.training.max_steps * 0.05 > 60, "the minute must be what ends the run"
    assert short.config.training.validate_every * 0.05 < 10


def test_the_table_says_what_was_chosen_and_how_to_change_it(corpus):
    text = plan(config(), corpus(100_000), (), WORLD).text
    for part in ("256 wide, 3 + 3 layers", "100,000 tokens", "steps", "learning rate", "--max-minutes"):
        assert part in text


def test_the_table_says_how_long_the_steps_take_with_validations(corpus):
    planned = plan(config(), corpus(100_000), (), WORLD)
    minutes = planned.config.training.max_steps * 0.1 / 60 / RECIPES["encoder-decoder"].spent
    assert f"about {duration(60 * minutes)}." in planned.text
    limited = plan(config("training.max_minutes=2"), corpus(100_000), ("training.max_minutes",), WORLD)
    assert "about 2 min." in limited.text


def test_passes_that_are_written_are_all_done(corpus):
    own = config("training.max_epochs=90")
    planned = plan(own, corpus(100_000), ("training.max_epochs",), WORLD)
    steps = 90 * 100_000 / planned.config.training.batch_tokens
    assert planned.config.training.max_steps > steps, "the passes must be what ends the run"
    assert planned.config.model.d_model == 256, "who wants many passes has the time for them"
    assert "90 passes" in planned.text
    minutes = steps * 0.1 / 60 / RECIPES["encoder-decoder"].spent
    assert f"about {duration(60 * minutes)}." in planned.text


def test_steps_that_are_written_are_all_expected(corpus):
    own = config("training.max_steps=7000")
    planned = plan(own, corpus(100_000), ("training.max_steps",), WORLD)
    assert planned.config.training.max_steps == 7000
    assert f"about {duration(7000 * 0.1 / RECIPES['encoder-decoder'].spent)}." in planned.text
    assert planned.config.training.validate_every * 20 > 7000


def test_the_paper_s_rate_keeps_its_warm_up(corpus):
    own = config("training.learning_rate=none", "training.schedule=paper", "training.warmup_steps=500")
    planned = plan(own, corpus(300), ("training.learning_rate", "training.schedule"), WORLD).config
    assert planned.training.warmup_steps == 500, "a short one would give a high rate"
    assert planned.training.max_steps < 500


@pytest.mark.parametrize(
    ("settings", "seconds", "flags"),
    [
        ((), 0.1, ["--max-minutes", "--max-epochs"]),
        ((), 1.0, ["--max-minutes", "--max-minutes"]),
        (("training.max_minutes=2",), 1.0, ["--max-minutes", "--max-minutes"]),
        (("training.max_steps=500",), 0.5, ["--max-minutes", "--max-steps 1500"]),
        (("training.max_steps=5",), 0.5, ["--max-steps 15"]),
    ],
)
def test_the_command_for_another_length_gives_one(corpus, settings, seconds, flags):
    def planned(*settings):
        written = [setting.partition("=")[0] for setting in settings]
        return plan(config(*settings), corpus(100_000, lambda _: seconds), written, WORLD)

    def n_expected(text):
        (line,) = (line for line in text.splitlines() if line.startswith("  steps"))
        return int(re.search("[0-9,]+", line)[0].replace(",", ""))

    text = planned(*settings).text
    advised = re.findall(r"--(max-\w+) ([0-9.]+\d|\d)", text)
    assert [flag.split()[0].lstrip("-") for flag in flags] == [name for name, _ in advised]
    assert all(flag in text for flag in flags)
    counts = [n_expected(text)]
    for name, value in advised:
        setting = f"training.{name.replace('-', '_')}"
        others = [each for each in settings if not each.startswith(setting)]
        counts.append(n_expected(planned(*others, f"{setting}={value}").text))
    assert counts[-1] > 1.5 * counts[0]
    assert len(counts) < 3 or counts[1] < 0.7 * counts[0]


@pytest.mark.parametrize(
    ("architecture", "shown"),
    [
        ("encoder", "128 wide, 2 layers"),
        ("decoder", "128 wide, 3 layers"),
        ("encoder-decoder", "2 + 2 layers"),
    ],
)
def test_the_table_shows_the_stacks_that_there_are(corpus, architecture, shown):
    shape = RECIPES[architecture].shapes[0].sizes(architecture)
    labels = ["model.n_labels=3"] if architecture == "encoder" else []
    sizes = [f"model.{name}={size}" for name, size in shape.items()]
    planned = config(f"model.architecture={architecture}", *labels, *sizes)
    length = plan_table.Length(40, 2.5, 3.0, is_cut=False, is_smaller=False)
    assert shown in plan_table.table(planned, corpus(3_000), (), length, 3_000)


def test_the_table_fits_a_terminal(corpus):
    for seconds in (0.001, 0.1, 1.0, 20.0):
        lines = plan(config(), corpus(123_456_789, lambda _: seconds), (), WORLD).text.splitlines()  # noqa: B023
        assert max(map(len, lines)) <= 80, lines


def test_large_batches_are_timed_by_small_ones(lesson, monkeypatch):
    taken = []
    monkeypatch.setattr(
        planning.TrainingLoop,
        "time_steps",
        lambda loop, *_: taken.append(loop.config.training.batch_tokens) or 0.25,
    )
    assert seconds_per_step(config("training.batch_tokens=20480"), lesson, WORLD) == 2.5
    assert taken == [2048]


def test_steps_are_timed_by_taking_some(lesson):
    small, large = (
        seconds_per_step(
            config(f"model.d_model={d}", "model.n_heads=2", "training.batch_tokens=500"), lesson, WORLD
        )
        for d in (16, 512)
    )
    assert 0 < small < large


@pytest.mark.parametrize(("number", "found"), [(0.3, 1), (1.9, 1), (7, 6), (14, 12), (99, 80), (1999, 1500)])
def test_chosen_numbers_have_few_digits(number, found):
    assert rounded(number) == found


@pytest.mark.slow
def test_a_planned_run_is_resumed_as_it_was_planned(tmp_path):
    rows = [(f"{i} {i % 7}", f"{i % 7} {i}") for i in range(300)]
    settings = {"training.max_steps": 4, "model.dropout": 0.0}
    first = train(rows, out=tmp_path / "run", settings=settings, source="zh", target="en")
    again = train(
        rows, out=tmp_path / "run", settings={**settings, "training.max_steps": 6}, source="zh", target="en"
    )
    assert again.config.model == first.config.model
    assert again.config.training.batch_tokens == first.config.training.batch_tokens
    assert [event["step"] for event in again.events if "loss" in event] == list(range(1, 7))
    assert any("chosen for" in message for message in first.messages)
    assert not any("chosen for" in message for message in again.messages)


@pytest.mark.slow
def test_a_limit_that_is_written_later_takes_the_place_of_the_chosen_steps(tmp_path):
    def go_on(**settings):
        shape = {"model.d_model": 12, "model.n_heads": 3, "model.encoder_layers": 1}
        named = {f"training.{name}": value for name, value in settings.items()}
        folder = {"out": tmp_path / "run", "source": "zh", "target": "en"}
        return train(rows, settings={**shape, "training.patience": 0, **named}, **folder)

    rows = [(f"{i} {i % 7}", f"{i % 7} {i}") for i in range(100)]
    first = go_on(max_epochs=2)
    assert "2 epochs are done" in first.reason
    n_events = len(first.events)
    # The same command does not go on; a longer one does, and the same again resumes that one.
    assert len(go_on(max_epochs=2).events) == n_events
    longer = go_on(max_epochs=11)
    assert "11 epochs are done" in longer.reason
    assert len(longer.events) > n_events
    assert go_on(max_epochs=11).config == longer.config
    # A limit that is not written any more does not hold: steps take the place of passes.
    assert go_on(max_steps=14).reason == "14 steps are done"


def test_a_longer_time_on_a_resumed_run_has_steps_enough_and_the_same_command_changes_nothing(corpus):
    begun = config("training.max_steps=60", "training.max_minutes=5")
    state = {"step": 50, "progress": {"seconds": 100.0}, "limits": {"max_minutes": 5.0, "max_epochs": None}}
    lesson, minutes = corpus(100_000), ("training.max_minutes",)
    assert with_room(begun, lesson, minutes, state) == begun
    longer = replace(begun, training=replace(begun.training, max_minutes=8.0))
    assert 8 * 60 / 2 < with_room(longer, lesson, minutes, state).training.max_steps < 8 * 60 * 2
    shorter = replace(begun, training=replace(begun.training, max_minutes=0.5))
    assert with_room(shorter, lesson, minutes, state) == shorter
    assert with_room(longer, lesson, (*minutes, "training.max_steps"), state) == longer
    assert with_room(longer, lesson, minutes, {}) == longer  # an unreadable state is reported elsewhere


def test_a_corpus_smaller_than_a_batch_is_passed_through_once_a_step(corpus):
    planned = plan(config("training.max_epochs=7"), corpus(300), ("training.max_epochs",), WORLD)
    assert planned.config.training.batch_tokens > 300
    assert "7 passes" in planned.text
    assert re.search(r"steps +about 7 ", planned.text)
