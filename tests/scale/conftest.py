"""A Ray cluster of several workers on this machine, for all tests; a small translator of numbers in words."""

import gc
import os
import secrets
import warnings

import pytest

from regard.data.numerals import sample
from tests.engine import talking

# Else Ray would keep a secret of its own in the home folder, and tell its makers of every cluster.
SETTINGS = {
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": secrets.token_hex(32),
    "RAY_USAGE_STATS_ENABLED": "0",
}
os.environ.update(SETTINGS | os.environ)  # Ray reads them once, when it is imported


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        found = tmp_path_factory.mktemp("scale")
        patch.setenv("REGARD_CACHE", str(found / "cache"))
        yield found


@pytest.fixture(scope="session")
def talker(folder):
    """A model folder for Chinese and English, which has learned a little."""
    return talking.talker(folder)


def start(ray, tries=3):
    """Start Ray; the half minute that it gives itself may be too short where others keep a machine busy."""
    try:
        ray.init(
            "local",
            num_cpus=4,
            include_dashboard=False,
            object_store_memory=100 << 20,
            log_to_driver=False,
            logging_level="error",
            _node_ip_address="127.0.0.1",
        )
    except Exception:
        ray.shutdown()
        if tries == 1:
            raise
        start(ray, tries - 1)


@pytest.fixture(scope="session")
def cluster():
    """Ray, with a cluster of four cores, however many there are."""
    ray = pytest.importorskip("ray")
    start(ray)
    yield ray
    ray.shutdown()
    with warnings.catch_warnings():
        # Ray ends its processes without waiting for them, and forgets them.
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture(scope="session")
def sources():
    return [pair.chinese for pair in sample("test", 61, 3)]
