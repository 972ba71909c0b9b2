"""Traces on terminals: as wide as they are, in the colours that they have, and no sign that they lack."""

import io
import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
from rich.cells import cell_len
from rich.console import Console

from regard.look.alignment.alignment import Alignment
from regard.look.figures.colours import ONE_WAY
from regard.look.figures.terminal import HeatMap, SmallHeatMap, Thumbnails
from regard.look.trace.beam import BeamTree
from regard.look.trace.recorder import look
from regard.look.views import MODULES
from regard.look.views.alignment import alignment_text
from regard.look.views.beam import beam_text
from regard.look.views.view import choose, printed
from tests.look.test_trace_pictures import NASTY, tree, words
from tests.look.traced import SOURCE, model_of, subwords, with_influences

ESCAPE = re.compile("\x1b\\[[0-9;]*m")


@cache
def searched():
    model = model_of(torch.float32)
    return with_influences(model, look(model, subwords(), SOURCE))


def shown(what, width=80, encoding="utf-8", **settings):
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors="backslashreplace")
    console = Console(file=file, width=width, **settings)
    console.print(what)
    file.flush()
    return file.buffer.getvalue().decode(encoding)


def colourful(what, system="truecolor", **settings):
    return shown(what, force_terminal=True, color_system=system, **settings)


@pytest.mark.parametrize("view", MODULES)
@pytest.mark.parametrize("width", [40, 80, 131])
def test_no_line_is_wider_than_the_terminal(view, width):
    trace = searched()
    for text in (shown, colourful):
        lines = ESCAPE.sub("", text(printed(trace, choose(trace, view)), width=width)).splitlines()
        assert max(map(cell_len, lines)) <= width


@pytest.mark.parametrize("view", MODULES)
def test_a_terminal_without_colours_gets_none(view, monkeypatch):
    trace = searched()
    assert "\x1b" not in shown(printed(trace, choose(trace, view)))
    monkeypatch.setenv("NO_COLOR", "1")
    found = colourful(printed(trace, choose(trace, view)))
    assert not re.search("\x1b\\[[0-9;]*(38|48);", found)


def test_a_cell_is_coloured_by_its_share_and_says_it():
    found = colourful(HeatMap(np.array([[0.5, 0.0]]), ["row"], ["猫", "b"]))
    *above, line = found.splitlines()
    assert "猫 b" in above[-1]
    red, green, blue = (int(ONE_WAY.dark[ONE_WAY.level(0.5, 1.0)][i : i + 2], 16) for i in (1, 3, 5))
    assert f"48;2;{red};{green};{blue}m50 " in line
    assert "48;5;" in colourful(HeatMap(np.array([[0.3]]), ["row"], ["猫"]), "256")


def test_without_colours_a_cell_has_a_shade():
    cells = HeatMap(np.array([[1.0, 0.5, 0.02, 0.0]]), ["row"], list("abcd"))
    assert shown(cells).splitlines()[-1] == "row █99▒50  2   "
    assert shown(cells, encoding="ascii").splitlines()[-1] == "row @99=50  2   "


def test_words_above_stand_on_their_columns():
    lines = shown(HeatMap(np.eye(3), ["x", "y", "z"], ["猫坐", "ab", "e\u0301"])).splitlines()
    assert lines[:2] == ["  猫 a     ", "  坐 b  e\u0301  "]


def test_columns_that_do_not_fit_stand_below():
    words = [f"w{i}" for i in range(10)]
    lines = shown(HeatMap(np.eye(10), words, words), width=20).splitlines()
    blocks = "\n".join(line.rstrip() for line in lines).split("\n\n")
    assert len(blocks) == 2
    assert [sum("99" in line for line in block.splitlines()) for block in blocks] == [5, 5]


def test_long_words_are_cut():
    lines = shown(HeatMap(np.eye(1), ["r" * 50], ["c" * 50])).splitlines()
    assert len(lines) == 11
    assert lines[-1].startswith("rrrrrrrrrrrrr… ")
    assert [line.strip() for line in lines[:-1]] == ["c"] * 9 + ["…"]


def test_two_rows_of_pixels_share_a_line():
    found = colourful(SmallHeatMap(np.array([[1.0], [0.0], [1.0]]), 5, 5))
    most, least = (";".join(str(int(ONE_WAY.dark[i][j : j + 2], 16)) for j in (1, 3, 5)) for i in (-1, 0))
    first, second = found.splitlines()
    assert first == f"\x1b[38;2;{most};48;2;{least}m▀\x1b[0m"
    assert second == f"\x1b[38;2;{most}m▀\x1b[0m"
    assert shown(SmallHeatMap(np.array([[1.0], [0.0], [1.0]]), 5, 5)) == "█\n \n█\n"


def test_every_head_has_a_thumbnail():
    weights = np.random.default_rng(3).dirichlet(np.ones(7), (2, 13, 5))
    found = shown(Thumbnails(weights), width=60)
    assert re.findall(r"head (\d+)", found) == [str(head) for head in range(13)]
    assert found.count("layer 1") == found.count("layer 0") > 1
    assert found.index("layer 1") < found.index("layer 0")  # as in Figure 1


def test_links_and_coverage_in_words():
    shares = np.array([[0.7, 0.2, 0.0], [0.1, 0.0, 0.9]])
    aligned = Alignment(words("猫", "在", "上"), words("cat", "up"), shares)
    lines = [line.split() for line in shown(alignment_text(aligned)).splitlines()]
    assert lines[1:3] == [["cat", "猫", "0.70", "█" * 14], ["up", "上", "0.90", "█" * 18]]
    assert lines[4][:7] == ["coverage:", "猫", "0.80", "在?", "0.20", "上", "0.90"]


def test_a_search_is_lines_that_part_from_each_other():
    lines = shown(beam_text(tree())).splitlines()
    assert lines[0] == "<s>"
    assert lines[1] == "├── ✗ 猫 -2.00"
    assert lines[2].startswith("├── a cat </s> ★  -1.00, score ")
    assert lines[3].startswith("└── the </s> ■  -1.50, score ")
    assert lines[4].startswith("    └── ✗ " + "x" * 23 + "…")
    assert "\x1b[1ma cat </s> ★" in colourful(beam_text(tree()))


def test_a_long_search_takes_no_more_room_than_its_branches():
    node = tree().nodes[0]
    nodes = [replace(node, id=i, parent=i - 1 if i else None, step=i) for i in range(3000)]
    long = BeamTree(1, (*nodes[:-1], replace(nodes[-1], fate="winner")))
    assert len(shown(beam_text(long)).splitlines()) < 3000 * 4 / 70 + 5


def test_candidates_mark_what_came():
    trace = searched()
    found = shown(printed(trace, choose(trace, "steps")), width=200)
    assert found.count("▸") == len(trace.targets) + 1  # and in the note


@pytest.mark.parametrize("view", [view for view in MODULES if view != "beam"])
def test_texts_cannot_steer_a_terminal(view):
    model = model_of(torch.float32)
    seen = with_influences(model, look(model, subwords(), NASTY, NASTY))
    assert not re.search("[\x00-\x09\x0b-\x1f\u202e]", shown(printed(seen, choose(seen, view))))


@pytest.mark.parametrize("view", MODULES)
def test_our_own_signs_are_ascii_where_they_must_be(view):
    found = shown(printed(searched(), choose(searched(), view)), encoding="ascii", width=300)
    foreign = {chr(int(code, 16)) for code in re.findall(r"\\u([0-9a-f]{4})", found)}
    assert foreign.isdisjoint("▸█░▒▓·★■✗…→←“”−∞√Σ⊙├└│▀")
