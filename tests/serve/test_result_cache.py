"""Results that are remembered: so many, for so long, and never a failure."""

import pytest

from regard.serve.cache import ResultCache


def test_what_was_made_is_not_made_again_while_it_is_remembered():
    now, made = 0.0, []
    kept = ResultCache(size=2, seconds=10.0, clock=lambda: now)

    def ask(key):
        return kept.get(key, lambda: made.append(key) or key.upper())

    assert [ask(key) for key in "aba"] == ["A", "B", "A"]
    assert made == ["a", "b"]
    ask("c")  # b was asked for the longest ago, and there is no room for three
    ask("a")
    ask("b")
    assert (made, len(kept)) == (["a", "b", "c", "b"], 2)
    now = 9.0
    ask("b")
    now = 18.0  # a's time is over, and b was asked for since
    ask("b")
    ask("a")
    assert made == ["a", "b", "c", "b", "a"]


def test_a_failure_is_not_remembered():
    kept = ResultCache(size=2, seconds=10.0)
    with pytest.raises(ZeroDivisionError):
        kept.get("a", lambda: 1 // 0)
    assert len(kept) == 0
    assert kept.get("a", lambda: None) is None
    assert kept.get("a", lambda: 1) is None, "nothing is a result too"
