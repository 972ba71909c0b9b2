"""`make demo` takes what is installed, and installs only what is missing."""

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.sources import ROOT
from tools.ready import missing_from

PYTHON_WITHOUT_PACKAGES = """\
#!/bin/sh
case "$1 $2" in
    tools/ready.py*) echo "lacks everything"; exit 1 ;;
    "-m venv") mkdir -p .venv/bin; cp "$0" .venv/bin/python ;;
    "-m pip") exit {status} ;;
    examples/demo.py*) echo "demo of $0" ;;
esac
"""


@pytest.mark.parametrize(
    ("dependencies", "missing"),
    [
        (["numpy>=1.26", "torch>=2"], []),
        (["numpy>=1.26", "regard-has-no-such-package>=3"], ["regard-has-no-such-package>=3"]),
    ],
)
def test_dependencies_that_are_not_installed_are_listed(dependencies, missing):
    assert missing_from(dependencies) == missing


def test_a_version_that_does_not_suit_counts_as_missing():
    (problem,) = missing_from(["numpy>=1.26", "torch>=999"])
    assert problem.startswith("torch>=999 (it has 2.")


@pytest.fixture
def checkout(tmp_path):
    """The Makefile with what it needs for a demo that only prints its Python."""
    for name in ("Makefile", "pyproject.toml", "constraints.txt", "tools/ready.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "examples").mkdir()
    (tmp_path / "examples" / "demo.py").write_text("import sys; print('demo of', sys.executable)")
    return tmp_path


def make_demo(checkout, python):
    # Not as a part of `make test`: a make inside of another one reports the folders that it enters.
    own = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    command = ["make", "demo", f"PYTHON={python}"]
    return subprocess.run(command, cwd=checkout, env=own, capture_output=True, text=True, check=False)


def test_a_python_that_has_everything_runs_the_demo_as_it_is(checkout):
    done = make_demo(checkout, sys.executable)
    assert done.stdout.splitlines()[-1] == f"demo of {sys.executable}", done.stdout + done.stderr
    assert "taking what is installed" in done.stdout
    assert not (checkout / ".venv").exists()


@pytest.mark.parametrize("status", [0, 1])
def test_another_gets_what_is_missing_and_the_demo_says_how_long_that_took(checkout, status):
    python = checkout / "python"
    python.write_text(PYTHON_WITHOUT_PACKAGES.format(status=status))
    python.chmod(python.stat().st_mode | stat.S_IXUSR)
    done = make_demo(checkout, python)
    first, second, *rest = done.stdout.splitlines()
    assert first == "lacks everything"
    assert second.startswith("installing . into .venv: ")
    if status:
        assert (done.returncode != 0, rest) == (True, [])
    else:
        assert rest[0].startswith("installed in ")
        assert rest[1:] == [f"demo of {Path('.venv/bin/python')}"]
