"""`regard doctor` tells the truth of this machine, for people and for programs."""

import json
import platform
import subprocess
import sys

import pytest
import torch

from regard import bundled
from regard.cli import main
from regard.doctor.examination import declared
from regard.engine.loading import ORDER


@pytest.fixture
def ask(capsys):
    def ask(*words):
        with pytest.raises(SystemExit) as ended:
            main(["doctor", *words])
        return ended.value.code or 0, capsys.readouterr().out

    return ask


def test_programs_are_told_what_runs_here(ask, monkeypatch, tmp_path):
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "not" / "yet"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    _, out = ask("--json")
    told = json.loads(out)
    assert told["python"].startswith(platform.python_version())
    assert told["engine"] == ORDER[0]
    assert [each["name"] for each in told["engines"]] == [*ORDER]
    assert all("float32" in each["computes_in"] for each in told["engines"])
    assert told["threads"]["omp"] == "1"
    assert told["threads"]["torch"] == torch.get_num_threads()
    assert told["models"] == bundled.names()
    folder = str(tmp_path / "not" / "yet" / "ctranslate2")
    assert told["cache"] == {"folder": folder, "writable": True, "damaged": []}


def test_people_are_told_the_same(ask, monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "file"))
    status, out = ask()
    assert f"torch {torch.__version__}" in " ".join(out.split())
    (chosen,) = (line for line in out.splitlines() if "(the default)" in line)
    assert chosen.startswith(f"  {ORDER[0]}  float32")
    assert f"slow: {tmp_path / 'file'}" in out
    lacking = [name for name in declared()[1] if f"'regard[{name}]'" in out]
    assert all(f"  {name} " in out for name in lacking)
    assert status == ("broken: " in out)


def test_a_library_that_is_broken_breaks_nothing_but_the_status(tmp_path):
    (tmp_path / "ctranslate2.py").write_text("raise ImportError('libiomp5.so')", encoding="utf-8")
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); from regard.cli import main; main(['doctor', '--json'])"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    told = json.loads(done.stdout)
    assert told["engine"] == "torch"
    (found,) = (each for each in told["findings"] if "ctranslate2" in each["what"])
    assert "libiomp5.so" in found["what"]
    assert done.returncode == 1
