import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.look.figures.colours import PALETTE
from regard.look.figures.svg import Markup, document, element, folded, number, text_width
from regard.look.trace.tokens import visible
from tests.look.pictures import all_of, parse


def test_an_element_and_its_attributes():
    assert element("rect", x=1.5, font_size=12, class_="ink") == '<rect x="1.5" font-size="12" class="ink"/>'


def test_plain_text_is_escaped_and_markup_is_not():
    inside = element("tspan", "a<b")
    assert element("text", "1 & 2 ", inside) == "<text>1 &amp; 2 <tspan>a&lt;b</tspan></text>"
    assert isinstance(inside, Markup)


def test_an_attribute_cannot_leave_its_quotes():
    picture = document(9, 9, [element("g", id='"><script>')], title="x")
    assert all_of(picture, "g")[0].get("id") == '"><script>'
    assert all_of(picture, "script") == []


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[31m", "a␛[31m"),
        ("\x00\n\t", "␀␊␉"),
        ("\x7f\x85\u202e\u2028", "␡���"),
        ("\ud800\ufffe", "��"),
        ("猫 é 😀 \u200d", "猫 é 😀 \u200d"),
    ],
)
def test_what_cannot_be_shown_becomes_a_sign(text, shown):
    assert visible(text) == shown


@given(st.text(st.characters(codec=None, exclude_categories=())))
def test_any_text_is_valid_xml_and_is_read_back(text):
    picture = document(9, 9, [element("text", text)], title=text)
    assert (all_of(picture, "text")[0].text or "") == visible(text)


@pytest.mark.parametrize(
    ("value", "written"), [(1.0, "1"), (0.125, "0.12"), (-0.001, "0"), (1234.5, "1234.5"), (100.0, "100")]
)
def test_a_coordinate_is_as_short_as_it_can_be(value, written):
    assert number(value) == written


def test_a_text_is_wider_where_its_characters_are():
    assert text_width("猫猫", 10) > 20
    assert text_width("iii", 10) < text_width("nnn", 10) < text_width("MMM", 10)
    assert text_width("e\u0301", 10) == text_width("e", 10)
    assert text_width("abc", 24) == pytest.approx(2 * text_width("abc", 12))
    assert text_width("\x00", 10) == text_width("␀", 10)


@given(st.text(), st.integers(20, 200))
def test_folded_lines_fit_and_lose_nothing(text, width):
    lines = list(folded(text, width, 10))
    assert all(text_width(line, 10) <= width or len(line) == 1 for line in lines)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
    assert lines[0] or not text.strip(" ")


def test_facts_stay_whole():
    assert list(folded(["one fact", "another"], text_width("one fact · anothe", 10), 10, between=" · ")) == [
        "one fact",
        "another",
    ]


def test_a_picture_has_colours_for_day_and_for_night():
    picture = document(9, 9, [], title="x")
    day, night = all_of(picture, "style")[0].text.split("@media(prefers-color-scheme:dark)")
    for name, (light, dark) in PALETTE.items():
        assert f".regard .{name}{{fill:{light}}}" in day
        assert f".regard .{name}{{fill:{dark}}}" in night
    assert parse(picture).get("class") == "regard"


def contrast(one, other):
    """As the Web Content Accessibility Guidelines define it."""

    def luminance(colour):
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("name", [name for name in PALETTE if name not in ("paper", "grid")])
def test_text_in_every_colour_can_be_read(name):
    for colour, paper in zip(PALETTE[name], PALETTE["paper"], strict=True):
        assert contrast(colour, paper) > 4.5


def test_pictures_do_without_torch():
    code = "import sys\nfrom regard.look.figures import curves, heatmap\nsys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
