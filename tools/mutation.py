"""Change the package one line at a time, and count the changes that no test notices.

    python tools/mutation.py                                         200 mutants of look/ and model/taps.py
    python tools/mutation.py regard/decode --tests tests/decode      of other sources, by other tests
    python tools/mutation.py --map map.json --count 60               keeps the map of lines to tests for later
    python tools/mutation.py --map map.json --at regard/look/walk.py:120         every mutant of a line

Run it in the root of a checkout. A mutant is one change of the syntax tree (tools/source_changes.py).

First all tests run once, and the lines that each one executes are recorded. Then every mutant gets a
process of its own, forked from one that has imported torch and other libraries but nothing of the package:
an import hook gives it the changed module, and no file is written. The tests of the changed lines run, the
fastest first. A failing test kills the mutant, and so does a timeout. `tools/mutation_equivalent.tsv` lists
changes that alter no result, with reasons.
"""

from __future__ import annotations

import argparse
import ast
import builtins
import functools
import hashlib
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
from tools.source_changes import Mutant, draw, mutants_of, reporting_tree

PATHS = ("regard/look", "regard/model/taps.py")
TESTS = (
    "tests/look",
    "tests/model/test_recording.py",
    "tests/model/test_taps.py",
    "tests/experiments/test_attention_is_it_explanation.py",
)
PRELOADED = (
    "numpy",
    "torch",
    "hypothesis",
    "rich.console",
    "sentencepiece",
    "safetensors.torch",
    "tokenizers",
)
EQUIVALENT = Path(__file__).with_name("mutation_equivalent.tsv")


def read_equivalent(file: Path = EQUIVALENT) -> set[tuple[str, str, str]]:
    """Path, source line and change of the mutants that alter no result."""
    rows = (line.split("\t") for line in file.read_text(encoding="utf-8").splitlines()[1:])
    return {(path, source, change) for path, source, change, reason in rows if reason}


@dataclass
class TestMap:
    """Which lines each test executes, and how long it takes."""

    lines: dict[str, dict[str, list[int]]] = field(default_factory=dict)
    """By test and file."""
    seconds: dict[str, float] = field(default_factory=dict)

    def tests_of(self, mutant: Mutant) -> list[str]:
        """The tests of the changed lines, the fastest first; of a line that runs on import, of the module."""
        first, last = mutant.span
        touching = {test: files[mutant.path] for test, files in self.lines.items() if mutant.path in files}
        near = [t for t, lines in touching.items() if any(first <= line <= last for line in lines)]
        return sorted(near if mutant.in_function else touching, key=self.seconds.__getitem__)


Line = tuple[str, int]


class LineRecorder:
    """A pytest plugin that records the statements of each test; fixtures and caches count each time."""

    def __init__(self) -> None:
        """Statements report themselves by `hit`."""
        self.map, self.failed = TestMap(), list[str]()
        self._current: set[Line] = set()
        self._of_fixture: dict[Any, set[Line]] = defaultdict(set)

    def hit(self, file: str, line: int) -> None:
        """A statement is about to be executed."""
        self._current.add((file, line))

    def _into(self, lines: set[Line]) -> Iterator[None]:
        before, self._current = self._current, lines
        yield
        self._current = before
        before |= lines

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Any:
        """Record one test, with its fixtures."""
        lines: set[Line] = set()
        start = time.monotonic()
        yield from self._into(lines)
        for fixtures in item._fixtureinfo.name2fixturedefs.values():
            for each in fixtures:
                lines |= self._of_fixture[each]
        found: dict[str, list[int]] = defaultdict(list)
        for file, line in sorted(lines):
            found[file].append(line)
        self.map.lines[item.nodeid], self.map.seconds[item.nodeid] = found, time.monotonic() - start

    @pytest.hookimpl(hookwrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Any:
        """Record one fixture."""
        yield from self._into(self._of_fixture[fixturedef])

    def pytest_runtest_logreport(self, report: Any) -> None:
        """A test that fails without any mutant cannot kill one."""
        if report.failed:
            self.failed.append(report.nodeid)

    def cache(self, function: Any) -> Any:
        """`functools.cache`, except that every caller gets the lines of the call that was made."""
        known: dict[Any, tuple[Any, set[Line]]] = {}

        @functools.wraps(function)
        def remembered(*args: Any, **options: Any) -> Any:
            key = (args, tuple(options.items()))
            if key not in known:
                lines: set[Line] = set()
                for _ in self._into(lines):
                    known[key] = function(*args, **options), lines
            self._current |= known[key][1]
            return known[key][0]

        return remembered


class Chosen:
    """A pytest plugin that keeps some tests, in an order."""

    def __init__(self, tests: Sequence[str]) -> None:
        """`tests` are node ids."""
        self.rank = {test: i for i, test in enumerate(tests)}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Drop and sort."""
        items[:] = sorted((i for i in items if i.nodeid in self.rank), key=lambda i: self.rank[i.nodeid])


class ChangedModule(importlib.machinery.SourceFileLoader, importlib.abc.MetaPathFinder):
    """Imports one module from another tree."""

    def __init__(self, path: str, tree: Callable[[], ast.Module]) -> None:
        """The module is known by its path."""
        parts = Path(path).with_suffix("").parts
        super().__init__(".".join(parts).removesuffix(".__init__"), str(Path(path).resolve()))
        self.tree = tree

    def find_spec(self, name: str, *_: object) -> Any:
        """The module itself; all others are found as usual."""
        if name != self.name:
            return None
        return importlib.util.spec_from_file_location(name, self.path, loader=self)

    def get_code(self, _: str) -> Any:
        """The changed code, never a cached one."""
        return compile(self.tree(), self.path, "exec")


def run_pytest(tests: Sequence[str], plugin: Any, *options: str) -> int:
    """Run pytest in this process; its exit code."""
    with tempfile.TemporaryDirectory() as folder:
        words = [*options, "-q", "-p", "no:cacheprovider", f"--basetemp={folder}/t"]
        return int(pytest.main([*words, *dict.fromkeys(test.split("::")[0] for test in tests)], [plugin]))


def try_mutant(mutant: Mutant, tests: Sequence[str]) -> int:
    """Run the tests of one mutant in this process: first those of the file that has most of them."""
    sys.meta_path.insert(0, ChangedModule(mutant.path, mutant.tree))
    files = Counter(test.split("::")[0] for test in tests)
    ((best, _),) = files.most_common(1)
    first = [test for test in tests if test.split("::")[0] == best]
    others = [test for test in tests if test.split("::")[0] != best]
    return run_pytest(first, Chosen(first), "-x") or (
        run_pytest(others, Chosen(others), "-x") if others else 0
    )


def fork(job: Any) -> int:
    """Run a function in a process of its own, without output; its exit code is the function's result."""
    pid = os.fork()
    if pid:
        return pid
    code = 3
    try:
        os.setsid()
        nothing = os.open(os.environ.get("MUTATION_LOG", os.devnull), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for stream in (1, 2):
            os.dup2(nothing, stream)
        code = job()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def map_tests(paths: Sequence[Path], tests: Sequence[str], stored: Path | None = None) -> TestMap:
    """Run the tests once, and note which lines each one executes; `stored` if nothing changed."""
    sources = sorted({*Path().glob("regard/**/*.py"), *Path().glob("tests/**/*.py"), *paths})
    texts = [
        Path(__file__).read_text(encoding="utf-8"),
        *map(str, tests),
        *(file.read_text(encoding="utf-8") for file in sources),
    ]
    digest = hashlib.sha256("\0".join(texts).encode()).hexdigest()
    if stored is not None and stored.exists():
        known = json.loads(stored.read_text(encoding="utf-8"))
        if known.pop("digest") == digest:
            return TestMap(**known)
    read, write = os.pipe()

    def job() -> int:
        recorder = LineRecorder()
        builtins.__dict__["_hit"], functools.cache = recorder.hit, recorder.cache
        for path in map(str, paths):
            sys.meta_path.insert(0, ChangedModule(path, functools.partial(reporting_tree, path)))
        run_pytest(tests, recorder)
        for test in recorder.failed:
            recorder.map.lines.pop(test, None)
        with os.fdopen(write, "w") as stream:
            json.dump(vars(recorder.map) | {"failed": recorder.failed}, stream)
        return 0

    pid = fork(job)
    os.close(write)
    with os.fdopen(read) as stream:
        text = stream.read()
    if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) != 0:
        sys.exit("the tests cannot be run; set MUTATION_LOG=FILE to see why")
    found = json.loads(text)
    for test in found.pop("failed"):
        print(f"left out, as it fails without any mutant: {test}")
    if stored is not None:
        stored.write_text(json.dumps({"digest": digest, **found}), encoding="utf-8")
    return TestMap(**found)


class Running(NamedTuple):
    """A process that tries one mutant."""

    mutant: Mutant
    deadline: float


def try_all(mutants: Iterable[Mutant], tests: TestMap, processes: int = 1) -> Iterator[tuple[Mutant, str]]:
    """Each mutant and what became of it: "killed", "timeout", "survived" or "not covered"."""
    waiting, running = list(mutants)[::-1], dict[int, Running]()

    while waiting or running:
        while waiting and len(running) < processes:
            mutant = waiting.pop()
            if chosen := tests.tests_of(mutant):
                limit = time.monotonic() + 60 + 5 * sum(map(tests.seconds.__getitem__, chosen))
                running[fork(functools.partial(try_mutant, mutant, chosen))] = Running(mutant, limit)
            else:
                yield mutant, "not covered"
        for pid, job in list(running.items()):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                del running[pid]
                yield job.mutant, "killed" if os.waitstatus_to_exitcode(status) else "survived"
            elif time.monotonic() > job.deadline:
                with suppress(ProcessLookupError):
                    os.killpg(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                del running[pid]
                yield job.mutant, "timeout"
        time.sleep(0.02)


def main(words: Sequence[str] | None = None) -> int:
    """Print the mutants that survive, and their share; the exit code is 1 above `--at-most` percent."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("paths", nargs="*", default=PATHS, help="files and folders to change")
    parser.add_argument("--tests", nargs="+", default=TESTS, help="files and folders of tests")
    parser.add_argument("--count", type=int, default=200, help="number of mutants")
    parser.add_argument("--seed", type=int, default=0, help="seed of the draw")
    parser.add_argument("--map", type=Path, help="file that keeps the map of lines to tests between runs")
    parser.add_argument("--at", action="append", default=[], help="FILE:LINE, to try every mutant of a line")
    parser.add_argument("--at-most", type=float, default=5.0, help="percentage that may survive")
    parser.add_argument("--show", action="store_true", help="print all mutants, and run nothing")
    parser.add_argument("-j", dest="processes", type=int, default=1, help="processes side by side")
    options = parser.parse_args(words)
    files = [f for p in map(Path, options.paths) for f in (sorted(p.rglob("*.py")) if p.is_dir() else [p])]
    known = [mutant for file in files for mutant in mutants_of(file)]
    chosen = draw(known, options.count, options.seed)
    if options.at:
        chosen = [mutant for mutant in known if f"{mutant.path}:{mutant.line}" in options.at]
    equivalent = read_equivalent()
    tried = [each for each in chosen if (each.path, each.source, each.change) not in equivalent]
    if options.show:
        print(*tried, sep="\n")
        return 0
    os.environ |= {
        "OMP_NUM_THREADS": "1",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }  # plugins take 2 s to import
    for name in PRELOADED:
        with suppress(ImportError):
            importlib.import_module(name)
    counts: Counter[str] = Counter()
    for number, (mutant, fate) in enumerate(
        try_all(tried, map_tests(files, options.tests, options.map), options.processes), 1
    ):
        counts[fate] += 1
        if fate in ("survived", "not covered"):
            print(f"{fate}: {mutant}", flush=True)
        elif number % 20 == 0:
            print(f"… {number} of {len(tried)}", flush=True)
    survived = counts["survived"] + counts["not covered"]
    share = 100 * survived / max(1, len(tried))
    print(
        f"{survived} of {len(tried)} mutants survive ({share:.1f}%); killed {counts['killed']}, "
        f"out of time {counts['timeout']}; {len(chosen) - len(tried)} more alter no result"
    )
    return int(share > options.at_most)


if __name__ == "__main__":
    sys.exit(main())
