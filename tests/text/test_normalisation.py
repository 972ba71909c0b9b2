import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.text import comparison_forms


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The cat sat.", "the CAT  sat"),
        ("猫，坐在垫子上。", "猫坐在 垫子上!"),
        ("ＡＢＣ １２３", "abc 123"),
        ("Straße", "STRASSE"),
        ("cafe\u0301", "café"),
        ("snake_case", "snakecase"),
    ],
)
def test_what_is_written_alike_is_one(one, other):
    first, second = comparison_forms([one, other])
    assert first == second


@pytest.mark.parametrize(
    ("one", "other"), [("a b", "a c"), ("?", "!"), ("कि", "की"), ("café", "cafe"), ("3", "4"), ("", "?")]
)
def test_what_differs_stays_different(one, other):
    first, second = comparison_forms([one, other])
    assert first != second


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"))))
def test_many_together_are_as_each_alone(texts):
    assert comparison_forms(texts) == [form for text in texts for form in comparison_forms([text])]
