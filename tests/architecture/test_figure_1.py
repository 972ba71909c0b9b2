"""`docs/figure-1.md` maps every box of the paper's figures to a file and a name, and the map is true."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.architecture.sources import ROOT, write_package

PAGE = ROOT / "docs" / "figure-1.md"


class Row(NamedTuple):
    """One row of the page: a box, the file that holds it, and the names that make it up."""

    box: str
    file: str
    names: tuple[str, ...]


def rows(page: str) -> Iterator[Row]:
    """The rows of the form `| box | file.py | name |`; links and backticks around them are ignored."""
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) >= 3 and (file := re.search(r"[\w/]+\.py", cells[1])):
            yield Row(cells[0], file.group(), tuple(re.findall(r"`([\w.]+)(?:\(.*?\))?`", cells[2])))


def defined_names(source: str) -> set[str]:
    """What a file defines at its top level, and the members of its classes as `Class.member`."""
    found = set()
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{part.name}" for part in node.body if isinstance(part, ast.FunctionDef)}
        if isinstance(node, ast.Assign):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return found


def problems(page: str, root: Path) -> Iterator[str]:
    """Rows that name what does not exist, and files of the model that no row names."""
    model = root / "regard" / "model"
    mentioned = set()
    for row in rows(page):
        file = root / row.file if (root / row.file).exists() else model / row.file
        if not file.exists():
            yield f"{row.box}: there is no file {row.file}"
            continue
        mentioned.add(file)
        if not row.names:
            yield f"{row.box}: names nothing in {row.file}"
        for name in set(row.names) - defined_names(file.read_text(encoding="utf-8")):
            yield f"{row.box}: {row.file} does not define {name}"
    for file in sorted(set(model.rglob("*.py")) - mentioned - set(model.rglob("__init__.py"))):
        # Files that are no box of the figure may be named in the prose.
        if not re.search(rf"\b{re.escape(file.name)}\b", page):
            yield f"{file.name} is not mentioned"


def test_the_map_is_true():
    page = PAGE.read_text(encoding="utf-8")
    assert list(rows(page)), "the page has no rows of the form | box | file | name |"
    assert list(problems(page, ROOT)) == []


HEAD = "| box | file | class or function |\n|---|---|---|\n"


@pytest.mark.parametrize(
    ("table", "complaint"),
    [
        ("| Encoder | `regard/model/encoder.py` | `Encoder` |", None),
        ("| Encoder | [encoder.py](../regard/model/encoder.py) | `Encoder`, `Encoder.forward` |", None),
        ("| Encoder | `encoder.py` | `encode(x)` |", None),
        ("| Encoder | `regard/model/encoder.py` | `Encodre` |", "does not define Encodre"),
        ("| Encoder | `regard/model/encoder.py` | the class |", "names nothing"),
        ("| Encoder | `regard/model/encodre.py` | `Encoder` |\nand encoder.py", "there is no file"),
        ("", "encoder.py is not mentioned"),
    ],
)
def test_an_untrue_row_is_found(tmp_path, table, complaint):
    source = "class Encoder:\n    def forward(self): ...\n\ndef encode(x): ...\n"
    write_package(tmp_path, {"model/encoder.py": source, "model/__init__.py": ""})
    found = list(problems(HEAD + table, tmp_path))
    assert len(found) == (complaint is not None)
    assert not found or complaint in found[0]
