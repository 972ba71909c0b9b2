"""Addresses that are none, that do not answer, or where somebody else does; Ray that is not there."""

import socket
import subprocess
import sys
import threading

import pytest

from regard.errors import ConfigError
from regard.scale.cluster import Cluster, joined, ray_or_refuse


@pytest.fixture(autouse=True)
def _no_cluster_yet(monkeypatch):
    """As in a process that has joined none."""
    ray = pytest.importorskip("ray")
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)


def refusal(address):
    with pytest.raises(ConfigError) as refused, joined(address):
        pass
    return str(refused.value)


@pytest.mark.parametrize("address", ["here", "", ":6379", "host:", "ray://host:port"])
def test_what_is_no_address(address):
    assert f"--ray {address}: expected local, auto or HOST:PORT" in refusal(address)


def test_nobody_answers(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        address = f"127.0.0.1:{closed.getsockname()[1]}"
    assert f"nobody answers at {address}: Connection refused" in refusal(address)
    assert "nobody answers at nowhere.invalid:6379" in refusal("nowhere.invalid:6379")
    assert "nobody answers at 127.0.0.1:99999" in refusal("127.0.0.1:99999")
    monkeypatch.setenv("RAY_ADDRESS", address)
    assert f"nobody answers at {address}" in refusal("auto")


def test_somebody_else_answers():
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer():
            connection, _ = server.accept()
            connection.recv(100)
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            connection.close()

        threading.Thread(target=answer).start()
        address = f"127.0.0.1:{server.getsockname()[1]}"
        assert f"who answers at {address} is no Ray cluster" in refusal(address)


@pytest.mark.parametrize("module", ["ray", "ray.serve"])
def test_ray_that_is_not_installed(monkeypatch, module):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ConfigError, match=rf"{module} is needed for --ray: pip install 'regard\[scale\]'"):
        ray_or_refuse(module)


def test_as_many_as_there_is_room_for():
    cluster = Cluster(is_local=True, cpus=7, gpus=2)
    assert cluster.fitting(None, "workers", threads=2, gpu=False) == 3
    assert cluster.fitting(2, "workers", threads=3, gpu=False) == 2
    assert cluster.fitting(None, "workers", threads=9, gpu=True) == 2
    with pytest.raises(ConfigError, match="4 replicas of 2 cores each: the Ray cluster has 7 cores in all"):
        cluster.fitting(4, "replicas", threads=2, gpu=False)
    with pytest.raises(ConfigError, match="3 workers of a GPU each: the Ray cluster has 2 GPUs in all"):
        cluster.fitting(3, "workers", threads=1, gpu=True)


def test_ray_is_not_imported_before_it_is_used():
    code = "import sys, regard.scale, regard.cli; print(sorted({'ray', 'torch'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
