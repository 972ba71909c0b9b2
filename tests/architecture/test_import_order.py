"""Each line of the ladder imports only from the lines above it; imports inside functions count too."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.sources import PACKAGE, parsed, write_package

LADDER = [
    {"errors", "version", "host", "durable", "page", "cancellation"},
    {"config", "bundled"},
    {"packing", "text"},
    {"documents"},
    {"model", "loss"},
    {"data", "bundle", "decode"},
    {"exchange"},
    {"engine"},
    {"look", "scores"},
    {"tasks"},
    {"loaded"},
    {"training"},
    {"experiments"},
    {"serve", "doctor"},
    {"scale"},
    {"cli"},
]
RUNG = {unit: rung for rung, units in enumerate(LADDER) for unit in units}

# The public namespace and `python -m regard` stand on top of everything, and nothing stands on them.
ROOF = {"__init__", "__main__"}

# Some units are kept from a library, or from a part of the package that the ladder would allow.
STRANGERS = {
    "errors": {"torch"},
    "config": {"torch"},
    "text": {"torch"},
    "decode": {"regard.text"},
}


def unit_of(file: Path) -> str:
    """The rung's name for a file: `model` for model/encoder.py, `loss` for loss.py."""
    return file.parts[0].removesuffix(".py")


def imports(file: Path, tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and full name of everything that a file of the package imports."""
    inside = ["regard", *file.parts[:-1]]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = ".".join(inside[: len(inside) - node.level + 1]) if node.level else ""
            module = ".".join(part for part in (start, node.module) if part)
            yield from ((node.lineno, f"{module}.{alias.name}") for alias in node.names)


def objection(unit: str, name: str) -> str | None:
    """Why `unit` may not import `name`, or None if it may."""
    if any(name == stranger or name.startswith(stranger + ".") for stranger in STRANGERS.get(unit, ())):
        return f"{unit} must not know {name}"
    parts = name.split(".")
    if parts[0] != "regard":
        return None
    if len(parts) == 1 or parts[1] not in RUNG:
        return f"{unit} imports the public namespace: {name}"
    other = parts[1]
    if other != unit and RUNG[other] >= RUNG[unit]:
        return f"{unit} imports {other}, which does not lie below it"
    return None


def forbidden_imports(package: Path) -> Iterator[str]:
    """Every import that goes against the ladder, and every file that has no rung."""
    for file, tree in parsed(package):
        unit = unit_of(file)
        if unit in ROOF:
            continue
        if unit not in RUNG:
            yield f"{file}: {unit} has no rung on the ladder"
            continue
        for line, name in imports(file, tree):
            if problem := objection(unit, name):
                yield f"{file}:{line}: {problem}"


def test_nothing_imports_upwards_or_sideways():
    assert list(forbidden_imports(PACKAGE)) == []


@pytest.mark.parametrize(
    ("file", "text", "complaint"),
    [
        ("packing.py", "from regard.model.encoder import Encoder", "packing imports model"),
        ("packing.py", "def lazy():\n    import regard.training.loop", "packing imports training"),
        ("model/encoder.py", "from regard.loss import smoothed", "model imports loss"),
        ("model/encoder.py", "from ..cli import main", "model imports cli"),
        ("model/encoder.py", "from regard import Transformer", "model imports the public namespace"),
        ("config/model.py", "import torch.nn", "config must not know torch.nn"),
        (
            "decode/beam.py",
            "from regard.text.vocabularies.subwords import Subwords",
            "decode must not know regard.text",
        ),
        ("helpers.py", "", "helpers has no rung"),
    ],
)
def test_a_wrong_import_is_found(tmp_path, file, text, complaint):
    (problem,) = forbidden_imports(write_package(tmp_path, {file: text}))
    assert complaint in problem


def test_right_imports_pass(tmp_path):
    files = {
        "errors.py": "import enum",
        "config/model.py": "from regard.errors import ConfigError",
        "model/encoder.py": "from regard import config\nfrom . import taps\nimport regard.model.taps",
        "__init__.py": "from regard.cli import main",
    }
    assert list(forbidden_imports(write_package(tmp_path, files))) == []
