"""A small translator of numbers in words, served; and the same model, loaded as everybody loads it."""

import shutil

import pytest

from regard.engine.loading import load
from regard.serve.metrics import Metrics
from regard.serve.served import serve_models
from tests.engine import talking
from tests.serve.running import Gated, gated_catalogue, running


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory):
    """The folder of a run for Chinese and English: a model, and a journal."""
    folder = tmp_path_factory.mktemp("served")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REGARD_CACHE", str(folder / "cache"))
        model = talking.talker(folder / "training")
        run = folder / "zh-en"
        shutil.copytree(model, run / "best")
        shutil.copy(folder / "training" / "run" / "journal.jsonl", run)
        yield run


@pytest.fixture(scope="session")
def offline(run_folder):
    """The model without a server, run by the engine that serves."""
    return load(run_folder, engine="ctranslate2")


@pytest.fixture(scope="session")
def sources():
    return [chinese for chinese, _ in talking.PAIRS["train"]]


@pytest.fixture(scope="session")
def catalogue(run_folder):
    found = serve_models([run_folder], Metrics(), threads=2)
    yield found
    found.close()


@pytest.fixture(scope="session")
def server(catalogue):
    with running(catalogue) as found:
        yield found


@pytest.fixture
def gate(run_folder, offline):
    """An engine that waits until it is told, and models that it runs."""
    engine = Gated()
    catalogue = gated_catalogue(run_folder, offline, engine)
    yield engine, catalogue
    engine.let_all()
    catalogue.close()
