"""An environment for eole, whose long list of dependencies does not install beside a current torch.

It takes torch, numpy and the rest from the environment that runs the benchmark (so that all contenders
use one torch), and adds only what importing eole's model needs.
"""

from __future__ import annotations

import subprocess
import sysconfig
import venv
from pathlib import Path

PACKAGES = ["eole==0.6.4", "pyonmttok==1.38.1"]


def eole_python(cache: Path) -> Path:
    """The interpreter of the environment, which may not be there yet."""
    return cache / "eole" / "bin" / "python"


def install_eole(cache: Path) -> None:
    """Make the environment."""
    python = eole_python(cache)
    if not python.exists():
        venv.create(cache / "eole", with_pip=True)
    version = sysconfig.get_python_version()
    own = cache / "eole" / "lib" / f"python{version}" / "site-packages"
    (own / "benchmark.pth").write_text(sysconfig.get_path("purelib") + "\n")
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-deps", *PACKAGES], check=True)
