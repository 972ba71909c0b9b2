"""Errors by their code and place: the wording of a family of errors is compared by one test, not by all."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from regard.errors import RegardError


@contextmanager
def refused(
    code: str, *places: str, error: type[RegardError] = RegardError
) -> Iterator[pytest.ExceptionInfo[RegardError]]:
    """Expect an error with this code whose message names every place: a file, a setting, a value."""
    with pytest.raises(error) as caught:
        yield caught
    assert caught.value.code == code, f"{caught.value.code}: {caught.value}"
    for place in places:
        assert place in str(caught.value)
