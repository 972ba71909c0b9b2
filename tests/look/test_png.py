"""PNGs: ours, pixel by pixel, and those that are drawn from our SVG."""

import sys

import numpy as np

from regard.look.figures.colours import ONE_WAY, PALETTE
from regard.look.figures.heatmap import heatmap_svg, image
from regard.look.figures.svg import ZOOM, Box, document, indexed_png, rasterised
from tests.look.pictures import all_of, size
from tests.look.pixels import pixels
from tests.refusals import refused


def rgb(colour):
    return tuple(int(colour[i : i + 2], 16) for i in (1, 3, 5))


def test_each_cell_is_one_pixel_of_its_colour():
    levels = np.array([[0, 2, 1], [1, 1, 0]])
    found = pixels(indexed_png(levels, ["#000000", "#ff8000", "#0102fe"]))
    assert found.shape == (2, 3, 3)
    assert found[0].tolist() == [[0, 0, 0], [1, 2, 254], [255, 128, 0]]
    assert found[1].tolist() == [[255, 128, 0], [255, 128, 0], [0, 0, 0]]


def test_a_picture_is_drawn_at_twice_its_size_in_the_colours_of_the_day():
    picture = heatmap_svg([[0.0, 1.0]], ["a"], ["b", "猫"], "x")
    found = pixels(rasterised(picture))
    width, height = size(picture)
    assert found.shape[:2] == (round(ZOOM * height), round(ZOOM * width))
    assert tuple(found[2, 2, :3]) == rgb(PALETTE["paper"][0])
    full = next(
        rect
        for rect in all_of(picture, "rect")
        if rect.get("class") == f"s{ONE_WAY.levels - 1}" and len(rect)
    )
    x, y = (round(ZOOM * (float(full.get(key)) + 5)) for key in ("x", "y"))
    assert tuple(found[y, x, :3]) == rgb(ONE_WAY.light[-1])


def test_an_image_inside_a_picture_has_sharp_cells_and_the_colours_of_the_day():
    drawn = image(np.array([[0.0, 1.0]]), ONE_WAY, 1.0, Box(10, 5, 20, 10))
    found = pixels(rasterised(document(40, 20, drawn, title="x")))[ZOOM * 10]
    colours = [tuple(found[ZOOM * x, :3].tolist()) for x in (5, 11, 19, 21, 29, 35)]
    paper, least, most = rgb(PALETTE["paper"][0]), rgb(ONE_WAY.light[0]), rgb(ONE_WAY.light[-1])
    assert colours == [paper, least, least, most, most, paper]


def test_many_cells_are_one_image_and_few_are_rectangles():
    few, many = (heatmap_svg(np.ones((n, 64)), ["a"] * n, ["b"] * 64, "x") for n in (64, 65))
    assert (len(all_of(few, "image")), len(all_of(many, "image"))) == (0, 2)
    assert [image.get("class") for image in all_of(many, "image")] == ["day cells", "night cells"]


def test_without_what_draws_them_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    with refused("missing_package", "pip install 'regard[plots]'"):
        rasterised("<svg/>")
