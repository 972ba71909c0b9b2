"""The examples run as they stand, in their shortest form."""

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.architecture.sources import ROOT


def run(tmp_path, *words):
    done = subprocess.run(
        [sys.executable, *words], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_reversing_digits(tmp_path):
    output = run(tmp_path, str(ROOT / "examples" / "reverse.py"), "--steps", "3")
    assert "exact matches:" in output
    assert "where the decoder looks" in output


@pytest.mark.slow
def test_the_demo(tmp_path):
    quick = ["--set", "training.max_steps=4", "--set", "training.validate_every=2"]
    output = run(
        tmp_path, str(ROOT / "examples" / "demo.py"), "run", *quick, "--set", "training.warmup_steps=2"
    )
    assert "exact matches:" in output
    assert "where the head looks" in output
    assert str(Path("run", "attention.svg")) in output
    assert (tmp_path / "run" / "look.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert ElementTree.parse(tmp_path / "run" / "attention.svg").getroot().tag.endswith("svg")
