"""Scripts beside the package import names that exist: most need a GPU, a corpus or other projects to run."""

import ast
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from tests.architecture.sources import ROOT

FOLDERS = ("benchmarks", "examples", "models", "recipes", "tools")
SCRIPTS = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]


def missing_imports(source: str) -> Iterator[str]:
    """Imports from `regard`, at the top or in functions, that would fail."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [(alias.name, None) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [(node.module or "", alias.name) for alias in node.names]
        else:
            continue
        for module, name in names:
            if module.partition(".")[0] == "regard" and not is_there(module, name):
                yield f"line {node.lineno}: {module} {name or ''}".rstrip()


def is_there(module: str, name: str | None) -> bool:
    """Whether a module can be imported and has the name, or a module of that name inside it."""
    try:
        if name is None or hasattr(import_module(module), name):
            return name is not None or bool(import_module(module))
        return bool(import_module(f"{module}.{name}"))
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("regard"):
            return False
        raise


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_script_imports_what_is_there(path: Path):
    assert list(missing_imports(path.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import regard\nimport numpy\nfrom regard.config import RunConfig", []),
        ("from regard import bundled, config", []),
        ("from regard.config import RunConfing", ["line 1: regard.config RunConfing"]),
        ("def f():\n    import regard.confing", ["line 2: regard.confing"]),
        ("from regard.confing import RunConfig", ["line 1: regard.confing RunConfig"]),
    ],
)
def test_a_missing_import_is_found(source, found):
    assert list(missing_imports(source)) == found
