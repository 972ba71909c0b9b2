"""Addresses without a Ray cluster, machines without Ray, and clusters without room."""

import os
import socket
import subprocess
import sys
import threading

import pytest

from regard.errors import ConfigError
from regard.host import usable_cores
from regard.scale.cluster import Cluster, import_ray, joined
from tests.refusals import refused


@pytest.fixture(autouse=True)
def _no_cluster_yet(monkeypatch):
    """As in a process that has joined none."""
    ray = pytest.importorskip("ray")
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)


@pytest.mark.parametrize("address", ["here", "", ":6379", "host:", "ray://host:port"])
def test_what_is_no_address(address):
    with refused("bad_address", f"--ray {address}:", "HOST:PORT", error=ConfigError), joined(address):
        pass


def test_an_address_that_does_not_answer(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        address = f"127.0.0.1:{closed.getsockname()[1]}"
    with refused("no_cluster", f"{address} does not answer: Connection refused"), joined(address):
        pass
    monkeypatch.setenv("RAY_ADDRESS", address)
    for given, place in (
        ("nowhere.invalid:6379",) * 2,
        ("127.0.0.1:99999",) * 2,
        ("auto", address),
    ):
        with refused("no_cluster", place), joined(given):
            pass


def test_an_address_of_another_server():
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer():
            connection, _ = server.accept()
            connection.recv(100)
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            connection.close()

        threading.Thread(target=answer).start()
        address = f"127.0.0.1:{server.getsockname()[1]}"
        with refused("no_cluster", f"{address} is not a Ray cluster"), joined(address):
            pass


@pytest.mark.parametrize("module", ["ray", "ray.serve"])
def test_ray_that_is_not_installed(monkeypatch, module):
    monkeypatch.setitem(sys.modules, module, None)
    with refused("missing_library", module, "pip install 'regard[scale]'"):
        import_ray(module)


def test_as_many_workers_as_there_is_room_for():
    cluster = Cluster(is_local=True, cpus=7, gpus=2)
    assert cluster.room_for("workers", None, threads=2, gpu=False) == 3
    assert cluster.room_for("workers", 2, threads=3, gpu=False) == 2
    assert cluster.room_for("workers", None, threads=9, gpu=True) == 2
    with refused("no_room", "4 replicas of 2 cores each: the Ray cluster has 7 cores in all"):
        cluster.room_for("replicas", 4, threads=2, gpu=False)
    with refused("no_room", "3 workers of a GPU each", "2 GPUs"):
        cluster.room_for("workers", 3, threads=1, gpu=True)


def test_ray_is_not_imported_before_it_is_used():
    code = "import sys, regard.scale, regard.cli; print(sorted({'ray', 'torch'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity") or usable_cores() < 2, reason="needs two cores")
def test_a_cluster_that_is_started_here_has_the_cores_of_this_process():
    """In a process that may use one core; Ray itself counts those of the machine."""
    code = (
        "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
        "from regard.scale.cluster import joined\n"
        "with joined('local') as cluster: print(cluster.cpus)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "1"
