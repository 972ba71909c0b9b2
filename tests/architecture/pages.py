"""The commands and the Python of a Markdown page, and how to run them.

`regard` runs in this process; pipes and redirections run in a shell, and Python in a process of its own.
"""

import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.programs import run_regard

FENCE = re.compile(r"^ {0,3}```(?P<language>[\w-]*)\n(?P<body>.*?)^ {0,3}```", re.MULTILINE | re.DOTALL)
TARGET = re.compile(r"^([\w-]+):(?!=)", re.MULTILINE)
EXTRAS = re.compile(r"\[([\w, -]+)\]")

# These need a network or change the machine; they are looked at, not run.
NOT_RUN = re.compile(r"^(git|cd|sudo|apt-get|python3? -m venv|source|\. )\b")


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block of a page."""

    language: str
    body: str
    line: int


def blocks(page: str) -> Iterator[Block]:
    """The fenced blocks of a page, with the line number of their first line."""
    for match in FENCE.finditer(page):
        yield Block(match["language"], match["body"], page.count("\n", 0, match.start("body")) + 1)


def commands(page: str) -> Iterator[str]:
    """What a reader would type: the `$ ` lines of console blocks, all the lines of bash blocks."""
    for block in blocks(page):
        if block.language not in ("console", "bash", "sh", "shell"):
            continue
        for line in block.body.replace("\\\n", " ").splitlines():
            if block.language == "console":
                if line.startswith("$ "):
                    yield line[2:].strip()
            elif line.strip() and not line.lstrip().startswith("#"):
                yield line.strip().removeprefix("$ ")


def python_of(page: str) -> str:
    """All the Python blocks of a page as one script, every line where the page has it."""
    lines = [""] * (page.count("\n") + 1)
    for block in blocks(page):
        if block.language == "python":
            for offset, line in enumerate(block.body.splitlines()):
                lines[block.line - 1 + offset] = line
    return "\n".join(lines)


def unkept_promise(command: str, root: Path) -> str | None:
    """What is wrong with a command that is not run: a door or an extra that does not exist."""
    words = shlex.split(command, comments=True)
    if words[0] == "make":
        targets = set(TARGET.findall((root / "Makefile").read_text(encoding="utf-8")))
        missing = {word for word in words[1:] if "=" not in word and not word.startswith("-")} - targets
        return f"there is no door {', '.join(sorted(missing))}: {command}" if missing else None
    if "pip install" in command:
        project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        asked = {extra.strip() for found in EXTRAS.findall(command) for extra in found.split(",")}
        missing = asked - set(project.get("optional-dependencies", {}))
        return f"there is no extra {', '.join(sorted(missing))}: {command}" if missing else None
    return None


def is_run(command: str) -> bool:
    """Whether a command is really run, rather than looked at."""
    return not (command.startswith("make") or "pip install" in command or NOT_RUN.match(command))


def run(command: list[str], folder: Path) -> str | None:
    """Run a command in a folder with this Python's programs first; what it said if it failed."""
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command, cwd=folder, env=os.environ | {"PATH": programs}, capture_output=True, text=True, check=False
    )
    return None if done.returncode == 0 else f"{command[-1]}\n{done.stdout}{done.stderr}"


def plain_words(command: str) -> list[str] | None:
    """What follows `regard` in a command that needs no shell; None for any other command."""
    first, *others = shlex.shlex(command, posix=True, punctuation_chars=True)
    if first != "regard" or any(set(word) <= set("();<>|&") for word in others):
        return None
    return shlex.split(command, comments=True)[1:]


def run_command(command: str, folder: Path) -> str | None:
    """Run a command of a page; returns what it printed if it failed."""
    words = plain_words(command)
    if words is None:
        return run(["bash", "-c", command], folder)
    done = run_regard(*words, folder=folder)
    return None if done.returncode == 0 else f"{command}\n{done.stdout}{done.stderr}"


def failures(page: Path, root: Path, folder: Path) -> Iterator[str]:
    """Everything on a page that does not work. What it writes goes to `folder`, which sees the checkout."""
    for entry in root.iterdir():
        if not entry.name.startswith("."):
            (folder / entry.name).symlink_to(entry)
    text = page.read_text(encoding="utf-8")
    for command in commands(text):
        failure = run_command(command, folder) if is_run(command) else unkept_promise(command, root)
        if failure:
            yield f"{page.name}: {failure}"
    if (script := python_of(text)).strip():
        # Compiled under the page's name, so that a traceback shows the line of the page.
        (folder / "page.txt").write_text(script, encoding="utf-8")
        code = f"exec(compile(open('page.txt', encoding='utf-8').read(), {page.name!r}, 'exec'))"
        if failure := run([sys.executable, "-c", code], folder):
            yield f"{page.name}: {failure}"
