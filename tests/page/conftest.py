"""One Node process that runs the page's modules for all tests here."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def node():
    """Call a function of `worker.mjs`: `node("answers", held, questions)`."""
    program = shutil.which("node")
    if program is None:
        pytest.skip("Node, which runs the page's modules, is not installed")
    worker = Path(__file__).with_name("worker.mjs")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(
        [program, "--no-warnings", worker], text=True, encoding="utf-8", **pipes
    ) as process:

        def call(name, *arguments):
            process.stdin.write(json.dumps([name, arguments]) + "\n")
            process.stdin.flush()
            result = json.loads(process.stdout.readline())
            assert "error" not in result, result["error"]
            return result["value"]

        yield call
        process.stdin.close()
