"""Print the lines of every file and the longest functions, biggest first: size is on display."""

import ast
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

SHOWN = 20


def functions(path: Path) -> Iterator[tuple[int, str]]:
    """The length and the place of every function in a file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield (node.end_lineno or node.lineno) - node.lineno + 1, f"{path}:{node.lineno} {node.name}"


def print_biggest(title: str, sizes: list[tuple[int, str]]) -> None:
    """The biggest of some sizes, under a heading with their number and sum."""
    print(f"{title}: {len(sizes)}, {sum(size for size, _ in sizes)} lines")
    for size, name in sorted(sizes, reverse=True)[:SHOWN]:
        print(f"{size:6}  {name}")


def main(folders: list[str]) -> None:
    """Measure every Python file under some folders."""
    files = [path for folder in folders for path in Path(folder).rglob("*.py")]
    print_biggest(
        "files", [(len(path.read_text(encoding="utf-8").splitlines()), str(path)) for path in files]
    )
    print()
    print_biggest("functions", [size for path in files for size in functions(path)])


if __name__ == "__main__":
    # `make size | head` ends quietly.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    main(sys.argv[1:] or ["regard"])
