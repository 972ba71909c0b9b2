"""The Dockerfile: what it copies exists and is not ignored, what it installs is pinned; a linter agrees."""

import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from regard.cli import main
from tests.architecture.sources import ROOT

TEXT = (ROOT / "Dockerfile").read_text(encoding="utf-8")
INSTRUCTIONS = [
    line.split(maxsplit=1)
    for line in re.sub(r"\\\n", " ", re.sub(r"^#.*\n", "", TEXT, flags=re.MULTILINE)).splitlines()
    if line.strip()
]
TRACKED = subprocess.run(
    ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
).stdout.splitlines()  # fmt: skip


def of(name):
    return [rest for word, rest in INSTRUCTIONS if word == name]


def test_everything_copied_exists_and_is_sent_to_docker():
    sent = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    sources = [word for rest in of("COPY") if "--from" not in rest for word in rest.split()[:-1]]
    assert sources
    assert {*sources} == {*sent}
    for source in sources:
        assert any(file == source or file.startswith(f"{source}/") for file in TRACKED), source


def test_the_build_has_every_file_that_the_package_names():
    sent = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = ["README.md", *project["license-files"]]
    assert all(any(file == each or file.startswith(f"{each}/") for each in sent) for file in named)


def test_what_is_installed_is_an_extra_or_has_a_pinned_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pinned = {Requirement(line).name for line in _lines(ROOT / "constraints.txt")}
    commands = re.findall(r"pip install ([^;&]*)", "; ".join(of("RUN")))
    assert len(commands) == 3
    for command in commands:
        words = command.replace('"', "").split()
        assert "/src/constraints.txt" in words
        options = {"-c": 1, "--index-url": 1, "--no-deps": 0}
        names, i = [], 0
        while i < len(words):
            names += [] if words[i] in options else [words[i]]
            i += 1 + options.get(words[i], 0)
        for name in names:
            if match := re.fullmatch(r"/src\[(.+)\]", name):
                assert {*match[1].split(",")} <= {*project["optional-dependencies"]}
            else:
                assert name in pinned


def _lines(path):
    return [line for line in path.read_text().splitlines() if line and not line.startswith("#")]


def test_it_serves_without_privileges_and_asks_whether_it_lives(capsys):
    assert of("USER") == ["1000"]
    assert json.loads(of("ENTRYPOINT")[0]) == ["regard"]
    (health,) = of("HEALTHCHECK")
    assert "/livez" in health
    command = json.loads(of("CMD")[0])
    options = {word for word in command if word.startswith("--")}
    with pytest.raises(SystemExit):
        main(["serve", "--help"])
    shown = capsys.readouterr().out
    assert command[0] == "serve"
    assert all(option in shown for option in options)
    version = re.search(r"^ARG PYTHON=(3\.\d+)$", TEXT, re.MULTILINE)[1]
    assert tuple(map(int, version.split("."))) >= (3, 11)


def test_a_linter_finds_nothing():
    program = shutil.which("hadolint", path=str(Path(sys.executable).parent)) or shutil.which("hadolint")
    if program is None:
        pytest.skip("hadolint is not installed")
    done = subprocess.run([program, ROOT / "Dockerfile"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("docker") is None, reason="Docker is not installed")
def test_docker_builds_it():
    if subprocess.run(["docker", "info"], capture_output=True, check=False).returncode:
        pytest.skip("Docker does not run")
    built = subprocess.run(
        ["docker", "build", "-q", "-t", "regard:test", ROOT], capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stderr
