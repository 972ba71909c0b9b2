"""What every test shares: the same random numbers each time, and few examples of each property."""

import sys

import pytest
from hypothesis import settings

settings.register_profile("regard", deadline=None, max_examples=20, derandomize=True, database=None)
settings.load_profile("regard")


@pytest.fixture(autouse=True)
def _the_same_random_numbers_each_time() -> None:
    # Looked up, not imported: tests of the configuration and of the command line do without torch.
    if torch := sys.modules.get("torch"):
        torch.manual_seed(20170612)
