"""The built-in corpus of three tasks: small, the same everywhere, and learned in less than a minute."""

import json
import re

import pytest

from regard.data import rooms
from regard.training.run import train
from tests.refusals import refused

TINY = {
    "model.d_model": 12,
    "model.n_heads": 3,
    "model.d_ff": 16,
    "model.encoder_layers": 1,
    "model.decoder_layers": 1,
    "training.max_steps": 2,
    "training.validate_every": 2,
    "training.checkpoint_every": 2,
}


@pytest.mark.parametrize("task", rooms.MAKERS)
def test_rows_are_the_same_for_a_seed_and_no_blank_is_left(task):
    made = list(rooms.rows(task, "train", 300, seed=1))
    assert made == list(rooms.rows(task, "train", 300, seed=1))
    assert made != list(rooms.rows(task, "train", 300, seed=-1))
    assert not re.search("[{}]", "".join(map(str, (value for row in made for value in row.values()))))


def test_no_story_is_in_two_splits():
    def stories(split):
        return {row["context"] for row in rooms.rows("answer", split, 2000, seed=1)}

    train_set, valid, test = map(stories, ("train", "valid", "test"))
    assert not (train_set & valid) | (train_set & test) | (valid & test)


def test_an_answer_is_in_the_story():
    for row in rooms.rows("answer", "test", 200, seed=2):
        assert row["answer"].removeprefix("in ").removeprefix("on ").removeprefix("the ") in row["context"]


def test_every_turn_that_is_learned_follows_from_the_earlier_ones():
    for row in rooms.rows("converse", "train", 200, seed=2):
        first, reply, question, last = row["turns"]
        asked = next(asked for asked in rooms.REPLIES if first.endswith(asked))
        before, after = (part for part in re.split(r"\{\w+\}", rooms.REPLIES[asked]))
        assert reply.removeprefix(before).removesuffix(after) in first
        assert question == rooms.LATER
        assert f"I am {last.removeprefix('You are ')}" in first


@pytest.mark.slow
@pytest.mark.parametrize("task", rooms.MAKERS)
def test_a_model_is_trained_without_a_file(task, tmp_path, monkeypatch):
    monkeypatch.setattr(rooms, "SIZES", {"train": 120, "valid": 24, "test": 24})
    run = train(task=task, builtin="rooms", out=tmp_path / "run", settings=TINY, device="cpu")
    assert run.result is not None
    assert run.config.task.name == task
    again = train(task=task, builtin="rooms", out=tmp_path / "run", settings=TINY, device="cpu")
    assert again.result.record == json.loads(json.dumps(run.result.record))
    with refused("bad_builtin", "takes no files"):
        train(tmp_path / "a.jsonl", task=task, builtin="rooms")
    with refused("bad_builtin", "'numerals'", "rooms"):
        train(task=task, builtin="numerals")


@pytest.mark.slow
def test_the_command_that_is_named_makes_a_model_that_answers(tmp_path):
    run = train(task="answer", builtin="rooms", out=tmp_path / "run", device="cpu")
    assert run.scores.exact > 90
    row = next(iter(rooms.rows("answer", "test", 1, seed=5)))
    assert run.model.respond(row).text == row["answer"]
