"""One contender in a process of its own: `python -m benchmarks.peers.worker NAME SETTING ...`.

A line on the standard input is a number of steps to run; the answer is one line of JSON: what the
contender's `run` gave, then the seconds of processor time that it took.
A process each keeps the contenders' memory apart, and lets one of them live in another environment.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import time
from pathlib import Path

from benchmarks.peers.corpus import Corpus
from benchmarks.peers.roster import ROSTER


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=ROSTER)
    parser.add_argument("setting")
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--dropout", type=float, required=True)
    parser.add_argument("--threads", type=int, required=True)
    options = parser.parse_args()

    # Libraries may print; the answers keep the real standard output to themselves.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", buffering=1)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    module, class_name = ROSTER[options.name].class_path.split(":")
    try:
        contender_class = getattr(importlib.import_module(module), class_name)
    except ImportError as error:
        print(json.dumps({"missing": str(error)}), file=answers)
        return

    import torch

    torch.set_num_threads(options.threads)
    contender = contender_class(Corpus.load(options.corpus), options.dropout, options.setting)
    print(json.dumps({"torch": torch.__version__}), file=answers)
    for line in sys.stdin:
        before = time.process_time()
        result = contender.run(int(line))
        print(json.dumps([*result, time.process_time() - before]), file=answers)


if __name__ == "__main__":
    main()
