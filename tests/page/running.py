"""Run the page's modules in Node."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="Node, which runs the page's modules, is not installed")


def node(*arguments, given=""):
    assert NODE is not None
    done = subprocess.run([NODE, "--no-warnings", *arguments], input=given, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def answers(held, questions):
    """What a source made of a saved file answers."""
    given = json.dumps({"held": held, "questions": questions})
    return json.loads(node(HERE / "answers.mjs", given=given))
