"""What the architecture tests share: where things are, and every Python file of the package, parsed."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "regard"


def parsed(package: Path) -> Iterator[tuple[Path, ast.Module]]:
    """Every Python file under a package, with its syntax tree."""
    for path in sorted(package.rglob("*.py")):
        yield path.relative_to(package), ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def write_package(folder: Path, files: dict[str, str]) -> Path:
    """A small package made of these files, to show that a test can fail."""
    package = folder / "regard"
    for name, text in files.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(text, encoding="utf-8")
    return package
