"""Every panel of the page's walkthrough can be multiplied out from the numbers that it shows itself."""

from itertools import groupby

import pytest
import torch

from regard.look.export.document import walk
from tests.look.formulas import Panel, Shown, check_walk
from tests.look.test_walk_panels import MODELS, places, tiny_trace
from tests.page.test_arithmetic import held


def panels_of(steps, shown):
    """The panels of one walk; inputs and result are what the page lists for a panel, and nothing else."""
    shapes = {step.name: step.values.shape for step in steps}
    found = []
    for panel in shown:
        parts = [
            Shown.written(name, [line["numbers"] for line in lines]).shaped(shapes[name])
            for name, lines in groupby(panel["lines"], lambda line: line["name"])
        ]
        found.append(Panel(panel["formula"], parts[:-1], parts[-1]))
    return found


@pytest.mark.parametrize("source", ["saved file", "server"])
@pytest.mark.parametrize(
    "architecture", [pytest.param("encoder-decoder", marks=pytest.mark.slow), "decoder", "encoder"]
)
def test_every_panel_can_be_multiplied_out(node, architecture, source):
    for settings in (each for each in MODELS if each["architecture"] == architecture):
        model, trace = tiny_trace(settings, dtype=torch.float32)
        asked = [*places(trace)]
        walks = [walk(trace, *place) for place in asked] if source == "server" else None
        for place, shown in zip(asked, node("panels", held(trace), asked, walks), strict=True):
            check_walk(model, trace, place, panels_of(trace.walk(*place), shown))
