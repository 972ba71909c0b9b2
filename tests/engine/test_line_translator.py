"""What people hear of a line."""

import pytest

from regard.engine.results import Result
from regard.engine.translator import LineTranslator
from regard.text.files.lines import InputLine


class Writes:
    """A translator that writes one result whatever it reads."""

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
