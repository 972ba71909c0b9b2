"""The layout of pictures and screens in a few numbers, to compare with those on record.

    python -m tests.look.layouts    write the record again, after a change that is meant

A picture is summed up by its elements: how many there are of each kind, and the sum of every length, place
and text length among their attributes. A screen is summed up by its lines and a checksum.
"""

import io
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from zlib import crc32

import numpy as np
from rich.console import Console

from regard.look.figures.curves import curves_svg
from regard.look.figures.heatmap import heatmap_svg
from regard.look.trace.blocks import INFLUENCE
from regard.look.trace.recorder import look
from regard.look.views import MODULES
from regard.look.views.influence import effects_svg
from regard.look.views.view import choose, picture, printed
from tests.look.pictures import parse
from tests.look.test_curves import RUNS
from tests.look.traced import ARCHITECTURES, SOURCE, model_of, subwords, trace_of, with_influences

RECORD = Path(__file__).parents[1] / "golden" / "layouts.json"
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def summed_up(drawn: str) -> dict[str, float]:
    """By kind of element: their number, and the sums of the numbers and text lengths in their attributes."""
    sums: Counter[str] = Counter()
    for element in parse(drawn).iter():
        tag = element.tag.rpartition("}")[2]
        if tag == "style":
            continue
        sums[tag] += 1
        sums[f"{tag} text"] += len(element.text or "")
        for name, value in element.attrib.items():
            if name.endswith("href"):
                continue
            # Numbers weighted by their place: exchanging two of them changes the sum as well.
            found = [float(number) for number in NUMBER.findall(value)]
            sums[f"{tag} {name}"] += sum(i * number for i, number in enumerate(found, 1)) or len(value)
    return {name: round(value, 2) for name, value in sorted(sums.items()) if value}


def on_screen(what: object, width: int) -> dict[str, float]:
    """The lines of a screen without colours, the length of the longest, and a checksum."""
    file = io.StringIO()
    Console(file=file, width=width).print(what)
    lines = file.getvalue().splitlines()
    return {"lines": len(lines), "longest": max(map(len, lines)), "checksum": crc32(file.getvalue().encode())}


def layouts() -> Iterator[tuple[str, dict[str, float]]]:
    """Every view of every architecture, with the choices that change a layout; and curves of runs."""
    for architecture in ARCHITECTURES:
        model = model_of(architecture=architecture)
        trace = trace_of(model) if architecture != "encoder-decoder" else look(model, subwords(), SOURCE)
        trace = with_influences(model, trace)
        if architecture == "encoder":
            trace = replace(trace, arrays={**trace.arrays, INFLUENCE: np.linspace(-2, 1, len(trace.inputs))})
        for view in MODULES:
            if view in ("alignment", "beam") and architecture != "encoder-decoder":
                continue
            for place in ({}, {"layer": 0, "head": [1, 0]}, {"layer": 0, "head": 0, "query": 1}):
                name, choice = f"{architecture}, {view}, {json.dumps(place)}", choose(trace, view, **place)
                yield name, summed_up(picture(trace, choice))
                for width in (80, 44):
                    yield f"{name}, {width}", on_screen(printed(trace, choice), width)
    for rows, columns in ((1, 1), (3, 70), (90, 5), (400, 500)):
        weights = np.arange(rows * columns).reshape(rows, columns) / (rows * columns)
        names = [[f"{'word' * (i % 3)}{i}" for i in range(n)] for n in (rows, columns)]
        yield f"matrix of {rows} by {columns}", summed_up(heatmap_svg(weights, *names, "a title"))
    effects = {"encoder": np.linspace(-3, 1, 12).reshape(3, 4), "cross": np.linspace(-1, 2, 6).reshape(2, 3)}
    yield "effects", summed_up(effects_svg(effects, "a title"))
    for name in (
        "nothing",
        "a step",
        "a run",
        "without validation",
        "averaged and tested",
        "not finite",
        "wide numbers",
    ):
        yield f"curves, {name}", summed_up(curves_svg(RUNS[name], "a title that is long enough " * 5))


def main() -> None:
    """Write the record."""
    rows = (f"{json.dumps(name)}: {json.dumps(layout)}" for name, layout in layouts())
    RECORD.write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
