"""Rows with named fields become pairs; a row that lacks one is named."""

import json

import pytest

from regard.data.reading.templates import (
    model_input,
    model_input_of_text,
    read_examples,
    read_numbered_examples,
    read_pairs,
    write_pairs,
)
from tests.refusals import refused

ANSWER = ("{question} {context}", "{answer}")


def rows(file, *objects):
    file.write_text("".join(json.dumps(each, ensure_ascii=False) + "\n" for each in objects))
    return file


def test_fields_stand_where_the_templates_name_them(tmp_path):
    file = rows(
        tmp_path / "qa.jsonl", {"context": "Cats nap.", "question": "Who?", "answers": ["cats", "Cats"]}
    )
    assert list(read_pairs(file, ANSWER)) == [("Who? Cats nap.", "cats")]
    assert list(read_examples(file, ANSWER)) == [("Who? Cats nap.", ["cats", "Cats"])]


def test_lists_are_gone_through_in_step_and_nothing_is_right_twice(tmp_path):
    row = {"a": ["x", "y", "x"], "b": ["1", "2"], "c": "z"}
    ((_, right),) = read_examples(rows(tmp_path / "t.jsonl", row), ("{c}", "{a}-{b}-{c}"))
    assert right == ["x-1-z", "y-2-z", "x-2-z"]


def test_each_turn_is_learned_from_those_before_it(tmp_path):
    file = rows(tmp_path / "talk.jsonl", {"turns": ["Hi.", "Hello.", "Bye."]})
    pairs = list(read_pairs(file, ("{turns}", "{turns}")))
    assert pairs == [("Hi.", "Hello."), ("Hi. ¶ Hello.", "Bye.")]
    assert model_input("{turns}", {"turns": ["Hi.", "Hello."]}) == pairs[1][0]


def test_a_row_without_turns_is_told_the_fields_that_it_has(tmp_path):
    file = rows(tmp_path / "talk.jsonl", {"dialogue": ["Hi.", "Hello."]})
    with refused("missing_field", "turns", "the fields are dialogue"):
        list(read_pairs(file, ("{turns}", "{turns}")))


def test_a_field_may_stand_in_an_object(tmp_path):
    row = {"question": "Who?", "context": "Cats nap.", "answers": {"text": ["cats"], "start": [0]}}
    file = rows(tmp_path / "squad.jsonl", row)
    assert list(read_pairs(file, (ANSWER[0], "{answers.text}"))) == [("Who? Cats nap.", "cats")]
    with refused("missing_field", "answer", "answers.text"):
        list(read_pairs(file, ANSWER))


def test_half_a_surrogate_pair_is_a_lost_letter(tmp_path):
    file = tmp_path / "a.jsonl"
    file.write_text('{"document": "a \\ud800 b", "summary": "c"}\n')
    out = write_pairs(tmp_path / "pairs.jsonl", read_numbered_examples(file, ("{document}", "{summary}")))
    assert json.loads(out.read_text(encoding="utf-8"))["input"] == "a \ufffd b"


def test_a_line_of_a_megabyte_is_not_passed_over(tmp_path):
    file = rows(tmp_path / "a.jsonl", {"document": "a"}, {"document": "a" * 1_000_000})
    with refused("line_too_long", "a.jsonl:2: "):
        list(read_pairs(file, ("{document}", "{document}")))


def test_a_list_is_told_how_it_becomes_rows(tmp_path):
    file = tmp_path / "a.json"
    file.write_text(json.dumps([{"document": "a"}], indent=1))
    with refused("not_json", "a.json:1: ", "jq -c '.[]'"):
        list(read_pairs(file, ("{document}", "{document}")))


def test_what_is_written_down_has_no_line_breaks(tmp_path):
    file = rows(
        tmp_path / "a.jsonl", {"document": "one\n\ntwo ", "summary": "both"}, {"document": 3, "summary": "x"}
    )
    out = write_pairs(
        tmp_path / "out" / "pairs.jsonl", read_numbered_examples(file, ("{document}", "{summary}"))
    )
    assert [json.loads(line)["input"] for line in out.read_text().splitlines()] == ["one two", "3"]


@pytest.mark.parametrize(
    ("row", "code", "place"),
    [
        (
            '{"question": "Who?", "contxt": "x", "answer": "y"}',
            "missing_field",
            "context; did you mean contxt?",
        ),
        ('{"question": "Who?", "context": null, "answer": "y"}', "missing_field", "context"),
        ('{"text": "x"}', "missing_field", "the fields are text; task.input and task.output name the fields"),
        ("[1]", "not_json", ""),
        ("{", "not_json", ""),
    ],
)
def test_an_unusable_row_is_reported_with_its_line(tmp_path, row, code, place):
    file = tmp_path / "qa.jsonl"
    file.write_text('{"question": "Who?", "context": "x", "answer": "y"}\n' + row + "\n")
    with refused(code, "qa.jsonl:2: ", place):
        list(read_pairs(file, ANSWER))


def test_a_conversation_has_two_turns(tmp_path):
    with refused("bad_turns", "t.jsonl:1: "):
        list(read_pairs(rows(tmp_path / "t.jsonl", {"turns": ["Hi."]}), ("{turns}", "{turns}")))
    with refused("missing_field", "question"):
        model_input("{question}", {"context": "x"})


def test_a_question_without_an_answer_is_an_empty_text(tmp_path):
    file = rows(tmp_path / "qa.jsonl", {"context": "Cats nap.", "question": "Who?", "answers": []})
    assert list(read_pairs(file, ANSWER)) == [("Who? Cats nap.", "")]


def test_what_somebody_writes_is_read_as_in_training():
    template = "{question} {context}"
    assert model_input_of_text(template, "who?\n\n the  cat ") == "who? the cat"
    assert model_input_of_text(template, '{"question": "who?", "context": "the\\ncat"}') == "who? the cat"
    assert model_input_of_text(template, '{"a": 1}') == '{"a": 1}'  # a text about objects
    assert model_input_of_text(template, "{who}?\nme") == "{who}? me"
    with refused("missing_field", "context"):
        model_input_of_text(template, '{"question": "who?"}')


def test_each_line_of_a_conversation_is_a_turn():
    said = "hello\n\nhello to you\n"
    assert model_input_of_text("{turns}", said) == "hello ¶ hello to you"
    assert model_input_of_text("{turns}", model_input_of_text("{turns}", said)) == "hello ¶ hello to you"
    assert model_input_of_text("{turns}", '{"turns": ["hello", "hello to\\nyou"]}') == "hello ¶ hello to you"
