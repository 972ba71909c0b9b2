"""A store is written atomically, nothing else is lost, and memory does not grow with its size."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from regard.data.store import find_store, open_store
from regard.data.store.writing import write_store
from tests.data.stores import PAIRS, as_lists, contents, names_in, write
from tests.refusals import refused

ROOT = Path(__file__).parents[2]


def python(program: str, *arguments: object, **options) -> subprocess.Popen[str]:
    """A process of its own, which can be killed or starved."""
    command = [sys.executable, "-c", program, *map(str, arguments)]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    )


def output(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    return out


def test_a_store_takes_the_place_of_an_older_one(tmp_path):
    old = write(tmp_path / "store", [([1, 2], [3])], key="old")
    write(tmp_path / "store", key="new")
    assert as_lists(open_store(tmp_path / "store")) == PAIRS
    assert find_store(tmp_path / "store", "old") is None
    assert as_lists(old) == [([1, 2], [3])]  # what is open stays open
    assert names_in(tmp_path) == ["store"]


def test_a_missing_folder_an_empty_one_and_a_link_are_filled(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "empty")
    for folder in (tmp_path / "a" / "b" / "store", tmp_path / "link"):
        assert as_lists(write(folder)) == PAIRS
    assert (tmp_path / "link").is_symlink()


@pytest.mark.parametrize("names", [["notes.txt"], ["store.json", "notes.txt"], ["inputs.ids"]])
def test_what_is_no_store_is_never_replaced(tmp_path, names):
    folder = tmp_path / "mine"
    folder.mkdir()
    for name in names:
        (folder / name).write_text("dear")
    with refused("folder_exists", "mine", names[-1]):
        write(folder)
    assert contents(folder) == dict.fromkeys(names, b"dear")
    assert names_in(tmp_path) == ["mine"]


def test_a_file_in_the_way_stays(tmp_path):
    (tmp_path / "file").write_text("dear")
    with refused("folder_exists", str(tmp_path / "file")):
        write(tmp_path / "file")
    with refused("unwritable_folder", str(tmp_path / "file" / "store")):
        write(tmp_path / "file" / "store")
    assert (tmp_path / "file").read_text() == "dear"


def test_an_error_in_the_middle_of_reading_leaves_the_old_store(tmp_path):
    write(tmp_path / "store")
    before = contents(tmp_path / "store")

    def examples():
        yield from ((np.array([1]), np.array([2])) for _ in range(10_000))
        raise OSError("the disk that is read")

    with pytest.raises(OSError, match="the disk that is read"):  # and it is not said that writing failed
        write_store(tmp_path / "store", examples(), sides=("inputs", "outputs"), key="", vocab_size=9)
    assert contents(tmp_path / "store") == before
    assert names_in(tmp_path) == ["store"]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="nothing is read-only for root")
def test_a_read_only_folder_is_refused(tmp_path):
    tmp_path.chmod(0o500)
    with refused("unwritable_folder", "Permission denied"):
        write(tmp_path / "store")
    tmp_path.chmod(0o700)


ON_A_FULL_DISK = """
import resource, signal, sys
import numpy as np
from regard.data.store.writing import write_store
from regard.errors import CorpusError

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
examples = ((np.arange(20), np.arange(20)) for _ in range(100_000))
try:
    write_store(sys.argv[1], examples, sides=("inputs", "outputs"), key="", vocab_size=20)
except CorpusError as error:
    print(error.code, error)
"""


def test_a_full_disk_is_reported_and_the_old_store_stays(tmp_path):
    """A limit on the size of files stands in for a disk without room."""
    write(tmp_path / "store")
    before = contents(tmp_path / "store")
    printed = output(python(ON_A_FULL_DISK, tmp_path / "store"))
    assert printed.startswith("unwritable_folder")
    assert "File too large" in printed
    assert contents(tmp_path / "store") == before
    assert names_in(tmp_path) == ["store"]


ENDLESS = """
import sys
from itertools import count
import numpy as np
from regard.data.store.writing import write_store

def examples():
    for i in count():
        if i == 20_000:
            print("writing", flush=True)
        yield np.arange(20), np.arange(20)

write_store(sys.argv[1], examples(), sides=("inputs", "outputs"), key="", vocab_size=20)
"""


@pytest.mark.parametrize("old", [False, True])
def test_killed_in_the_middle(tmp_path, old):
    folder = tmp_path / "store"
    if old:
        write(folder)
    process = python(ENDLESS, folder)
    assert process.stdout.readline() == "writing\n"
    # What a living process is writing is left alone, and what a killed one left is swept away.
    write(folder)
    assert len(names_in(tmp_path)) == 2
    process.kill()
    process.communicate()
    assert as_lists(open_store(folder)) == PAIRS
    assert len(names_in(tmp_path)) == 2
    write(folder)
    assert names_in(tmp_path) == ["store"]


MEMORY = """
import sys
from itertools import islice
from pathlib import Path
import numpy as np
from regard.data.batches import stream
from regard.data.batches import Budget
from regard.data.store.writing import encode_in_threads, row_encoder, write_store

folder, n_examples, leaky = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "leaky"
stream.WINDOW_TOKENS = (1 << 17, 1 << 17)
ids = np.arange(1000)

def encode(lines):
    return [ids[:70 + int(line) % 7] for line in lines]

rows = ((str(i), str(i + 3)) for i in range(n_examples))
examples = encode_in_threads(rows, row_encoder(encode, encode), threads=2)
store = write_store(folder, examples, sides=("inputs", "outputs"), key="", vocab_size=1000)
budget = Budget(tokens=(2048, 2048), extra=(1, 1))
make = lambda part, indices: sum(part.gather(side, indices)[0].sum() for side in (0, 1))
if leaky:
    type(store).release = lambda self: None
with stream.BatchStream(store, make, budget=budget, seed=1) as batches:
    while batches.epochs < 1:
        next(batches)
print(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
"""


def peak_memory(folder: Path, n_examples: int, how: str = "as it is") -> float:
    """MiB that a process needs at most to build a store and to go through it once."""
    return int(output(python(MEMORY, folder, n_examples, how))) / 1024


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is measured as Linux tells it")
def test_memory_does_not_grow_with_the_corpus(tmp_path):
    """The larger store has 60 MB. If its pages were kept, this test would see them."""
    once = peak_memory(tmp_path / "small", 20_000)
    assert peak_memory(tmp_path / "large", 200_000) < once + 20
    assert peak_memory(tmp_path / "leaky", 200_000, "leaky") > once + 40
