"""Every problem is reported with a remedy; a sound machine has none."""

from dataclasses import replace

import pytest

from regard.doctor.facts import ConversionCache, Cuda, EngineState, Facts, Library, Processor, Threads
from regard.doctor.findings import findings
from regard.host import Gpu

GPU = Gpu("H200", 140 << 30, "9.0", bf16=True)
SOUND = Facts(
    regard="0.1.0",
    python="3.11.7",
    system="Linux x86_64",
    libraries=(Library("torch", ">=2.11", "2.13.0", fits=True),),
    extras=(),
    processor=Processor("Abacus", cores=8, physical=8, quota=None, memory=None, bf16=None),
    threads=Threads(omp=None, ctranslate2=8, torch=8),
    cuda=Cuda(built_for=None, driver=None),
    engines=(EngineState("ctranslate2", ()), EngineState("torch", ("float32",))),
    models=(),
    cache=ConversionCache("/cache", writable=True),
)


def test_a_sound_machine_has_no_problems():
    assert findings(SOUND) == []
    busy = replace(SOUND.processor, cores=16, quota=8.0)
    assert findings(replace(SOUND, processor=busy)) == []
    assert findings(replace(SOUND, cuda=Cuda("13.0", "580.1", (GPU,)))) == []


def test_auto_takes_the_first_engine_that_runs():
    assert SOUND.engine == "torch"
    assert replace(SOUND, engines=()).engine is None


@pytest.mark.parametrize(
    ("changes", "kind", "what", "remedy"),
    [
        (
            {"libraries": (Library("torch", ">=2.11", None, fits=False),)},
            "broken", "torch is not installed", "pip install 'torch>=2.11'",
        ),
        (
            {"libraries": (Library("torch", ">=2.11", "2.9", fits=False),)},
            "broken", "torch 2.9 is installed, but >=2.11", "--upgrade 'torch>=2.11'",
        ),
        (
            {"libraries": (Library("torch", "", "2.13", fits=True, problem="ImportError: no"),)},
            "broken", "torch 2.13 cannot be imported: ImportError: no", "--force-reinstall",
        ),
        ({"libraries": ()}, "broken", "not installed", "pip install"),
        (
            {"threads": Threads(omp="1", ctranslate2=1, torch=1)},
            "slow", "OMP_NUM_THREADS=1 limits engines to 1 of 8", "unset OMP_NUM_THREADS",
        ),
        (
            {"processor": replace(SOUND.processor, quota=2.5)},
            "slow", "2.5 cores, but 8 threads", "--threads 3",
        ),
        ({"processor": replace(SOUND.processor, physical=4)}, "slow", "hyperthreads of 4", "--threads 4"),
        ({"cuda": Cuda(None, "580.1")}, "slow", "driver 580.1: it is a CPU build", "CUDA"),
        ({"cuda": Cuda("13.0", "580.1")}, "slow", "driver 580.1", "CUDA 13.0"),
        ({"cache": ConversionCache("/cache", writable=False)}, "slow", "/cache cannot", "REGARD_CACHE"),
    ],
)  # fmt: skip
def test_a_problem_is_reported_with_its_remedy(changes, kind, what, remedy):
    (found,) = findings(replace(SOUND, **changes))
    assert found.kind == kind
    assert what in found.what
    assert remedy in found.remedy


def test_what_is_broken_comes_first():
    found = findings(replace(SOUND, libraries=(), threads=Threads("1", 1, 1)))
    assert [each.kind for each in found] == ["broken", "slow"]
