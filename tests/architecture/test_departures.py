"""`docs/departures.md` and the marks in the code know the same departures, and settings that there are."""

import re

import pytest

from regard.config import PRESETS, RunConfig, preset, settings
from tests.architecture.sources import ROOT

PAGE = (ROOT / "docs" / "departures.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (\d+) \|.*?\| `([a-z]+\.[a-z_]+)", PAGE, flags=re.MULTILINE)
OURS = [name for name in PRESETS if not name.startswith("paper-")]


def test_every_departure_is_on_the_page_and_in_the_code():
    files = (ROOT / "regard").rglob("*.py")
    marks = {int(n) for file in files for n in re.findall(r"Departure (\d+)", file.read_text("utf-8"))}
    assert [int(number) for number, _ in ROWS] == sorted(marks) == list(range(1, len(ROWS) + 1))


def test_the_settings_of_departures_exist():
    assert {name for _, name in ROWS} <= set(settings())


def test_the_defaults_are_the_papers():
    assert preset("paper-base") == RunConfig()
    training = RunConfig().training
    assert (training.schedule, training.optimizer) == ("paper", "adamw")
    assert (training.selection, training.average_checkpoints) == ("last", 5)
    assert (training.weight_decay, training.clip_norm, training.ema_decay) == (0, 0, 0)


@pytest.mark.parametrize("name", OURS)
def test_every_preset_of_ours_departs_as_the_page_says(name):
    assert preset(name).model.norm_position == "pre"
    assert preset(name).training.selection == "best"
