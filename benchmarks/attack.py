"""Attacks on a running `regard serve` over loopback, and what they do to it. Linux only.

    python benchmarks/attack.py                                every scene, 30 s each
    python benchmarks/attack.py --seconds 120 --settle 60      at full length: more than an hour
    python benchmarks/attack.py --scene glossary --scene heads
    python benchmarks/attack.py --soak 10                      ten minutes of mixed load, and no scene

Each scene has a server of its own, with the bundled model, on a free port. Attackers come from other loopback
addresses than the honest clients and the probe of /livez, and all are processes of their own. The exit status
is 1 if a bar is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import platform
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.hostile import access, heavy, malformed, slow, strange  # noqa: E402
from benchmarks.hostile.report import Result, header, missed, row, verdict  # noqa: E402
from benchmarks.hostile.run import Expected, Plan, run_scene  # noqa: E402
from benchmarks.hostile.server import Server, limit_open_files  # noqa: E402
from benchmarks.hostile.watch import HonestClient  # noqa: E402
from benchmarks.soak import soak  # noqa: E402
from regard.data.numerals import sample  # noqa: E402
from regard.host import usable_cores  # noqa: E402

SCENES = (*heavy.SCENES, *slow.SCENES, *strange.SCENES, *malformed.SCENES, *access.SCENES)
N_TEXTS = 60


def main() -> None:
    options = arguments()
    limit_open_files()
    if options.list:
        print("\n".join(f"{scene.name}: {scene.about}" for scene in SCENES))
        return
    texts = tuple(pair.chinese for pair in sample("test", N_TEXTS, 1))
    with tempfile.TemporaryDirectory() as folder:
        logs = options.logs or Path(folder)
        logs.mkdir(parents=True, exist_ok=True)
        if options.soak:
            sys.exit(run_soak(logs, texts, 60 * options.soak))
        plan = Plan(
            options.seconds, options.settle, options.quiet, options.drain, logs, texts, options.same_address
        )
        results = run_scenes(options.scene or [scene.name for scene in SCENES], plan, options.json)
    print(f"\n{verdict(results)}\n{machine()}")
    sys.exit(any(any(missed(each)) for each in results))


def run_scenes(names: Sequence[str], plan: Plan, file: Path | None) -> list[Result]:
    """Run scenes by name; print a line of the table for each, and write all numbers so far to a file."""
    expected, results = Expected(plan.texts), []
    print(header(), flush=True)
    for scene in SCENES:
        if scene.name in names:
            results.append(run_scene(scene, plan, expected))
            print(row(results[-1]), flush=True)
            if file is not None:
                file.write_text(json.dumps([each.to_json() for each in results], indent=1), encoding="utf-8")
    return results


def run_soak(logs: Path, texts: Sequence[str], seconds: float) -> int:
    """Mixed load, as `benchmarks/serve.py --soak` has it; 1 if something was not as it should be."""
    server = Server(logs / "soak.log")
    try:
        client = HonestClient(server.port)
        expected = [str(client.translate(text)) for text in texts]
        return asyncio.run(soak(server.port, texts, expected, seconds))
    finally:
        server.terminate(math.inf)


def machine() -> str:
    """Where this was measured."""
    return f"{usable_cores()} cores, {platform.machine()}, Python {platform.python_version()}"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [scene.name for scene in SCENES]
    parser.add_argument("--scene", action="append", choices=names, metavar="NAME", help="may be repeated")
    parser.add_argument("--list", action="store_true", help="print the names of the scenes")
    parser.add_argument("--seconds", type=float, default=30, help="of each attack; 30")
    parser.add_argument("--settle", type=float, default=30, help="seconds until memory is compared; 30")
    parser.add_argument("--quiet", type=float, default=8, help="seconds before an attack; 8")
    parser.add_argument(
        "--drain", type=float, default=30, help="seconds that the server waits on SIGTERM; 30"
    )
    parser.add_argument("--same-address", action="store_true", help="attack from the honest clients' address")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where to keep all numbers")
    parser.add_argument("--logs", type=Path, metavar="FOLDER", help="where to keep the servers' logs")
    parser.add_argument("--soak", type=float, metavar="MINUTES", help="mixed load for so long instead")
    return parser.parse_args()


if __name__ == "__main__":
    main()
