"""The mutation tool changes what it says, kills what tests notice, and leaves files alone."""

import ast
import subprocess
import sys

import pytest

from tests.architecture.sources import ROOT
from tools.mutation import read_equivalent
from tools.source_changes import draw, mutants_of

SOURCE = '''"""A module."""

from typing import Literal

Kind = Literal["a", "b"]
LIMIT = 7


def cut(values: list[int] | None, least: int = 2) -> list[int]:
    """At most LIMIT values from the least on."""
    if not values:
        raise ValueError("no values, 1 is needed")
    assert len(values) > 0, "4 values"
    kept = [each for each in values if each >= least]
    return sorted(kept)[:LIMIT]


def __repr__():
    return 5
'''
STRONG = """
from thing import cut

def test_cut():
    assert cut([3, 1, 2]) == [2, 3]
    assert cut(list(range(20))) == [2, 3, 4, 5, 6, 7, 8]
    try:
        cut([])
    except ValueError:
        return
    assert False
"""
WEAK = """
from thing import cut

def test_cut():
    assert cut([3])
"""


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "thing.py"
    path.write_text(SOURCE, encoding="utf-8")
    return path.relative_to(tmp_path)


def test_code_is_changed_and_words_types_and_assertions_are_not(file):
    found = {(mutant.line, mutant.change) for mutant in mutants_of(file)}
    assert found == {
        (6, "7 → 8"), (6, "7 → 6"), (9, "2 → 3"), (9, "2 → 1"), (11, "not values → values"),
        (12, "raise ValueError('no values, 1 is needed') → pass"),
        (14, "each >= least → each > least"), (15, ":LIMIT → :"),
        (15, "return sorted(kept)[:LIMIT] → return None"),
    }  # fmt: skip


def test_every_mutant_is_another_program_and_no_file_changes(file):
    mutants = mutants_of(file)
    programs = {ast.unparse(mutant.tree()) for mutant in mutants}
    assert len(programs) == len(mutants)
    assert ast.unparse(ast.parse(SOURCE)) not in programs
    assert file.read_text(encoding="utf-8") == SOURCE


def test_a_seed_draws_each_line_once_and_the_same_again(file):
    mutants = mutants_of(file)
    drawn = draw(mutants, 4, seed=1)
    assert len({mutant.line for mutant in drawn}) == 4
    assert drawn == draw(mutants, 4, seed=1)
    assert len(draw(mutants, 100, seed=1)) == len({mutant.line for mutant in mutants})


@pytest.mark.slow
@pytest.mark.parametrize(("test", "survivors"), [(STRONG, 0), (WEAK, 7)], ids=["strong", "weak"])
def test_what_the_tests_miss_survives(file, tmp_path, test, survivors):
    (tmp_path / "test_thing.py").write_text(test, encoding="utf-8")
    lines = [word for number in (6, 9, 11, 12, 14, 15) for word in ("--at", f"thing.py:{number}")]
    command = [
        sys.executable,
        str(ROOT / "tools" / "mutation.py"),
        "thing.py",
        "--tests",
        "test_thing.py",
        *lines,
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert f"{survivors} of 9 mutants survive" in done.stdout, done.stdout + done.stderr
    assert done.returncode == (survivors > 0)
    assert file.read_text(encoding="utf-8") == SOURCE


def test_what_alters_no_result_is_still_in_the_sources():
    for path, source, _ in read_equivalent():
        lines = [line.strip() for line in (ROOT / path).read_text(encoding="utf-8").splitlines()]
        assert source in lines, f"{path} has no line {source}"
