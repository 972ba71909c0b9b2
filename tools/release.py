"""Build what is released, look into it, and try it out in empty environments.

    python tools/release.py                       # before a release: on every Python ≥ 3.11 that is found
    python tools/release.py --tag v0.1.0          # and hold version and changelog against the tag
    python tools/release.py --python python3.13   # on this one alone

What is built is the last commit, whatever lies about in the folder. It takes the network: each environment
gets the wheel and the versions of `constraints.txt`, and in it a model is trained for a moment, translates by
each engine, and is looked into. The tools that build it are pinned by hash. Beside wheel and sources it
writes a list of everything that the wheel requires (SBOM, CycloneDX), which `pip-audit` checks where it has a
network.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from os import environ, pathsep
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zipfile import ZipFile

ROOT = Path(__file__).parents[1]
OLDEST = (3, 11)
BUILDERS = ROOT / "tools" / "release-requirements.txt"
"""What builds a release, pinned by hash."""

GENERATED = re.compile(r"PKG-INFO|setup\.cfg|regard\.egg-info/.*")
"""What setuptools adds to the sources."""

SMALL = " ".join(
    f"--set training.{setting}"
    for setting in ("batch_tokens=1000", "checkpoint_every=100", "max_steps=100", "warmup_steps=30")
)
TRIALS = (
    "regard --version",
    "regard doctor",
    "seq -f 'there are %g cats' 400 > train.en && seq -f 'es sind %g Katzen' 400 > train.de",
    f"regard train train.en train.de --preset tiny {SMALL} --out run",
    "regard info run/best",
    "regard translate 'there are 7 cats' --model run --engine ctranslate2 | grep Katzen",
    "regard translate 'there are 7 cats' --model run --engine torch | grep Katzen",
    "regard look 'there are 7 cats' --model run -o look.html",
)
"""With a model that was made on the spot."""


def tag_problems(tag: str, version: str, changelog: str) -> Iterator[str]:
    """Where a tag, the version and the changelog do not agree."""
    if tag != f"v{version}":
        yield f"the tag is {tag}, and regard/version.py says {version}"
    if not re.search(rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d$", changelog, re.MULTILINE):
        yield f"CHANGELOG.md has no heading `## [{version}] - YYYY-MM-DD`"
    unreleased = re.search(r"^## \[Unreleased\]\n(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL)
    if unreleased and unreleased[1].strip():
        yield "CHANGELOG.md has entries that are unreleased: move them under the version's heading"


def wheel_problems(names: Iterable[str], tracked: Iterable[str]) -> Iterator[str]:
    """What a wheel lacks of the package, and what it has besides: of a release nothing may differ."""
    package = {name for name in tracked if name.startswith("regard/")}
    found = {name for name in names if not re.match(r"regard-[^/]+\.dist-info/", name)}
    yield from (f"the wheel lacks {name}" for name in sorted(package - found))
    yield from (f"the wheel has {name}, which is no part of the package" for name in sorted(found - package))


def sdist_problems(names: Iterable[str], tracked: Iterable[str]) -> Iterator[str]:
    """The same of the sources, which may have more than the package, and nothing that git does not know."""
    known = set(tracked)
    needed = {name for name in known if name.startswith("regard/")} | {
        "LICENSE",
        "README.md",
        "pyproject.toml",
        "setup.py",
    }
    found = {name.partition("/")[2] for name in names}
    yield from (f"the sources lack {name}" for name in sorted(needed - found))
    strangers = (name for name in found - known if name and not GENERATED.fullmatch(name))
    yield from (f"the sources have {name}, which git does not know" for name in sorted(strangers))


def pythons(path: str, homes: Iterable[Path]) -> list[str]:
    """One Python of each version that will do: those on a search path, then those in pyenv's folders."""
    minor = range(OLDEST[1], OLDEST[1] + 20)
    named = (shutil.which(f"python{OLDEST[0]}.{i}", path=path) for i in minor)
    found: dict[tuple[int, int], str] = {}
    for program in [*filter(None, named), *(str(home / "bin" / "python3") for home in sorted(homes))]:
        version = _version_of(program)
        if version is not None and version >= OLDEST:
            found.setdefault(version, program)
    return [found[version] for version in sorted(found)]


def _version_of(program: str) -> tuple[int, int] | None:
    """None where it does not run, as pyenv's shims do not for versions that are not chosen."""
    code = "import sys; print(*sys.version_info[:2])"
    try:
        told = subprocess.run(
            [program, "-c", code], capture_output=True, text=True, check=True
        ).stdout.split()
    except (OSError, subprocess.CalledProcessError):
        return None
    return int(told[0]), int(told[1])


def git(*words: str) -> bytes:
    """What git says of this repository."""
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, check=True).stdout


def environment(folder: Path, *installed: str | Path, python: str = sys.executable) -> Path:
    """A new virtual environment with some packages; returns its Python."""
    subprocess.run([python, "-m", "venv", folder], check=True)
    program = folder / "bin" / "python"
    install = [program, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *installed]
    subprocess.run(install, check=True)
    return program


def sbom(version: str, wheel: Path, installed: Mapping[str, str]) -> dict[str, Any]:
    """The wheel and everything that was installed with it, by name and version, as a CycloneDX document."""
    digest = sha256(wheel.read_bytes()).hexdigest()
    main = _component("regard", version) | {"hashes": [{"alg": "SHA-256", "content": digest}]}
    others = {name: each for name, each in installed.items() if name not in ("pip", "regard", "setuptools")}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": main},
        "components": [_component(name, others[name]) for name in sorted(others)],
    }


def _component(name: str, version: str) -> dict[str, Any]:
    public = version.partition("+")[0]  # without the name of a local build
    return {"type": "library", "name": name, "version": public, "purl": f"pkg:pypi/{name}@{public}"}


def vulnerabilities(report: str) -> list[str]:
    """What `pip-audit` found, from its JSON report."""
    return [
        f"{each['name']} {each['version']}: {known['id']}"
        for each in json.loads(report)["dependencies"]
        for known in each.get("vulns", ())
    ]


def audit(document: Mapping[str, Any]) -> list[str]:
    """Known vulnerabilities of what the wheel requires; without network, only a line that says so."""
    with TemporaryDirectory() as place:
        folder, report = Path(place), Path(place) / "report.json"
        pins = [f"{each['name']}=={each['version']}\n" for each in document["components"]]
        (folder / "pins.txt").write_text("".join(pins), encoding="utf-8")
        python = environment(folder / "venv", "pip-audit")
        command = [python, "-m", "pip_audit", "--no-deps", "--disable-pip", "-r", folder / "pins.txt"]
        options = ["--progress-spinner", "off", "--format", "json", "--output", report]
        ended = subprocess.run([*command, *options], capture_output=True, text=True)
        if not report.exists() or not report.read_text(encoding="utf-8").strip():
            reason = (ended.stderr.strip().splitlines() or ["no report"])[-1]
            print(f"not audited: {reason}", flush=True)
            return []
        return vulnerabilities(report.read_text(encoding="utf-8"))


def build(commit: str, out: Path) -> tuple[Path, Path]:
    """The wheel and the sources of a commit."""
    with TemporaryDirectory() as folder, TemporaryDirectory() as tools:
        subprocess.run(["tar", "-x", "-C", folder], input=git("archive", commit), check=True)
        out.mkdir(parents=True, exist_ok=True)
        for old in out.glob("regard-*"):
            old.unlink()
        python = environment(Path(tools), "--require-hashes", "-r", BUILDERS)
        build = [python, "-m", "build", "--no-isolation", "--outdir", out, folder]
        subprocess.run(build, check=True)
    (wheel,), (sdist,) = out.glob("regard-*.whl"), out.glob("regard-*.tar.gz")
    return wheel, sdist


def content_problems(commit: str, wheel: Path, sdist: Path) -> list[str]:
    """What is wrong with what was built."""
    tracked = git("ls-tree", "-r", "-z", "--name-only", commit).decode().split("\0")
    with ZipFile(wheel) as file:
        found = [*wheel_problems(file.namelist(), tracked)]
    with tarfile.open(sdist) as file:
        return [*found, *sdist_problems((each.name for each in file if each.isfile()), tracked)]


def trials() -> Iterator[str]:
    """What an installed program must be able to do; where one fails, the release does."""
    yield from TRIALS
    if any((ROOT / "regard" / "bundled").glob("*/manifest.json")):
        yield "regard translate 猫坐在垫子上。"


def try_out(python: str, wheel: Path) -> dict[str, str]:
    """Install the wheel where there is nothing else, and let it work; returns what was installed."""
    with TemporaryDirectory() as place:
        folder = Path(place)
        programs = environment(folder / "venv", "-c", ROOT / "constraints.txt", wheel, python=python).parent
        kept = {name: value for name, value in environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
        path = f"{programs}{pathsep}{environ['PATH']}"
        for trial in trials():
            print(f"$ {trial}", flush=True)
            there = kept | {"PATH": path, "REGARD_CACHE": str(folder / "cache")}
            subprocess.run(["bash", "-c", trial], cwd=folder, env=there, check=True)
        listing = [programs / "python", "-m", "pip", "list", "--format", "json"]
        listed = subprocess.run(listing, capture_output=True, check=True).stdout
        return {each["name"].lower(): each["version"] for each in json.loads(listed)}


def main() -> None:
    """Check all of it, and exit with 1 where something is wrong."""
    parser = argparse.ArgumentParser(description="Build what is released, look into it and try it out.")
    parser.add_argument("--tag", help="the tag of the release, like v0.1.0")
    parser.add_argument("--python", action="append", help="try it on this one; may be repeated")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="where to put what is built")
    asked = parser.parse_args()
    version = re.search(r'__version__ = "(.+)"', (ROOT / "regard" / "version.py").read_text(encoding="utf-8"))
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    problems = [*tag_problems(asked.tag, version[1], changelog)] if asked.tag else []
    commit = git("rev-parse", "HEAD").decode().strip()
    wheel, sdist = build(commit, asked.out)
    problems += content_problems(commit, wheel, sdist)
    if problems:
        sys.exit("\n".join(problems))
    homes = (Path(environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions").glob("*")
    for python in asked.python or pythons(environ["PATH"], homes):
        print(f"--- {python}", flush=True)
        document = sbom(version[1], wheel, try_out(python, wheel))
    text = json.dumps(document, indent=1) + "\n"
    (asked.out / f"regard-{version[1]}.cdx.json").write_text(text, encoding="utf-8")
    if problems := audit(document):
        sys.exit("\n".join(problems))
    print(f"{wheel.name} and {sdist.name} are fit to be released")


if __name__ == "__main__":
    main()
