"""What every test shares: random numbers, few examples of each property, and one trained run."""

import sys
from pathlib import Path

import pytest
from hypothesis import settings

from tests.once import copy_of, share_in

settings.register_profile("regard", deadline=None, max_examples=20, derandomize=True, database=None)
settings.load_profile("regard")


SLOW_FOLDERS = ("exchange", "scale", "training", "browser", "test_examples.py", "serve")
"""These run first: tests of half a minute at the very end would leave all processes but one idle."""


def pytest_collection_modifyitems(items):
    """Put the folders with the slowest tests first, and keep the order of everything else."""

    def rank(item):
        folder = item.path.relative_to(Path(__file__).parent).parts[0]
        return SLOW_FOLDERS.index(folder) if folder in SLOW_FOLDERS else len(SLOW_FOLDERS)

    items.sort(key=rank)


@pytest.fixture(autouse=True)
def _the_same_random_numbers_each_time() -> None:
    # Looked up, not imported: tests of the configuration and of the command line do without torch.
    if torch := sys.modules.get("torch"):
        torch.manual_seed(20170612)


@pytest.fixture(scope="session", autouse=True)
def _one_shared_folder(tmp_path_factory):
    share_in(tmp_path_factory.getbasetemp())


@pytest.fixture(scope="session")
def dates_run():
    """Put the complete run of `regard train examples/dates.zh …` into `FOLDER/runs/dates`."""

    def train(folder: Path) -> None:
        from tests.programs import run_regard

        (folder / "examples").symlink_to(Path(__file__).parents[1] / "examples")
        words = ("examples/dates.zh", "examples/dates.en", "--config", "examples/dates.toml")
        done = run_regard("train", *words, "--out", "runs/dates", folder=folder)
        assert done.returncode == 0, done.stderr
        (folder / "examples").unlink()

    return lambda place: copy_of("dates", train, place)
