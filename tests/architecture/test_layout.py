"""The folders show the architecture: none is crowded, no import runs in a circle, every error has a code."""

import ast
import re
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import pytest

from tests.architecture.sources import PACKAGE, parsed, write_package
from tools.size import cycles, files_by_folder, import_graph, read_modules

MOST_FILES = 22
"""Files directly in one folder; `make size` flags more than 20."""

ALLOWED = {("regard/bundle", "bundled")}
"""`bundled` holds the models that come with the package, and no code."""

ENDINGS = ("", "s", "d", "r", "ed", "er", "ing", "ion", "or", "es", "ice")
"""Two files of a folder must not be told apart by these alone: `serving` and `served`."""


def crowded_folders(package: Path) -> dict[Path, int]:
    return {folder: n for folder, n in files_by_folder(package).items() if n > MOST_FILES}


def stems(word: str) -> set[str]:
    """What is left of a word without each of the endings that it has; at least four letters."""
    return {word.removesuffix(end) for end in ENDINGS if word.endswith(end) and len(word) - len(end) >= 4}


def confusable_names(package: Path) -> list[tuple[str, str]]:
    """Pairs of modules and folders in one folder whose names differ by an ending alone."""
    folders: dict[Path, set[str]] = {}
    for path in package.rglob("*.py"):
        if path.stem == "__init__":
            folders.setdefault(path.parent.parent, set()).add(path.parent.name)
        else:
            folders.setdefault(path.parent, set()).add(path.stem)
    return [
        (str(folder.relative_to(package.parent) / first), second)
        for folder, names in sorted(folders.items())
        for first, second in combinations(sorted(names), 2)
        if stems(first) & stems(second)
    ]


def error_classes(package: Path) -> set[str]:
    """RegardError and every class of the package that descends from it."""
    bases = {
        node.name: {ast.unparse(base).rpartition(".")[2] for base in node.bases}
        for _, tree in parsed(package)
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    }
    errors = {"RegardError"}
    while more := {name for name, parents in bases.items() if parents & errors} - errors:
        errors |= more
    return errors


def raised_without_code(package: Path) -> Iterator[str]:
    """Places that raise an error of the package without `code=…`."""
    errors = error_classes(package)
    for file, tree in parsed(package):
        for node in ast.walk(tree):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                name = ast.unparse(node.exc.func).rpartition(".")[2]
                if name in errors and not any(k.arg in ("code", None) for k in node.exc.keywords):
                    yield f"{file}:{node.lineno}: {name}"


def test_no_folder_is_crowded():
    assert crowded_folders(PACKAGE) == {}


def test_no_import_runs_in_a_circle():
    assert cycles(import_graph(read_modules(PACKAGE))) == []


def test_no_two_names_differ_by_an_ending():
    assert set(confusable_names(PACKAGE)) <= ALLOWED


def test_every_error_is_raised_with_a_code():
    assert list(raised_without_code(PACKAGE)) == []


def test_codes_are_words():
    codes = {
        keyword.value.value
        for _, tree in parsed(PACKAGE)
        for node in ast.walk(tree)
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call)
        for keyword in node.exc.keywords
        if keyword.arg == "code" and isinstance(keyword.value, ast.Constant)
    }
    assert codes
    assert [code for code in codes if not re.fullmatch(r"[a-z0-9]+(_[a-z0-9]+)*", code)] == []


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"served.py": "", "serving.py": ""}, [("regard/served", "serving")]),
        ({"work/job.py": "", "work/jobs.py": ""}, []),  # three letters are too few to be sure
        ({"work/result.py": "", "work/results.py": ""}, [("regard/work/result", "results")]),
        ({"report/__init__.py": "", "reports.py": ""}, [("regard/report", "reports")]),
        ({"sharing.py": "", "work/shared.py": ""}, []),
        ({"beam.py": "", "sampling.py": ""}, []),
    ],
)
def test_names_that_differ_by_an_ending_are_found(tmp_path, files, expected):
    assert confusable_names(write_package(tmp_path, files)) == expected


def test_a_crowded_folder_is_found(tmp_path):
    package = write_package(tmp_path, {f"page/{n}.js": "" for n in range(MOST_FILES + 1)})
    assert crowded_folders(package) == {package / "page": MOST_FILES + 1}


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("raise ConfigError('x')", 1),
        ("raise errors.RegardError('x')", 1),
        ("raise OwnError('x') from None", 1),
        ("raise ConfigError('x', code='unknown_setting')", 0),
        ("raise ConfigError('x', **options)", 0),
        ("raise ValueError('x')", 0),
        ("raise error", 0),
    ],
)
def test_a_missing_code_is_found(tmp_path, statement, found):
    classes = "class ConfigError(RegardError): ...\nclass OwnError(ConfigError): ...\n"
    package = write_package(tmp_path, {"errors.py": classes, "a.py": statement})
    assert len(list(raised_without_code(package))) == found
