"""Put what a larger model makes of the sources beside the pairs of a run that was prepared.

    python models/zh-en/diversify.py TEACHER DATA OUT --seconds 150

DATA and OUT are the `data` folders of two runs. Every input of DATA's training store, either language, is
translated once; then each example stands there three times: as it was, with the teacher's output, and the
other way round, from the teacher's output to the input. So the small model learns what the larger one would
say, and to read what nobody wrote. What is not translated in time stands there as it was.
"""

from __future__ import annotations

import argparse
import shutil
import time
from collections.abc import Iterator
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from regard.data.store import Example, Store, open_store
from regard.data.store.writing import write_store
from regard.tasks.pair_preparation import SIDES

AT_ONCE = 20_000
"""Inputs that are translated together: enough that batches of like length are large."""
SHORT, MOST = 16, 3.0
"""Of two texts longer than this, one may have so many times the tokens of the other."""

Texts = dict[bytes, np.ndarray]


def distinct_inputs(store: Store) -> list[np.ndarray]:
    """Every input once, in an order of chance, so that a run cut off has seen something of everything."""
    distinct = {inputs.tobytes(): inputs for inputs, _ in map(store.__getitem__, range(len(store)))}
    inputs = list(distinct.values())
    return [inputs[i] for i in np.random.default_rng(1).permutation(len(inputs))]


def translate_share(teacher: Path, inputs: list[np.ndarray], until: float, out: Path) -> None:
    """One process of several on one device: translates until a time, and leaves its outputs in a file."""
    from regard.engine.engines.protocol import Request, Search
    from regard.loaded import load

    engine, search = load(teacher, engine="torch").engines.first, Search(beam_size=1)
    done: list[np.ndarray] = []
    for first in range(0, len(inputs), AT_ONCE):
        if done and time.time() > until:
            break
        requests = [Request(ids=tuple(ids.tolist())) for ids in inputs[first : first + AT_ONCE]]
        for best, *_ in engine.decode(requests, search):
            fine = best.finished and not best.repetitive
            done.append(np.array(best.ids if fine else (), np.uint16))
        print(f"{out.stem}: {len(done):,} of {len(inputs):,}, {until - time.time():.0f} s left", flush=True)
    lengths = np.array([len(ids) for ids in done])
    np.savez(out, ids=np.concatenate(done), lengths=lengths)


def translated(teacher: Path, store: Store, seconds: float, processes: int, scratch: Path) -> Texts:
    """Outputs by input; those that went round or never ended are left out."""
    inputs, until, context = distinct_inputs(store), time.time() + seconds, get_context("spawn")
    files = [scratch / f"part-{i}.npz" for i in range(processes)]
    shares = [inputs[i::processes] for i in range(processes)]
    workers = [
        context.Process(target=translate_share, args=(teacher, share, until, file))
        for share, file in zip(shares, files, strict=True)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if any(worker.exitcode for worker in workers):
        raise SystemExit("a process that translates has failed, as told above; fewer take less memory")
    found: Texts = {}
    for share, file in zip(shares, files, strict=True):
        with np.load(file) as part:
            outputs = np.split(part["ids"], np.cumsum(part["lengths"])[:-1])
        file.unlink()
        found |= {ids.tobytes(): output for ids, output in zip(share, outputs, strict=False)}
    print(f"{len(found):,} of {len(inputs):,} inputs are translated")
    return {key: output for key, output in found.items() if len(output) >= 1}


def threefold(store: Store, outputs: Texts, longest: int) -> Iterator[Example]:
    """Each example, and the two that a translation of its input makes of it."""
    tags = sorted({int(store[i][0][0]) for i in range(2)})
    assert len(tags) == 2, "a store of both directions has each pair there and back"
    other = {tags[0]: tags[1], tags[1]: tags[0]}
    for i in range(len(store)):
        inputs, wanted = store[i]
        yield inputs, wanted
        output = outputs.get(inputs.tobytes())
        if output is None or not _like(output, inputs, longest):
            continue
        yield inputs, output
        yield np.insert(output, 0, other[int(inputs[0])]), inputs[1:]


def _like(output: np.ndarray, inputs: np.ndarray, longest: int) -> bool:
    short, long = sorted((len(output), len(inputs)))
    return long < longest and (long <= SHORT or long <= MOST * short)


def main() -> None:
    """Read the arguments, translate, and write the new store beside copies of the rest."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("teacher", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seconds", type=float, default=3600, help="to translate for, at most")
    parser.add_argument("--processes", type=int, default=2, help="that share the device")
    given = parser.parse_args()
    store = open_store(given.data / "train", thorough=False)
    given.out.mkdir(parents=True, exist_ok=True)
    shutil.copytree(given.data, given.out, dirs_exist_ok=True, ignore=lambda *_: ["train"])
    outputs = translated(given.teacher, store, given.seconds, given.processes, given.out)
    longest = max(side.longest for side in store.facts.sides)
    facts = store.facts
    examples = threefold(store, outputs, longest)
    print(write_store(given.out / "train", examples, sides=SIDES, key=facts.key, vocab_size=facts.vocab_size))


if __name__ == "__main__":
    main()
