import re

import numpy as np
import pytest

from regard.errors import ShapeError
from regard.look.figures.colours import ONE_WAY
from regard.look.figures.heatmap import heatmap_svg, heatmaps_svg
from tests.look.pictures import all_of, outside, overlapping, size, texts

ENGLISH = ["the", "meeting", "starts", "at", "three", "end"]
CHINESE = ["会", "议", "三点", "开始", "。"]
LONG = ["Die", "Donaudampfschifffahrts", "gesell", "<&>", "\x1b[1m", "\n", "😀", "x" * 60]
SETS = {
    "short": (ENGLISH, CHINESE),
    "long": (ENGLISH, LONG),
    "long rows": (LONG, CHINESE),
    "one": (["a"], ["b"]),
}


def weights(*shape):
    return np.random.default_rng(5).dirichlet(np.ones(shape[-1]), shape[:-1])


def cells(picture):
    return [rect for rect in all_of(picture, "rect") if len(rect)]


@pytest.mark.parametrize(("rows", "columns"), SETS.values(), ids=SETS)
@pytest.mark.parametrize("heads", [1, 3, 8])
def test_no_text_is_cut_or_meets_another(rows, columns, heads):
    picture = heatmaps_svg(
        weights(heads, len(rows), len(columns)), rows, columns, "A title that is long " * 9
    )
    assert outside(picture) == []
    assert overlapping(picture) == []


@pytest.mark.parametrize(("rows", "columns"), SETS.values(), ids=SETS)
def test_cells_lie_in_the_picture_and_apart(rows, columns):
    picture = heatmaps_svg(weights(3, len(rows), len(columns)), rows, columns, "x")
    width, height = size(picture)
    boxes = {tuple(float(cell.get(key)) for key in ("x", "y", "width", "height")) for cell in cells(picture)}
    assert len(boxes) == 3 * len(rows) * len(columns)
    assert all(x >= 0 and y >= 0 and x + w <= width and y + h <= height for x, y, w, h in boxes)
    for x, y, w, h in boxes:
        assert not any(x < u < x + w and y <= v < y + h for u, v, _, _ in boxes)


def test_a_cell_stands_below_its_column_and_beside_its_row():
    picture = heatmap_svg(weights(6, 5), ENGLISH, CHINESE, "x")
    places = {text.text: text for text in all_of(picture, "text")}
    cell = next(rect for rect in cells(picture) if rect[0].text.startswith("starts ← 三点"))
    middle = float(cell.get("x")) + (float(cell.get("width")) + 1) / 2
    assert float(places["三点"].get("x")) == pytest.approx(middle, abs=0.1)
    assert 0 < float(places["starts"].get("y")) - float(cell.get("y")) < float(cell.get("height"))


def test_every_cell_tells_its_value():
    picture = heatmap_svg([[0.25, 0.75]], ["<row>"], ["a", "b"], "x")
    assert [cell[0].text for cell in cells(picture)] == ["<row> ← a: 0.2500", "<row> ← b: 0.7500"]


def test_short_words_stand_upright_and_long_ones_lean():
    def leaning(columns):
        picture = heatmap_svg(weights(6, len(columns)), ENGLISH, columns, "x")
        return [text.text for text in all_of(picture, "text") if text.get("transform")]

    assert leaning(CHINESE) == []
    assert len(leaning(LONG)) == len(LONG)


def test_heads_share_one_scale():
    picture = heatmaps_svg([[[0.1]], [[0.4]]], ["a"], ["b"], "x")
    assert [cell.get("class") for cell in cells(picture)] == [
        f"s{ONE_WAY.level(0.1, 0.5)}",
        f"s{ONE_WAY.level(0.4, 0.5)}",
    ]
    assert "0.5" in texts(picture)
    assert {"head 0", "head 1"} <= set(texts(picture))


def test_a_grid_has_few_empty_places():
    rows = [f"row {i}" for i in range(13)]
    words = texts(heatmaps_svg(weights(8, 13, 12), rows, [*"abcdefghijk", "end"], "x"))
    assert (words.count("row 0"), words.count("a")) == (2, 4)


def test_heads_have_the_names_they_are_given():
    assert {"mean", "third"} <= set(
        texts(heatmaps_svg(weights(2, 1, 2), ["a"], ["b", "c"], "x", ["mean", "third"]))
    )


@pytest.mark.parametrize(("value", "shade"), [(0.0, 0), (1.0, ONE_WAY.levels - 1), (0.5, 32)])
def test_shades_by_hand(value, shade):
    assert ONE_WAY.level(value, 1.0) == shade


def test_weights_that_are_all_zero_are_drawn():
    assert {cell.get("class") for cell in cells(heatmap_svg(np.zeros((2, 3)), ["a", "b"], "cde", "x"))} == {
        "s0"
    }


def lightness(colour):
    """L* of CIELAB, a measure of its own for how light a colour looks."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    y = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return 116 * y ** (1 / 3) - 16 if y > 0.008856 else 903.3 * y


@pytest.mark.parametrize("part", [0, 1], ids=["day", "night"])
def test_shades_change_evenly_to_the_eye(part):
    rules = ONE_WAY.style.split("@media")[part]
    light = [lightness(colour) for colour in re.findall(r"\.s\d+\{fill:#(\w{6})\}", rules)]
    assert len(light) == ONE_WAY.levels
    steps = np.diff(light) * (1 if part else -1)
    assert steps.min() > 0
    assert steps.max() < 2 * steps.mean()


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        (np.zeros((2, 3)), r"expected \(1, 2, 2\)"),
        (np.zeros(4), "rows by columns"),
        (np.full((2, 2), np.nan), "finite"),
        (-np.ones((2, 2)), "from zero up"),
    ],
)
def test_weights_that_do_not_fit_are_refused(values, complaint):
    with pytest.raises(ShapeError, match=complaint):
        heatmap_svg(values, ["a", "b"], ["c", "d"], "x")


def test_a_picture_of_nothing_is_refused():
    with pytest.raises(ShapeError, match="at least one"):
        heatmap_svg(np.zeros((0, 1)), [], ["a"], "x")
