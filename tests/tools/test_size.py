"""`make size` counts what is there: small packages with known cycles, importers and hops."""

import subprocess
import sys

import pytest

from tests.architecture.sources import ROOT, write_package
from tools.size import (
    cycles,
    files_by_folder,
    hops,
    import_graph,
    read_modules,
    repeated_classes,
    single_importer,
)

FILES = {
    "__init__.py": "",
    "a.py": "from regard.b import one\n\nclass Part: ...\n",
    "b.py": "def one():\n    from regard import c\n",
    "c.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import regard.a\n",
    "inner/__init__.py": "from .deep import Part\n",
    "inner/deep.py": "class Part: ...\n",
    "page/x.js": "",
}


@pytest.fixture
def package(tmp_path):
    return write_package(tmp_path, FILES)


def test_imports_inside_functions_and_for_types_count(package):
    graph = import_graph(read_modules(package))
    assert graph["regard.b"] == {"regard.c"}
    assert graph["regard.c"] == {"regard.a"}
    assert graph["regard.inner"] == {"regard.inner.deep"}
    assert cycles(graph) == [["regard.a", "regard.b", "regard.c"]]


def test_a_straight_line_is_no_cycle():
    assert cycles({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


def test_modules_with_one_importer(package):
    modules = read_modules(package)
    alone = single_importer(modules, import_graph(modules))
    assert {name: by for _, name, by in alone} == {
        "regard.a": "regard.c",
        "regard.b": "regard.a",
        "regard.c": "regard.b",
        "regard.inner.deep": "regard.inner",
    }
    assert [lines for lines, _, _ in alone] == [1, 2, 3, 3]


def test_files_and_class_names(package):
    assert files_by_folder(package) == {package: 4, package / "inner": 2, package / "page": 1}
    twice = repeated_classes(read_modules(package).values())
    assert list(twice) == ["Part"]
    assert len(twice["Part"]) == 2


def test_a_shared_beginning_of_chains_counts_once():
    assert hops([("verb", "a", "b", "c"), ("verb", "a", "d")]) == 4
    assert hops([("verb", "a", "b", "a")]) == 3


@pytest.mark.slow
def test_the_chains_reach_their_ends():
    command = [sys.executable, "tools/size.py", "--hops"]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "not reached" not in said
    assert [line.split(" (")[0].strip() for line in said.splitlines() if " → " in line] == [
        "batch",
        "loss",
        "subwords",
        "engine",
        "search",
        "text",
    ]
