"""Write the recorded run that the page's Training shows if no served model has one.

    regard train examples/dates.zh examples/dates.en --config examples/dates.toml --out runs/dates
        --set training.validate_every=10
    python tools/record_run.py runs/dates

The file answers like the server's routes for runs: journal, probes, and the attention of every validation.
"""

from __future__ import annotations

import json
import sys
from base64 import b64encode
from pathlib import Path

from regard.look.export.document import plain
from regard.look.trace.probes import probes

RECORD = Path(__file__).parents[1] / "regard" / "page" / "recorded.json"
COMMAND = "regard train examples/dates.zh examples/dates.en --config examples/dates.toml"
SHOWN = ("step", "loss", "accuracy", "learning_rate", "valid_loss", "valid_accuracy", "valid_bleu", "sample")
"""Fields of the journal that do not depend on the machine."""


def record(run: Path) -> dict[str, object]:
    """Return the run as the page reads it; of the probes, the first text."""
    lines = (run / "journal.jsonl").read_text(encoding="utf-8").splitlines()
    entries = [json.loads(line) for line in lines]
    validations = []
    texts = {}
    for step, (probe, *_) in probes(run):
        weights = {
            kind: {"shape": list(array.shape), "data": b64encode(array.tobytes()).decode("ascii")}
            for kind, array in probe.weights.items()
        }
        for side in ("inputs", "outputs"):
            tokens = getattr(probe, side)
            texts[side] = None if tokens is None else tokens.to_json()
        validations.append(
            {
                "step": step,
                "log_probs": plain(probe.log_probs.round(4)),
                "likeliest": list(probe.likeliest),
                "weights": weights,
            }
        )
    return {
        "id": "dates",
        "command": COMMAND,
        "entries": [{name: _short(entry[name]) for name in SHOWN if name in entry} for entry in entries],
        **texts,
        "validations": validations,
    }


def _short(value: object) -> object:
    return float(f"{value:.5g}") if isinstance(value, float) else value


if __name__ == "__main__":
    RECORD.write_text(json.dumps(record(Path(sys.argv[1])), ensure_ascii=False) + "\n", encoding="utf-8")
