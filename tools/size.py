"""Measure the house: files, folders, imports, cycles, lengths and, with --hops, call paths.

    python tools/size.py            what can be read from the sources of regard/
    python tools/size.py --hops     also follows the calls of a tiny training and of a translation

Run it in the root of a checkout. A hop is a change of file on a call stack, in files of regard/ alone. The
stacks of one verb are counted as a tree, so that a shared beginning counts once:

- `regard train`: from the verb to the tensors of the first batch, and to the first loss. A batch may be made
  in a thread of its own: its stack continues the one that started the thread.
- `regard translate`: from the verb to the subwords of the text, to the making of the engine, to its search,
  and to the text made from the subwords that it returns.
"""

from __future__ import annotations

import ast
import os
import signal
import sys
import tempfile
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

PACKAGE, ROOT = Path("regard"), f"{Path('regard').resolve()}{os.sep}"
CROWDED = 20  # a folder should hold at most about this many files directly
SMALL = 80  # a module of fewer lines that has one importer could often be part of it
SHOWN = 12  # rows printed of each list


class Module(NamedTuple):
    """One Python file of the package."""

    name: str
    path: Path
    lines: int
    tree: ast.Module


def read_modules(package: Path) -> dict[str, Module]:
    """Every module of a package by its dotted name."""
    modules = {}
    for path in sorted(package.rglob("*.py")):
        name = ".".join(path.relative_to(package.parent).with_suffix("").parts).removesuffix(".__init__")
        text = path.read_text(encoding="utf-8")
        modules[name] = Module(name, path, len(text.splitlines()), ast.parse(text, filename=str(path)))
    return modules


def imported_names(module: Module) -> Iterator[tuple[int, str]]:
    """Line and dotted name of everything that a module imports, at the top or inside functions."""
    package = module.name.split(".") if module.path.stem == "__init__" else module.name.split(".")[:-1]
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            source = ".".join(part for part in (start, node.module) if part)
            yield from ((node.lineno, f"{source}.{alias.name}") for alias in node.names)


def import_graph(modules: dict[str, Module]) -> dict[str, set[str]]:
    """The modules of the package that each module imports; lazy and TYPE_CHECKING imports count."""
    graph: dict[str, set[str]] = {name: set() for name in modules}
    for name, module in modules.items():
        for _, imported in imported_names(module):
            found = imported if imported in modules else imported.rpartition(".")[0]
            if found in modules and found != name:
                graph[name].add(found)
    return graph


def cycles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Groups of modules that import each other, directly or through others (Tarjan's algorithm)."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack, found = [], []

    def visit(node: str) -> None:
        number[node] = lowest[node] = len(number)
        stack.append(node)
        for other in sorted(graph[node]):
            if other not in number:
                visit(other)
                lowest[node] = min(lowest[node], lowest[other])
            elif other in stack:
                lowest[node] = min(lowest[node], number[other])
        if lowest[node] == number[node]:
            at = stack.index(node)
            group, stack[at:] = stack[at:], []
            if len(group) > 1:
                found.append(sorted(group))

    for node in sorted(graph):
        if node not in number:
            visit(node)
    return sorted(found, key=len, reverse=True)


def single_importer(modules: dict[str, Module], graph: dict[str, set[str]]) -> list[tuple[int, str, str]]:
    """Lines, name and importer of every module that exactly one other imports; no `__init__.py` is listed."""
    importers = defaultdict(set)
    for name, imported in graph.items():
        for other in imported:
            importers[other].add(name)
    alone = [name for name, by in importers.items() if len(by) == 1 and modules[name].path.stem != "__init__"]
    return sorted((modules[name].lines, name, *importers[name]) for name in alone)


def files_by_folder(package: Path) -> Counter[Path]:
    """Number of Python, JavaScript, style and word files directly in each folder."""
    counted = {".py", ".js", ".css", ".html", ".json"}
    return Counter(path.parent for path in package.rglob("*") if path.suffix in counted)


def functions(modules: Iterable[Module]) -> Iterator[tuple[int, str]]:
    """Length and place of every function."""
    for module in modules:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield node.end_lineno - node.lineno + 1, f"{module.path}:{node.lineno} {node.name}"


def repeated_classes(modules: Iterable[Module]) -> dict[str, list[str]]:
    """Names of classes that more than one module defines, with the files."""
    homes = defaultdict(list)
    for module in modules:
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef):
                homes[node.name].append(str(module.path))
    return {name: files for name, files in homes.items() if len(files) > 1}


# --- hops -------------------------------------------------------------------------------------------------

Chain = tuple[str, ...]  # files of the package, from the verb to an endpoint
Reached = Callable[[FrameType, Any], bool]  # whether a call is an endpoint: its frame, and its C function


@dataclass
class Recorder:
    """A profile hook: the files that run, and the first call stack to each of some endpoints."""

    verb: str  # the file in which every chain begins: `train.py`
    endpoints: dict[str, Reached]
    chains: dict[str, Chain] = field(default_factory=dict)
    files: set[str] = field(default_factory=set)
    threads: dict[threading.Thread, Chain] = field(default_factory=dict)

    def __call__(self, frame: FrameType, event: str, called: Any) -> None:
        """Record a call; this is what `sys.setprofile` takes."""
        if event == "call":
            if (file := package_file(frame)) and frame.f_code.co_name != "<module>":
                self.files.add(file)
            called = None
        elif event != "c_call":
            return
        for name, reached in self.endpoints.items():
            if name not in self.chains and reached(frame, called):
                self.chains[name] = self.chain(frame)
                if len(self.chains) == len(self.endpoints):
                    raise SystemExit  # the rest of the run is not needed

    def chain(self, frame: FrameType | None) -> Chain:
        """Files of the package on the stack, from the verb on; neighbours that are equal count once."""
        own = []
        while frame is not None:
            own.append(package_file(frame))
            frame = frame.f_back
        files = [*self.threads.get(threading.current_thread(), ()), *filter(None, reversed(own))]
        start = next((i for i, file in enumerate(files) if Path(file).name == self.verb), 0)
        return tuple(f for i, f in enumerate(files) if i >= start and (i == start or f != files[i - 1]))

    def run(self, words: list[str]) -> None:
        """Run `regard` in this process with these words, quietly, and record it."""
        from regard.cli import main

        start = threading.Thread.start

        def start_known(thread: threading.Thread) -> None:
            self.threads[thread] = self.chain(sys._getframe(1))
            start(thread)

        threading.Thread.start = start_known  # type: ignore[method-assign]
        threading.setprofile(self)
        sys.setprofile(self)
        try:
            with redirect_stdout(StringIO()), redirect_stderr(StringIO()), suppress(SystemExit):
                main(words)
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
            threading.Thread.start = start  # type: ignore[method-assign]


def package_file(frame: FrameType | None) -> str | None:
    """The file of a frame, relative to the package; None for a file of another package."""
    name = frame.f_code.co_filename if frame else ""
    return name.removeprefix(ROOT) if name.startswith(ROOT) else None


def function(name: str, caller: str = "") -> Reached:
    """Whether a call is of this function of the package, by a file whose path begins with `caller`."""

    def reached(frame: FrameType, called: Any) -> bool:
        is_called = called is None and frame.f_code.co_qualname == name and package_file(frame)
        return bool(is_called) and (package_file(frame.f_back) or "").startswith(caller)

    return reached


def c_function(name: str) -> Reached:
    """Whether a call is of a function of this name that is not written in Python."""
    return lambda frame, called: getattr(called, "__name__", "") == name and bool(package_file(frame))


def hops(chains: Iterable[Chain]) -> int:
    """Changes of file in several chains, laid over each other as a tree."""
    return len({chain[:end] for chain in chains for end in range(2, len(chain) + 1)})


def print_hops() -> None:
    """Begin to train, translate one sentence, and print the chains of both."""
    files = ["examples/dates.zh", "examples/dates.en", "--config", "examples/dates.toml"]
    batch_and_loss = {
        "batch": function("Boundaries.of_lengths", caller="data"),
        "loss": function("label_smoothed_cross_entropy"),
    }
    text_to_text = {
        "subwords": function("Subwords.encode"),
        "engine": function("CTranslate2Engine.__init__"),
        "search": c_function("translate_batch"),
        "text": function("Subwords.decode"),
    }
    with tempfile.TemporaryDirectory() as folder:
        train = ["train", *files, "--out", str(Path(folder, "run"))]
        for words, endpoints in ((train, batch_and_loss), (["translate", "猫坐在垫子上。"], text_to_text)):
            recorder = Recorder(f"{words[0]}.py", endpoints)
            recorder.run(words)
            total = hops(recorder.chains.values())
            print(f"\nregard {words[0]}: {total} hops; {len(recorder.files)} files run until then")
            for name in endpoints:
                chain = recorder.chains.get(name, ())
                print(f"  {name} ({len(chain) - 1}): {' → '.join(chain) or 'not reached'}")


# --- the report -------------------------------------------------------------------------------------------


def print_list(title: str, rows: Iterable[str]) -> None:
    """A heading and the first rows of a list."""
    rows = list(rows)
    rest = [f"… and {len(rows) - SHOWN} more"] if len(rows) > SHOWN else []
    print("", title, *(f"  {row}" for row in rows[:SHOWN] + rest), sep="\n")


def print_sizes() -> None:
    """Everything that can be read from the sources."""
    modules = read_modules(PACKAGE)
    graph = import_graph(modules)
    print(f"{len(modules)} Python files, {sum(module.lines for module in modules.values()):,} lines")
    folders = files_by_folder(PACKAGE).most_common()
    crowded = sum(count > CROWDED for _, count in folders)
    print_list(
        f"files directly in a folder: {crowded} folders hold more than {CROWDED} (!)",
        (f"{count:5}{' !'[count > CROWDED]} {folder}" for folder, count in folders),
    )
    alone = single_importer(modules, graph)
    small = sum(lines < SMALL for lines, _, _ in alone)
    print_list(
        f"modules with one importer: {len(alone)}, {sum(row[0] for row in alone):,} lines; "
        f"{small} of them under {SMALL} lines",
        (f"{lines:5}  {name}  (by {by})" for lines, name, by in alone),
    )
    rings = cycles(graph)
    print_list(f"import cycles: {len(rings)}", (f"{len(ring):5}  {' '.join(ring)}" for ring in rings))
    twice = repeated_classes(modules.values())
    title = f"class names defined more than once: {len(twice)}"
    print_list(title, (f"{name}: {' '.join(files)}" for name, files in twice.items()))
    files = [(module.lines, str(module.path)) for module in modules.values()]
    for title, sizes in (("longest files", files), ("longest functions", functions(modules.values()))):
        print_list(title, (f"{lines:5}  {place}" for lines, place in sorted(sizes, reverse=True)))


if __name__ == "__main__":
    # `make size | head` ends quietly.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    print_sizes()
    if "--hops" in sys.argv:
        sys.path.insert(0, str(Path.cwd()))
        print_hops()
