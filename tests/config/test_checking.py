"""Words for people."""

import pytest

from regard.config.checking import counted


@pytest.mark.parametrize(
    ("number", "words", "told"),
    [
        (1, ("row",), "1 row"),
        (0, ("row",), "0 rows"),
        (1200, ("row",), "1,200 rows"),
        (1, ("row is", "rows are"), "1 row is"),
        (2, ("row is", "rows are"), "2 rows are"),
        (1.0, ("minute",), "1 minute"),
        (0.5, ("minute",), "0.5 minutes"),
    ],
)
def test_one_is_not_several(number, words, told):
    assert counted(number, *words) == told
