"""Check the types of the page's modules: TypeScript reads them and their JSDoc comments, and writes nothing.

    python tools/page_types.py

TypeScript comes from npm, at the version and hash of `tools/typescript/package-lock.json`; it is installed
into `.venv` on first use. Where Node or npm is missing, or npm cannot install it, the check is skipped, and
says so.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PINS = Path(__file__).with_name("typescript")
INSTALLED = ROOT / ".venv" / "typescript"
INSTALL_S = 120
"""Longest time to install TypeScript."""


def compiler() -> Path | None:
    """The compiler of the pinned version, if it is installed."""
    package = INSTALLED / "node_modules" / "typescript"
    wanted = json.loads((PINS / "package.json").read_text(encoding="utf-8"))["devDependencies"]["typescript"]
    if not (package / "package.json").is_file():
        return None
    found = json.loads((package / "package.json").read_text(encoding="utf-8"))["version"]
    return package / "bin" / "tsc" if found == wanted else None


def install() -> str:
    """Install the pinned version; returns what went wrong, or nothing."""
    npm = shutil.which("npm")
    if npm is None:
        return "npm is not installed"
    INSTALLED.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(PINS / name, INSTALLED)
    command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    try:
        done = subprocess.run(command, cwd=INSTALLED, timeout=INSTALL_S, capture_output=True, text=True)
    except subprocess.TimeoutExpired:
        return f"npm took more than {INSTALL_S} s to install TypeScript"
    return f"npm cannot install TypeScript: {done.stderr.strip()}" if done.returncode else ""


def main(project: Path = PINS / "tsconfig.json") -> int:
    """Check a project; returns the exit status."""
    node = shutil.which("node")
    problem = "Node is not installed" if node is None else ("" if compiler() else install())
    if problem:
        print(f"the types of the page are not checked: {problem}")
        return 0
    done = subprocess.run([str(node), str(compiler()), "--project", str(project), "--pretty", "false"])
    if done.returncode == 0:
        print("the types of the page are right")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
