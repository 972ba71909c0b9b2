"""What this machine can show of Windows and of Macs: modules, functions and devices that they lack."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import regard
from regard import host
from regard.config import TrainingConfig
from regard.engine.engines.protocol import Request, Search
from regard.engine.engines.torch_engine import TorchEngine
from regard.model.build import build
from regard.training.distributed.world import World, choose_device, join_world
from regard.training.learner import choose_precision
from regard.training.optimizers.adamw import adamw_of
from regard.training.optimizers.optimizer import Optimizer
from tests.architecture.sources import ROOT
from tests.model.small import small_config, small_model
from tests.refusals import refused

# --- Windows ----------------------------------------------------------------------------------------------

AS_ON_WINDOWS = """
import mmap, os, sys
import ctranslate2, fastapi, sacrebleu, safetensors.torch, sentencepiece, torch, uvicorn
import uvicorn.protocols.http.auto, multiprocessing.connection, prometheus_client
for name in ("fcntl", "resource", "pwd", "grp", "termios", "tty", "uvloop", "httptools"):
    sys.modules[name] = None  # an import fails
sys.modules["msvcrt"] = None
for name in ("sched_getaffinity", "fork", "getuid", "geteuid", "getpgid", "setpriority", "sysconf", "statvfs",
             "O_NOFOLLOW", "O_CLOEXEC", "getloadavg", "killpg", "setsid", "uname", "mkfifo", "chown", "nice"):
    if hasattr(os, name):
        delattr(os, name)
for name in dir(mmap):
    if name.startswith("MADV_"):
        delattr(mmap, name)
if hasattr(mmap.mmap, "madvise"):
    assert not hasattr(mmap, "MADV_WILLNEED")

from regard import host
host._read = lambda path: None  # no /proc and no /sys
"""
IMPORTS = """
import importlib, pkgutil, regard
for module in pkgutil.walk_packages(regard.__path__, "regard."):
    if not any(part in module.name for part in ("__main__", ".examples.", ".scale")):
        importlib.import_module(module.name)
"""
WORK = """
import regard
from regard.cli import main
from regard.serve.http.metrics import resident_bytes

def run(*words):
    try:
        main(list(words))
    except SystemExit as ended:
        assert not ended.code, words

resident_bytes()
assert host.free_memory() is None and host.total_memory() is None
words = ["--preset", "tiny", "--set", "training.batch_tokens=500", "--out", "run"]
run("train", "a.en", "a.de", *words, "--max-steps", "4", "--set", "training.checkpoint_every=2")
run("train", "a.en", "a.de", *words, "--max-steps", "6", "--set", "training.checkpoint_every=2")
run("translate", "there are 7 cats", "--model", "run", "--engine", "ctranslate2")
run("look", "there are 7 cats", "--model", "run", "-o", "look.html")
"""


def run_python(code, folder):
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False,
        env={"PYTHONPATH": str(ROOT), "REGARD_CACHE": str(folder / "cache"), "HOME": str(folder),
             "OMP_NUM_THREADS": "1", "PATH": ""},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout


@pytest.mark.slow
def test_every_module_imports_and_the_main_commands_run_without_what_windows_lacks(tmp_path):
    for language, words in (("en", "there are {} cats"), ("de", "es sind {} Katzen")):
        lines = [words.format(i) + "\n" for i in range(600)]
        (tmp_path / f"a.{language}").write_text("".join(lines), encoding="utf-8")
    run_python(AS_ON_WINDOWS + IMPORTS + WORK, tmp_path)
    assert (tmp_path / "look.html").exists()


# --- Macs -------------------------------------------------------------------------------------------------


def test_mps_is_refused_where_there_is_none_and_never_chosen_by_itself(tmp_path, monkeypatch):
    assert not host.has_mps()
    with refused("missing_device", "mps is the GPU of a Mac"):
        choose_device("mps")
    folder = regard.save_bundle(tmp_path / "model", small_model())
    from regard.engine.loading import load_onto

    with refused("unusable_device", "mps is the GPU of a Mac"):
        load_onto(folder, "mps")
    monkeypatch.setattr("torch.backends.mps.is_available", lambda: True)
    assert choose_device("mps") == torch.device("mps")
    assert choose_device("auto").type == "cpu"
    monkeypatch.setenv("WORLD_SIZE", "2")
    with refused("missing_device", "one device"), join_world("mps"):
        pass


def test_ctranslate2_leaves_mps_to_torch(talkers_folder):
    from regard.bundle import describe_bundle
    from regard.engine.loading import _runnable

    described = [describe_bundle(talkers_folder)]
    assert _runnable(described, "auto", "mps") == ["torch"]
    with refused("unusable_engine", "device='mps'"):
        _runnable(described, "ctranslate2", "mps")


@pytest.fixture
def talkers_folder(tmp_path):
    return regard.save_bundle(tmp_path / "model", small_model())


class NoFloat64(TorchDispatchMode):
    """Fails on every tensor of 64-bit floats, which mps does not have, but for random numbers of the host."""

    on_host = ("aten::rand", "aten::stack")

    def __torch_dispatch__(self, operation, types, arguments=(), keywords=None):
        result = operation(*arguments, **(keywords or {}))
        for tensor in result if isinstance(result, tuple | list) else [result]:
            wide = isinstance(tensor, torch.Tensor) and tensor.dtype == torch.float64
            if wide and operation._schema.name not in self.on_host:
                raise AssertionError(f"{operation} makes float64")
        return result


@pytest.mark.parametrize("options", [{"beam_size": 3}, {"sample": True, "top_k": 5}, {"sample": True}])
def test_decoding_makes_no_float64_on_a_device_that_has_none(monkeypatch, options):
    engine = TorchEngine([build(small_config()).eval()], bos=1, eos=2)
    requests, search = [Request(ids=(5, 7, 6)), Request(ids=(9, 8))], Search(**options, extra_length=5)
    expected = engine.decode(requests, search)
    with pytest.raises(AssertionError, match="float64"), NoFloat64():  # the check can fail
        engine.decode(requests, search)
    for place in ("beam", "sampling"):
        monkeypatch.setattr(f"regard.decode.{place}.widest_float", lambda _: torch.float32)
    with NoFloat64():
        found = engine.decode(requests, search)
    assert [[one.ids for one in some] for some in found] == [[one.ids for one in some] for some in expected]


def test_what_mps_gets_is_what_it_has():
    assert (host.widest_float("mps"), host.widest_float("cpu")) == (torch.float32, torch.float64)
    world = World(torch.device("mps"))
    assert choose_precision(TrainingConfig(), world) == "float32"


def test_a_step_without_the_fused_optimizer_learns_the_same(monkeypatch):
    rates = []
    for fused in (("cpu", "cuda"), ()):
        monkeypatch.setattr("regard.training.optimizers.adamw.FUSED", fused)
        torch.manual_seed(3)
        weight = torch.nn.Parameter(torch.ones(2, 3))
        part = adamw_of([weight], TrainingConfig())
        assert part.defaults["fused"] is bool(fused)
        optimizer = Optimizer.__new__(Optimizer)
        optimizer.parts = [part]
        for grad, found_inf in ((0.5, 0.0), (torch.inf, 1.0), (0.25, 0.0)):
            weight.grad = torch.full_like(weight, grad)
            optimizer.step(0.1, torch.tensor(found_inf))
        rates.append(weight.detach())
    torch.testing.assert_close(rates[0], rates[1])
    assert torch.isfinite(rates[0]).all()
