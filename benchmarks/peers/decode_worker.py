"""One contender in a process of its own: `python -m benchmarks.peers.decode_worker NAME FOLDER SOURCES ...`.

A line on the standard input is JSON: how wide the beam is, how many sentences are computed together, and
which sentences. So is the answer: outputs, seconds, and seconds of processor time.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path

from benchmarks.peers import decoders


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=decoders.DECODERS)
    parser.add_argument("folder", type=Path)
    parser.add_argument("sources", type=Path, help="JSON: a list of lists of token ids")
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--extra-length", type=int, required=True)
    options = parser.parse_args()

    # Libraries may print; the answers keep the real standard output to themselves.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", buffering=1)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    sources = [tuple(ids) for ids in json.loads(options.sources.read_text())]
    entry = decoders.DECODERS[options.name]
    try:
        contender_class = getattr(decoders, entry.class_name)
        contender = contender_class(options.folder, entry.setting, options.threads, options.extra_length)
    except ImportError as error:
        print(json.dumps({"missing": str(error)}), file=answers)
        return
    print(json.dumps({"ready": options.name}), file=answers)
    for line in sys.stdin:
        asked = json.loads(line)
        wanted = [sources[i] for i in asked["sentences"]]
        start, before = time.perf_counter(), time.process_time()
        outputs = contender.decode(wanted, asked["beam"], asked["batch"])
        seconds, processor_seconds = time.perf_counter() - start, time.process_time() - before
        print(json.dumps([outputs, seconds, processor_seconds]), file=answers)


if __name__ == "__main__":
    main()
