"""Rows with named fields become pairs; a row that lacks one is named."""

import json

import pytest

from regard.data.reading.templates import (
    model_input,
    model_input_of_text,
    read_examples,
    read_pairs,
    write_pairs,
)
from regard.errors import CorpusError, RequestError

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
    with pytest.raises(CorpusError, match="no text in turns; the fields are dialogue"):
        list(read_pairs(file, ("{turns}", "{turns}")))


def test_a_field_may_stand_in_an_object(tmp_path):
    row = {"question": "Who?", "context": "Cats nap.", "answers": {"text": ["cats"], "start": [0]}}
    file = rows(tmp_path / "squad.jsonl", row)
    assert list(read_pairs(file, (ANSWER[0], "{answers.text}"))) == [("Who? Cats nap.", "cats")]
    with pytest.raises(CorpusError, match=r"no text in answer; .*answers\.text"):
        list(read_pairs(file, ANSWER))


def test_half_a_surrogate_pair_is_a_lost_letter(tmp_path):
    file = tmp_path / "a.jsonl"
    file.write_text('{"document": "a \\ud800 b", "summary": "c"}\n')
    out = write_pairs(tmp_path / "pairs.jsonl", file, ("{document}", "{summary}"))
    assert json.loads(out.read_text(encoding="utf-8"))["input"] == "a \ufffd b"


def test_a_line_of_a_megabyte_is_not_passed_over(tmp_path):
    file = rows(tmp_path / "a.jsonl", {"document": "a"}, {"document": "a" * 1_000_000})
    with pytest.raises(CorpusError, match=r"a\.jsonl:2: a line of a megabyte or more is not read"):
        list(read_pairs(file, ("{document}", "{document}")))


def test_a_list_is_told_how_it_becomes_rows(tmp_path):
    file = tmp_path / "a.json"
    file.write_text(json.dumps([{"document": "a"}], indent=1))
    with pytest.raises(CorpusError, match=r"a\.json:1: is not an object.*jq -c '\.\[\]'"):
        list(read_pairs(file, ("{document}", "{document}")))


def test_what_is_written_down_has_no_line_breaks(tmp_path):
    file = rows(
        tmp_path / "a.jsonl", {"document": "one\n\ntwo ", "summary": "both"}, {"document": 3, "summary": "x"}
    )
    out = write_pairs(tmp_path / "out" / "pairs.jsonl", file, ("{document}", "{summary}"))
    assert [json.loads(line)["input"] for line in out.read_text().splitlines()] == ["one two", "3"]


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ('{"question": "Who?", "contxt": "x", "answer": "y"}', "no text in context; did you mean contxt"),
        ('{"question": "Who?", "context": null, "answer": "y"}', "no text in context"),
        ('{"text": "x"}', "the fields are text; task.input and task.output say which fields are taken"),
        ("[1]", "is not an object"),
        ("{", "is not JSON"),
    ],
)
def test_a_row_that_cannot_be_used_is_told_with_its_line(tmp_path, row, problem):
    file = tmp_path / "qa.jsonl"
    file.write_text('{"question": "Who?", "context": "x", "answer": "y"}\n' + row + "\n")
    with pytest.raises(CorpusError, match=rf"qa\.jsonl:2: .*{problem}"):
        list(read_pairs(file, ANSWER))


def test_a_conversation_has_two_turns(tmp_path):
    with pytest.raises(CorpusError, match="not a list of two texts"):
        list(read_pairs(rows(tmp_path / "t.jsonl", {"turns": ["Hi."]}), ("{turns}", "{turns}")))
    with pytest.raises(RequestError, match="no text in question"):
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
    with pytest.raises(RequestError, match="no text in context"):
        model_input_of_text(template, '{"question": "who?"}')


def test_each_line_of_a_conversation_is_a_turn():
    said = "hello\n\nhello to you\n"
    assert model_input_of_text("{turns}", said) == "hello ¶ hello to you"
    assert model_input_of_text("{turns}", model_input_of_text("{turns}", said)) == "hello ¶ hello to you"
    assert model_input_of_text("{turns}", '{"turns": ["hello", "hello to\\nyou"]}') == "hello ¶ hello to you"
