"""What people hear of a line."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.engine.results import Result
from regard.engine.translator import LineTranslator, mark_code
from regard.text.files.lines import InputLine
from tests.engine.documents import documents


class Writes:
    """A translator that writes one result whatever it reads."""

    refuses_long = False

    def __init__(self, result):
        self.result = result

    def direction(self, _text):
        return None

    def __call__(self, texts):
        return [self.result for _ in texts]


@pytest.mark.parametrize(
    ("result", "notes"),
    [
        (Result(text="Hund", engine="torch"), ()),
        (Result(text=" ", engine="torch"), ("in:7: the model's output is empty",)),
        (Result(text=""), ()),
        (
            Result(text="a a a", engine="torch", repetitive=True),
            ("in:7: the translation repeats itself in a loop",),
        ),
    ],
)
def test_a_translation_that_is_none_is_told_and_an_empty_line_is_not(result, notes):
    (written,) = LineTranslator(Writes(result))([InputLine(7, "的", name="in")])
    assert (written.notes, written.failed) == (notes, False)


@given(documents(), st.integers(1, 7))
def test_blocks_of_code_that_span_lines_come_out_as_they_went_in(document, size):
    text, blocks = document
    lines = [InputLine(i, line, name="in") for i, line in enumerate(text.split("\n"), start=1)]
    cut = [lines[i : i + size] for i in range(0, len(lines), size)]
    write = LineTranslator(Writes(Result(text="?", engine="torch")))
    written = "\n".join(line.text for block in mark_code(cut) for line in write(block))
    for block in blocks:
        assert block in written
    assert written.count("?") > 0


def test_every_file_begins_anew_and_texts_are_no_lines():
    fence = [InputLine(1, "```", name="a"), InputLine(2, "code", name="a"), InputLine(1, "text", name="b")]
    assert [line.is_code for line in next(mark_code([fence]))] == [True, True, False]
    assert not any(line.is_code for line in next(mark_code([[InputLine(0, "```"), InputLine(0, "x")]])))
    write = LineTranslator(Writes(Result(text="?", engine="torch")), as_json=True)
    code, *_ = write(next(mark_code([fence])))
    assert (json.loads(code.text)["text"], code.engine) == ("```", "")
