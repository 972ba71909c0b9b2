"""Two text files to a translator: train, score, translate what it has not seen, ask where words come from.

    python examples/two_files.py [RUN]

What a user would type, `regard train SRC TGT`, and then what a program would call. Some twenty seconds.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import regard
from regard.scores.texts import example_lines

HERE = Path(__file__).parent
NEW = {
    "五月五日": "the fifth of May",
    "八月十五日": "the fifteenth of August",
    "六月一日星期日": "Sunday, the first of June",
    "十二月二十五日": "the twenty-fifth of December",
}
"""Dates that are in neither file, with their translations."""


def train(run: Path) -> None:
    """The command line, from Python; a run that is complete is left as it is."""
    files = [str(HERE / "dates.zh"), str(HERE / "dates.en")]
    command = ["train", *files, "--config", str(HERE / "dates.toml"), "--out", str(run)]
    print("$ regard", *command, flush=True)
    subprocess.run([sys.executable, "-m", "regard", *command], check=True)


def main() -> None:
    """Train, then use."""
    run = Path(sys.argv[1] if sys.argv[1:] else "runs/dates")
    train(run)
    model = regard.load(run)
    print("\ndates that are in neither file:")
    outputs = [result.text for result in model.translate([*NEW])]
    print(*example_lines([*NEW], outputs, [*NEW.values()]), sep="\n")
    print("\nwhere the words come from:")
    for link in model.translate("三月五日星期二", alignment=True).alignment:
        print(f"  {link.target:10} {link.source}  {link.strength:.2f}")


if __name__ == "__main__":
    main()
