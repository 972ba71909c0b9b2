"""Write `docs/python.md`: every public name, from its own signature and docstrings.

    python tools/python_page.py > docs/python.md

The source is parsed rather than inspected, so that annotations and defaults appear as they were written.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from textwrap import dedent
from types import ModuleType

import regard

ROOT = Path(__file__).resolve().parents[1]
Definition = ast.FunctionDef | ast.ClassDef

HEADING = """\
# Python

This page is made from the docstrings by `make docs`; a test compares the two. Every name is imported from
`regard` itself; `import regard` imports no torch until one of them needs it.
"""

CHAPTERS = {
    "regard.loaded": "Models that run",
    "regard.tasks.loaded": "Models that run",
    "regard.engine.options": "Options",
    "regard.engine": "What comes back",
    "regard.training": "Training",
    "regard.tasks": "Tasks of one's own",
    "regard.model": "The boxes of the paper",
    "regard.packing": "Packed sequences",
    "regard.bundle": "Model folders",
    "regard.config": "Configuration",
    "regard.errors": "Errors",
}
ELSEWHERE = "More"

SECTION = re.compile(r"^(Args|Returns|Yields|Raises):$", re.MULTILINE)
ENTRY = re.compile(r"^(\S[^:]*): ", re.MULTILINE)


@dataclass(frozen=True)
class Public:
    """A public name and where it is defined."""

    name: str
    module: ModuleType
    node: Definition | ast.Module

    @classmethod
    def find(cls, name: str) -> Public:
        """Look a name up in the source of the module that defines it; a module is its own definition."""
        if isinstance(module := getattr(regard, name), ModuleType):
            return cls(name, module, ast.parse(inspect.getsource(module)))
        module = sys.modules[module.__module__]
        return cls(name, module, definition(module, name))

    def inner_bases(self) -> Iterator[ast.ClassDef]:
        """Base classes without an entry of their own: the first class that has one lists their members."""
        bases = getattr(regard, self.name).__mro__[1:]
        listed = [base for base in bases if base.__name__ in regard.__all__]
        for base in bases:
            if any(issubclass(other, base) for other in listed):
                continue
            if base.__module__.startswith("regard."):
                node = definition(sys.modules[base.__module__], base.__name__)
                assert isinstance(node, ast.ClassDef)
                yield node

    @property
    def chapter(self) -> str:
        """The title under which a reader looks for it."""
        within = (title for home, title in CHAPTERS.items() if self.module.__name__.startswith(home))
        return next(within, ELSEWHERE)

    @property
    def path(self) -> str:
        """Its file, from the root of the project."""
        return Path(inspect.getsourcefile(self.module) or "").relative_to(ROOT).as_posix()


def definition(module: ModuleType, name: str) -> Definition:
    """The definition of a name in a module."""
    body = ast.parse(inspect.getsource(module)).body
    found = (node for node in body if isinstance(node, Definition) and node.name == name)
    return list(found)[-1]  # behind its overloads


def page() -> str:
    """The whole page, as Markdown."""
    chapters: dict[str, list[Public]] = {title: [] for title in (*CHAPTERS.values(), ELSEWHERE)}
    for name in regard.__all__:
        if name != "__version__":
            public = Public.find(name)
            chapters[public.chapter].append(public)
    parts = [HEADING]
    for title, names in chapters.items():
        if names:
            parts.append(f"## {title}\n")
            parts += [entry(public) for public in names]
    return "\n".join(parts).rstrip() + "\n"


def entry(public: Public) -> str:
    """One public name: how it is called, what it says of itself, and its members."""
    parts = [f"### `{public.name}`\n", f"[{public.path}](../{public.path})\n"]
    if isinstance(public.node, ast.Module):
        parts.append(prose(public.node))
    elif isinstance(public.node, ast.FunctionDef):
        parts += [signature(public.node, public.name), prose(public.node)]
    else:
        parts += [*constructor(public.node), prose(public.node), *members(public.node, public.name)]
        parts += [part for base in public.inner_bases() for part in members(base, public.name)]
    return "\n".join(part for part in parts if part)


def constructor(node: ast.ClassDef) -> Iterator[str]:
    """How an object is made, where that is written out."""
    for method in node.body:
        if isinstance(method, ast.FunctionDef) and method.name == "__init__":
            yield signature(method, node.name)


def members(node: ast.ClassDef, name: str) -> Iterator[str]:
    """Fields that are described, then public methods and properties that are."""
    fields = [f"- `{name}`: {text}" for name, text in described_fields(node)]
    if fields:
        yield "\n".join(fields) + "\n"
    for method in node.body:
        if not isinstance(method, ast.FunctionDef) or method.name.startswith("_"):
            continue
        if not (words := prose(method)):
            continue
        called = f"{name}.{method.name}"
        yield f"#### `{called}`\n"
        if not any(ast.unparse(one).endswith("property") for one in method.decorator_list):
            yield signature(method, called)
        yield words


def described_fields(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    """The fields that a string follows, as Python keeps no docstring for them."""
    for field, text in pairwise(node.body):
        match field, text:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(words))):
                yield name, " ".join(words.split())


def signature(node: ast.FunctionDef, called: str) -> str:
    """How to call it, as it is written: one line, or one for each argument."""
    arguments = node.args
    own = {"self", "cls"} & {argument.arg for argument in arguments.args[:1]}
    words = ast.unparse(arguments).removeprefix(next(iter(own), "")).removeprefix(", ")
    returns = f" -> {ast.unparse(node.returns)}" if node.returns and node.name != "__init__" else ""
    line = f"{called}({words}){returns}"
    if len(line) > 110:
        lines = "".join(f"    {argument},\n" for argument in split_arguments(words))
        line = f"{called}(\n{lines}){returns}"
    return f"```text\n{line}\n```\n"


def split_arguments(words: str) -> list[str]:
    """Arguments apart, at the commas that are not inside brackets."""
    parts, depth = [""], 0
    for letter in words:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def prose(node: Definition | ast.Module) -> str:
    """A docstring as Markdown: its sections become lists."""
    text, *sections = SECTION.split(ast.get_docstring(node) or "")
    parts = [text.strip()]
    for title, body in zip(sections[::2], sections[1::2], strict=True):
        parts += [f"{title}:", as_list(dedent(body.strip("\n")))]
    return "\n\n".join(part for part in parts if part) + "\n" if parts[0] else ""


def as_list(body: str) -> str:
    """Entries of the form `name: what it is`, their further lines joined on."""
    entries = re.sub(r"\n\s+", " ", body.strip()).split("\n")
    return "\n".join("- " + ENTRY.sub(r"`\1`: ", entry, count=1) for entry in entries)


if __name__ == "__main__":
    print(page(), end="")
