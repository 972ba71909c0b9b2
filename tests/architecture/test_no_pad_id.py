"""Padding has no name outside attention, and nothing that can execute is ever saved or loaded."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.sources import PACKAGE, parsed, write_package

# A name that contains one of these is refused: `src_pad_id` and `cloudpickle` too.
FORBIDDEN = ("pad_id", "padding_idx", "pickle")

# These write and read pickles under another name.
FORBIDDEN_CALLS = ("torch.save", "torch.load")

OTHER_PEOPLES = "exchange/families/folder.py"
"""The one file that opens such a thing: models of others come as pickles, too."""

OWN_PIPE = "serve/work/process.py"
"""The server and a process that it has started send each other pickles; no file and no stranger does."""


def identifiers(node: ast.AST) -> Iterator[str]:
    """Every name that a node of the syntax tree introduces or uses."""
    match node:
        case ast.Name(id=name) | ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Attribute(attr=name):
            yield name
            yield ast.unparse(node)
        case ast.arg(arg=name) | ast.keyword(arg=str(name)):
            yield name
        case ast.alias(name=name, asname=asname):
            yield from filter(None, (name, asname))
        case ast.ImportFrom(module=str(name)):
            yield name


def forbidden_names(package: Path) -> Iterator[str]:
    for file, tree in parsed(package):
        for node in ast.walk(tree):
            for name in identifiers(node):
                if name in FORBIDDEN_CALLS or ("." not in name and any(word in name for word in FORBIDDEN)):
                    yield f"{file}:{getattr(node, 'lineno', 0)}: {name}"


def test_no_pad_id_and_no_pickle():
    assert [name for name in forbidden_names(PACKAGE) if not name.startswith((OTHER_PEOPLES, OWN_PIPE))] == []


def test_other_peoples_pickles_are_opened_for_their_weights_alone():
    tree = ast.parse((PACKAGE / OTHER_PEOPLES).read_text(encoding="utf-8"))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    loads = [call for call in calls if ast.unparse(call.func) == "torch.load"]
    assert loads
    assert all("weights_only=True" in map(ast.unparse, call.keywords) for call in loads)


@pytest.mark.parametrize(
    "text",
    [
        "pad_id = 0",
        "def f(src_pad_id): ...",
        "f(padding_idx=0)",
        "x = self.pad_id",
        "import pickle",
        "from pickle import loads",
        "import safe as cloudpickle",
        "torch.save(x, y)",
    ],
)
def test_a_forbidden_name_is_found(tmp_path, text):
    assert len(list(forbidden_names(write_package(tmp_path, {"data/store.py": text})))) == 1


def test_words_in_prose_pass(tmp_path):
    files = {"data/store.py": '"""No pad_id, no pickle."""\ntorch.save_nothing(x)  # never pickle'}
    assert list(forbidden_names(write_package(tmp_path, files))) == []
