"""What a release is held against: its tag, its files, and the Pythons that it is tried on."""

import hashlib
import json
import os
import re
from pathlib import Path

import pytest
import yaml

from regard.cli.program import app
from setup import LIST_OF_PAGES, away_from_home
from tests.architecture.sources import ROOT
from tools.release import (
    BUILDERS,
    TRIALS,
    pythons,
    sbom,
    sdist_problems,
    tag_problems,
    vulnerabilities,
    wheel_problems,
)

CHANGELOG = (
    "# Changelog\n\n## [Unreleased]\n\n## [0.2.0] - 2026-11-15\n\n- More.\n\n## [0.1.0] - 2026-01-01\n"
)
TRACKED = [
    "LICENSE",
    "README.md",
    "pyproject.toml",
    "setup.py",
    "regard/__init__.py",
    "regard/page/page.css",
    "tests/test_x.py",
]
PACKAGE = ["regard/__init__.py", "regard/page/page.css"]
SOURCES = [
    "LICENSE",
    "README.md",
    "pyproject.toml",
    "setup.py",
    *PACKAGE,
    "PKG-INFO",
    "regard.egg-info/SOURCES.txt",
]


def test_tag_version_and_changelog_agree():
    assert list(tag_problems("v0.2.0", "0.2.0", CHANGELOG)) == []


@pytest.mark.parametrize(
    ("tag", "version", "changelog", "problem"),
    [
        ("v0.2.1", "0.2.0", CHANGELOG, "the tag is v0.2.1"),
        ("v0.2.1", "0.2.1", CHANGELOG, "no heading `## [0.2.1]"),
        ("v0.2.0", "0.2.0", CHANGELOG.replace(" - 2026-11-15", ""), "no heading"),
        ("v0.2.0", "0.2.0", CHANGELOG.replace("[Unreleased]\n", "[Unreleased]\n\n- New.\n"), "unreleased"),
    ],
)
def test_what_does_not_agree_is_said(tag, version, changelog, problem):
    (found,) = tag_problems(tag, version, changelog)
    assert problem in found


def test_what_is_read_away_from_home_leads_nowhere_inside_of_it():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert LIST_OF_PAGES in readme
    text = away_from_home(readme)
    assert re.findall(r"]\((?!https?://)", text) == []
    assert "中文\n" not in text
    assert text.count("```") == readme.count("```") > 0
    assert (
        away_from_home("[a](b.md) and [c](https://d.org)\n\n![p](q.png)\n") == "a and [c](https://d.org)\n\n"
    )


def test_a_wheel_is_the_package_and_nothing_else():
    assert list(wheel_problems([*PACKAGE, "regard-0.2.0.dist-info/METADATA"], TRACKED)) == []
    (lacking,) = wheel_problems(PACKAGE[:1], TRACKED)
    assert lacking == "the wheel lacks regard/page/page.css"
    (stranger,) = wheel_problems([*PACKAGE, "tests/test_x.py"], TRACKED)
    assert "tests/test_x.py" in stranger


def test_sources_are_all_known_to_git():
    inside = [f"regard-0.2.0/{name}" for name in SOURCES]
    assert list(sdist_problems(inside, TRACKED)) == []
    (lacking,) = sdist_problems(inside[1:], TRACKED)
    assert lacking == "the sources lack LICENSE"
    (stranger,) = sdist_problems([*inside, "regard-0.2.0/secret.key"], TRACKED)
    assert "secret.key" in stranger


def test_every_fitting_python_is_found_once(tmp_path):
    def python(place: str, version: str, status: int = 0) -> Path:
        program = tmp_path / place
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(f"#!/bin/sh\necho {version}\nexit {status}\n", encoding="utf-8")
        program.chmod(0o755)
        return program

    there = python("path/python3.12", "3 12")
    python("path/python3.13", "3 13", status=127)  # a shim that leads nowhere
    python("home/a/bin/python3", "3 10")
    python("home/b/bin/python3", "3 12")
    other = python("home/c/bin/python3", "3 13")
    homes = [tmp_path / "home" / name for name in "abcd"]
    assert pythons(str(tmp_path / "path"), homes) == [str(there), str(other)]


def test_every_trial_is_a_command_that_exists():
    verbs = {trial.split()[1] for trial in TRIALS if trial.startswith("regard ")}
    assert verbs - {command.name for command in app.registered_commands} == {"--version"}


def test_the_list_of_requirements_names_every_package_and_the_wheel_by_its_hash(tmp_path):
    (tmp_path / "regard.whl").write_bytes(b"wheel")
    installed = {"regard": "0.2.0", "torch": "2.13.0+cpu", "numpy": "2.4.1", "pip": "26.0"}
    document = sbom("0.2.0", tmp_path / "regard.whl", installed)
    assert [each["purl"] for each in document["components"]] == [
        "pkg:pypi/numpy@2.4.1",
        "pkg:pypi/torch@2.13.0",
    ]
    (digest,) = document["metadata"]["component"]["hashes"]
    assert digest["content"] == hashlib.sha256(b"wheel").hexdigest()


def test_vulnerabilities_are_read_from_the_report():
    packages = [
        {"name": "a", "version": "1", "vulns": [{"id": "PYSEC-1"}]},
        {"name": "b", "version": "2", "vulns": []},
        {"name": "c", "skip_reason": "not on PyPI"},
    ]
    assert vulnerabilities(json.dumps({"dependencies": packages})) == ["a 1: PYSEC-1"]


def test_what_builds_a_release_is_pinned_by_hash_and_by_the_versions_of_ci():
    constraints = (ROOT / "constraints.txt").read_text(encoding="utf-8").lower().splitlines()
    lines = [line for line in BUILDERS.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    for line in lines:
        pin, _, digest = line.partition(" --hash=sha256:")
        assert pin.lower() in constraints
        assert re.fullmatch(r"[0-9a-f]{64}", digest)
    assert {line.partition("==")[0] for line in lines} >= {"build", "setuptools"}


def test_actions_are_pinned_by_commit():
    for file in (ROOT / ".github" / "workflows").glob("*.yml"):
        jobs = yaml.safe_load(file.read_text(encoding="utf-8"))["jobs"].values()
        for used in [step["uses"] for job in jobs for step in job["steps"] if "uses" in step]:
            assert re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", used), used


def test_workflows_go_through_doors_that_are_there():
    commands = []
    for file in (ROOT / ".github" / "workflows").glob("*.yml"):
        jobs = yaml.safe_load(file.read_text(encoding="utf-8"))["jobs"].values()
        commands += [step["run"] for job in jobs for step in job["steps"] if "run" in step]
    ours = [word for command in commands for word in command.split() if word.startswith((".ci/", "tools/"))]
    assert {".ci/run", "tools/release.py"} <= {*ours}
    assert all((ROOT / word).is_file() for word in ours)
    assert os.access(ROOT / ".ci" / "run", os.X_OK) or "bash .ci/run" in commands
