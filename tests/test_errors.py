import copy
import errno
import inspect
import os

import pytest

from regard import errors

EVERY_ERROR = [
    errors.ConfigError(["model.d_ff = 0 must be at least 1"], "recipes/de-en.toml"),
    errors.ShapeError("q_BHLK", "4 dimensions", "3"),
    errors.CorpusError("corpus.de:1048: empty, while corpus.en:1048 is not"),
    errors.BundleError(["weights.safetensors is missing", "config.toml is missing"]),
    errors.RequestError("a beam of 0"),
]


def test_several_problems_are_listed_under_their_place():
    error = errors.ConfigError(["model.n_head is not a setting", "model.d_ff = 0 is too small"], "de-en.toml")
    assert str(error) == (
        "2 problems in de-en.toml\n  model.n_head is not a setting\n  model.d_ff = 0 is too small"
    )
    assert error.problems == ("model.n_head is not a setting", "model.d_ff = 0 is too small")


@pytest.mark.parametrize(
    ("problems", "where", "text"),
    [
        ("it is torn", None, "it is torn"),
        ("it is torn", "folder", "1 problem in folder\n  it is torn"),
        (["a", "b"], None, "2 problems\n  a\n  b"),
    ],
)
def test_a_list_of_problems_prints_as_short_as_it_can(problems, where, text):
    assert str(errors.BundleError(problems, where)) == text


def test_a_shape_error_says_what_was_expected_and_what_came():
    error = errors.ShapeError("inputs_BS", "(B, S)", (2, 3, 5))
    assert str(error) == "inputs_BS: expected (B, S), got (2, 3, 5)"
    assert isinstance(error, ValueError)
    assert (error.argument, error.expected, error.got) == ("inputs_BS", "(B, S)", (2, 3, 5))


@pytest.mark.parametrize("error", EVERY_ERROR, ids=lambda error: type(error).__name__)
def test_an_error_survives_being_rebuilt(error):
    again = copy.copy(error)
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert isinstance(error, errors.RegardError)


def test_the_tree_in_the_docstring_is_the_tree_in_the_code():
    classes = inspect.getmembers(errors, inspect.isclass)
    defined = {name for name, kind in classes if issubclass(kind, Exception) and not name.startswith("_")}
    drawn = {word for line in errors.__doc__.splitlines() for word in line.split() if word.endswith("Error")}
    assert defined == drawn - {"ValueError"}


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (errno.ENOSPC, "No space left on device; free some space, then try again"),
        (errno.EACCES, "Permission denied"),
    ],
)
def test_a_reason_of_the_system_comes_with_advice_where_there_is_some(number, text):
    assert errors.reason(OSError(number, os.strerror(number))) == text
    assert errors.reason(OSError("out of luck")) == "out of luck"


def test_an_error_without_problems_is_a_mistake_of_our_own():
    with pytest.raises(AssertionError):
        errors.ConfigError([])


def test_each_road_has_its_own_names_of_options():
    words = "`n_best=3` needs a `beam_size` of 3; `too_long='cut'`, `regard config`"
    told = errors.with_options(words, lambda name, value: f"<{name}|{value}>")
    assert told == "<n_best|3> needs a <beam_size|> of 3; <too_long|cut>, `regard config`"
