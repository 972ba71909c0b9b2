"""The public surface is a list, and the list is true."""

import ast
import subprocess
import sys
from importlib import import_module

import pytest

import regard
from tests.architecture.sources import PACKAGE


def names_for_type_checkers(source: str) -> dict[str, str]:
    """The names that a module imports under `if TYPE_CHECKING`, with the modules they come from."""
    return {
        alias.name: str(statement.module)
        for block in ast.parse(source).body
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for statement in block.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }


def test_the_list_is_sorted_as_a_reader_looks_names_up():
    assert regard.__all__ == sorted(set(regard.__all__), key=str.casefold)


def test_type_checkers_and_python_see_the_same_names():
    assert names_for_type_checkers((PACKAGE / "__init__.py").read_text(encoding="utf-8")) == regard._HOMES
    assert {*regard._HOMES, "__version__"} == set(regard.__all__)


def test_names_for_type_checkers_are_found():
    source = "if TYPE_CHECKING:\n    from a.b import C, d\nfrom e import f\n"
    assert names_for_type_checkers(source) == {"C": "a.b", "d": "a.b"}


@pytest.mark.parametrize("name", regard.__all__)
def test_every_public_name_is_there(name):
    value = getattr(regard, name)
    if home := regard._HOMES.get(name):
        assert value is getattr(import_module(home), name)
        module = getattr(value, "__module__", value.__name__)  # `registries` is a module itself
        assert module.startswith(home), f"{name} is defined in {module}, not {home}"
        assert value.__doc__, f"{name} has no docstring"


def test_every_public_name_is_listed():
    assert set(regard.__all__) <= set(dir(regard))


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Transfromer'"):
        regard.Transfromer  # noqa: B018


@pytest.mark.parametrize(
    "statement", ["import regard", "import regard.config", "from regard.cli import main"]
)
def test_torch_is_not_imported_before_it_is_needed(statement):
    code = f"import sys; {statement}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
