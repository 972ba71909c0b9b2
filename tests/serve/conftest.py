"""A small translator of numbers in words, served; and the same model, loaded as everybody loads it."""

import shutil

import pytest
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

import regard
from regard.serve.http import server as server_module
from regard.serve.http.connections import LimitedConnection
from regard.serve.http.limits import Limits
from regard.serve.http.metrics import Metrics
from regard.serve.models import ModelRegistry, ServedTranslator
from tests.engine import talking
from tests.serve.running import Gated, gated_registry, running


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


# At int8 a sum that is rounded otherwise in a batch of another shape can tip a search; at float32 none did.
EXACT = "float32"


@pytest.fixture(scope="session")
def offline(run_folder):
    """The model without a server, run by the engine that serves."""
    return regard.load(run_folder, engine="ctranslate2", quantisation=EXACT)


@pytest.fixture(scope="session")
def sources():
    return [chinese for chinese, _ in talking.PAIRS["train"]]


@pytest.fixture(scope="session")
def registry(run_folder):
    model = regard.load(run_folder, threads=2, quantisation=EXACT)
    found = ModelRegistry([ServedTranslator("zh-en", run_folder, model, Metrics())])
    yield found
    found.close()


@pytest.fixture(scope="session")
def server(registry):
    with running(registry) as found:
        yield found


@pytest.fixture
def gate(run_folder, offline):
    """An engine that waits until it is told, and models that it runs."""
    engine = Gated()
    registry = gated_registry(run_folder, offline, engine)
    yield engine, registry
    engine.let_all()
    registry.close()


@pytest.fixture(scope="module", params=[H11Protocol, HttpToolsProtocol])
def bare(request):
    """A server without models, with each of the two parsers."""

    class Connection(LimitedConnection, request.param):
        pass

    limits = Limits(head_bytes=5000, headers=20, body_bytes=7000, body_s=0.3, connections_per_address=11)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(server_module, "Connection", Connection)
        with running(ModelRegistry([]), limits=limits) as found:
            yield found
