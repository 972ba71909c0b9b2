"""Says whether this Python can run the package as it is, without installing anything.

    python tools/ready.py

The exit status is 0 if every dependency in pyproject.toml is installed in a suitable version, and 1 if not.
It runs before anything is installed, also in a Python that is too old.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OLDEST = (3, 11)


def missing_from(dependencies):
    """The dependencies that are not installed; if all are, those with an unsuitable version."""
    from importlib.metadata import PackageNotFoundError, version

    absent = []
    for dependency in dependencies:
        try:
            version(re.match(r"[\w.-]+", dependency).group())
        except PackageNotFoundError:
            absent.append(dependency)
    if absent:
        return absent
    from packaging.requirements import Requirement  # itself a dependency

    return [
        f"{required} (it has {version(required.name)})"
        for required in map(Requirement, dependencies)
        if not required.specifier.contains(version(required.name), prereleases=True)
    ]


def main():
    """Print what this Python lacks, or that it is ready; returns the exit status."""
    name = "{} (Python {}.{}.{})".format(sys.executable, *sys.version_info[:3])
    if sys.version_info < OLDEST:
        print("{} is too old: Python {}.{} or later is needed".format(name, *OLDEST))
        return 1
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    missing = missing_from(project["dependencies"])
    if missing:
        print(f"{name} lacks {', '.join(missing)}")
        return 1
    print(f"taking what is installed for {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
