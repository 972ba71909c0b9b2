"""The examples run as they stand, in their shortest form."""

import json
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.architecture.sources import ROOT

EXAMPLES = ROOT / "examples"


def run(tmp_path, *words):
    done = subprocess.run(
        [sys.executable, *words], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_reversing_digits(tmp_path):
    output = run(tmp_path, str(EXAMPLES / "reverse.py"), "--steps", "3")
    assert "exact matches:" in output
    assert "where the decoder looks" in output


@pytest.mark.slow
def test_a_task_of_ones_own(tmp_path):
    output = run(tmp_path, str(EXAMPLES / "own_task.py"), "4")
    assert re.search(r"^[\d.]+% of the numerals are right$", output, re.MULTILINE)
    assert "1994: " in output
    task = (tmp_path / "runs" / "numbers" / "best" / "config.toml").read_text(encoding="utf-8")
    assert 'name = "roman"' in task


@pytest.mark.slow
def test_the_demo(tmp_path):
    steps = ["training.max_steps=4", "training.validate_every=2", "training.warmup_steps=2"]
    sizes = ["model.d_model=32", "model.d_ff=32", "decoding.extra_length=3"]
    settings = [word for setting in steps + sizes for word in ("--set", setting)]
    output = run(tmp_path, str(EXAMPLES / "demo.py"), "run", *settings)
    assert "exact matches:" in output
    assert "  reference  Sixty-five per cent of the students are from Tokyo.\n" in output
    assert re.search(r"^data, training and scores took \d+ s$", output, re.MULTILINE)
    assert "where the head looks" in output
    assert str(Path("run", "attention.svg")) in output
    assert (tmp_path / "run" / "look.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert ElementTree.parse(tmp_path / "run" / "attention.svg").getroot().tag.endswith("svg")


@pytest.fixture(scope="module")
def dates(tmp_path_factory, dates_run):
    """Where the translator of dates was trained, and what the example prints of it."""
    folder = tmp_path_factory.mktemp("two_files")
    dates_run(folder)
    return folder, run(folder, str(EXAMPLES / "two_files.py"))


@pytest.mark.slow
def test_two_files_become_a_translator(dates):
    _, said = dates
    assert float(re.search(r"exact matches: ([\d.]+)%", said)[1]) > 70
    example = (
        "the output is the reference\n  source     六月一日星期日\n  output     Sunday, the first of June\n"
    )
    assert f"{example}  reference  Sunday, the first of June\n" in said
    held_out = {"五月五日", "八月十五日", "六月一日星期日", "十二月二十五日"}
    assert not held_out & {*(EXAMPLES / "dates.zh").read_text(encoding="utf-8").split()}
    assert re.search(r"fifth +五  ", said)


@pytest.mark.slow
def test_a_head_is_switched_off(dates):
    folder, _ = dates
    said = run(folder, str(EXAMPLES / "head_off.py"))
    assert "三月五日星期二  →  Tuesday, the fifth of March" in said
    assert len(re.findall(r"head \d [+-]0\.\d{3}", said)) > 12
    assert "without the 8 that matter most:" in said


@pytest.mark.slow
def test_the_notebook(dates):
    folder, _ = dates
    cells = json.loads((EXAMPLES / "look.ipynb").read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert all(not cell["outputs"] for cell in code), "a notebook is kept without its outputs"
    script = "\n".join(cell["source"] for cell in code)
    said = run(folder, "-c", f"{script}\nassert weights.shape == (len(trace.outputs), len(trace.inputs))")
    assert "softmax" in said


@pytest.mark.slow
def test_a_classifier(tmp_path):
    said = run(tmp_path, str(EXAMPLES / "classifier.py"))
    assert "七月七日  →  summer  (right)" in said
    assert float(re.search(r"accuracy ([\d.]+)%", said.rpartition("macro-F1")[0])[1]) > 70


def test_attention_by_hand(tmp_path):
    said = run(tmp_path, str(EXAMPLES / "by_hand.py"))
    assert "the 0.248  cat 0.248  sleeps 0.503" in said
    assert "says the same" in said


@pytest.mark.slow
def test_attention_alone(tmp_path):
    said = run(tmp_path, str(EXAMPLES / "attention_alone.py"), "--steps", "120")
    assert float(re.search(r"right: ([\d.]+)%", said)[1]) > 90
    assert "layer 1 head 1:" in said


def test_every_example_is_listed():
    listed = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert [
        path.name
        for path in EXAMPLES.iterdir()
        if f"{path.name})" not in listed and path.suffix in (".py", ".ipynb")
    ] == []
