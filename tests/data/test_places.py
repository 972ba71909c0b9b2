"""Rows derived from lines are reported by those lines, and held out together."""

import json

import numpy as np
import pytest

from regard.data.cleaning import clean
from regard.data.cleaning.holding_out import Fate, HeldOutSizes
from regard.data.cleaning.report import make_report
from regard.data.reading import derived_corpus, table_corpus
from regard.data.reading.templates import LINE, read_numbered_examples, write_pairs
from tests.refusals import refused

TURNS = ("{turns}", "{turns}")


@pytest.fixture
def corpus(tmp_path):
    def corpus(*conversations):
        """A blank line, then a conversation a line; `talk.jsonl`, as a user has it."""
        file = tmp_path / "talk.jsonl"
        lines = (json.dumps({"turns": turns}) if turns else "" for turns in conversations)
        file.write_text("\n" + "".join(line + "\n" for line in lines))
        pairs = write_pairs(tmp_path / "run" / "train-0.jsonl", read_numbered_examples(file, TURNS))
        return derived_corpus({pairs: file}, ("input", "output"), LINE)

    return corpus


def conversations(n, opening="hello"):
    return [[opening, *(f"{i} says {j}" for j in range(2 + i % 5))] for i in range(n)]


def lines_of(cleaned, *fates):
    return {cleaned.place(int(i))[1] for i in np.flatnonzero(np.isin(cleaned.fates, fates))}


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_no_conversation_is_both_trained_on_and_held_out(corpus, seed):
    talk = corpus(*conversations(60))
    cleaned = clean(talk, compared=(0,), split=HeldOutSizes(validation=3, test=4), seed=seed)
    trained, validation, test = (
        lines_of(cleaned, fate) for fate in (Fate.TRAINING, Fate.VALIDATION, Fate.TEST)
    )
    assert (len(validation), len(test), len(trained)) == (3, 4, 53)
    assert len(trained | validation | test) == 60
    assert trained | validation | test == set(range(2, 62))
    # All begin with the same words: to hold out the answers to them would take them from all.
    assert [row for row in cleaned.rows() if row[0] == "hello"] == [
        ("hello", f"{line - 2} says 0") for line in sorted(trained)
    ]
    assert all(" ¶ " in read for rows in cleaned.held_out() for read, _ in rows)


def test_rows_of_several_lines_and_of_one_keep_their_places(tmp_path):
    files = tmp_path / "a.tsv", tmp_path / "b.csv", tmp_path / "c.jsonl"
    files[0].write_text("a\n\nb\n")
    files[1].write_text('"c\nd"\ne\n"f\n\ng"\nh\n')
    files[2].write_text('{"1": "i"}\n{"1": "j"}\n')
    cleaned = clean(table_corpus(*files, columns=[1]))
    places = [cleaned.place(i) for i in range(cleaned.n_lines)]
    lines = [(name.rpartition("/")[2], line) for name, line in places]
    assert lines == [
        *(("a.tsv", i) for i in (1, 2, 3)),
        *(("b.csv", i) for i in (1, 3, 4, 7)),
        *(("c.jsonl", i) for i in (1, 2)),
    ]
    assert cleaned.places.groups() is None


def test_dropped_rows_are_reported_by_the_line_they_come_from(corpus):
    cleaned = clean(corpus(["a", "b", "c"], None, ["a", "b", "c"], ["d", ""]))
    found = cleaned.dropped.as_dict()
    assert [place.rpartition("/")[2] for place in found["duplicate"]["first"]] == ["talk.jsonl:4"]
    assert found["empty"]["first"][0].endswith("talk.jsonl:5")
    assert "5 examples from 3 lines; 2 for training" in make_report(cleaned, ("inputs", "outputs")).as_text()


def test_two_conversations_are_too_few_to_hold_out(corpus):
    with refused("too_little_data", "2 rows"):
        clean(corpus(*conversations(2)), compared=(0,), split=HeldOutSizes())
    talk = corpus(*conversations(3))
    assert len(lines_of(clean(talk, compared=(0,), split=HeldOutSizes()), Fate.TRAINING)) == 1


def test_a_row_a_line_is_drawn_as_one(corpus):
    talk = corpus(*(turns[1:3] for turns in conversations(20)))
    cleaned = clean(talk, compared=(0,), split=HeldOutSizes(validation=2, test=2))
    assert (cleaned.count(Fate.VALIDATION), cleaned.count(Fate.TEST)) == (2, 2)
    assert cleaned.places.groups() is None
