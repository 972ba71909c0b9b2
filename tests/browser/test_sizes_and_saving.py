"""Figures fill their place at every width; presenting; what is saved; contrast and names of controls."""

import re
from pathlib import Path

import pytest

from tests.browser.served import SOURCE, at, page_text
from tests.browser.test_every_screen import SCREENS
from tests.browser.waiting import drawn, until, visit

pytestmark = pytest.mark.slow

# The contrast of every text of the page with the colour behind it, where a style says both.
CONTRASTS = """() => {
    const parts = text => (text.match(/[\\d.]+/g) ?? []).map(Number);
    const luminance = ([...rgb]) => rgb.slice(0, 3).map(part => part / 255)
        .map(part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
        .reduce((sum, part, i) => sum + part * [0.2126, 0.7152, 0.0722][i], 0);
    const over = (top, below) => below.map((part, i) => top[3] * top[i] + (1 - top[3]) * part);
    const behind = node => {
        const layers = [];
        for (let each = node; each; each = each.parentElement) {
            const [r, g, b, a = 1] = parts(getComputedStyle(each).backgroundColor);
            layers.push([r, g, b, a]);
            if (a === 1) break;
        }
        return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255]);
    };
    const opacity = node => node ? Number(getComputedStyle(node).opacity) * opacity(node.parentElement) : 1;
    const found = [];
    for (const node of document.querySelectorAll("body *")) {
        const own = [...node.childNodes].some(each => each.nodeType === 3 && each.textContent.trim());
        const other = node.closest(".mirror, :disabled, svg, option");
        const hidden = other || !node.checkVisibility({ visibilityProperty: true });
        if (!own || hidden || node.getBoundingClientRect().width < 2) continue;
        const below = behind(node);
        const [r, g, b, a = 1] = parts(getComputedStyle(node).color);
        const ink = over([r, g, b, a * opacity(node)], below);
        const [high, low] = [luminance(ink), luminance(below)].sort((x, y) => y - x);
        const ratio = (high + 0.05) / (low + 0.05);
        const name = `${node.className || node.localName} “${node.textContent.slice(0, 20)}”`;
        if (ratio < 4.5) found.push(`${name} ${ratio.toFixed(2)}`);
    }
    return [...new Set(found)];
}"""

NAMELESS = """() => [...document.querySelectorAll("button, a, input, select, textarea, [role=button]")]
    .filter(each => each.checkVisibility())
    .filter(each => !(each.getAttribute("aria-label") || each.textContent.trim() || each.title))
    .filter(each => !each.labels?.length)
    .map(each => each.outerHTML.slice(0, 120))"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_text_has_contrast_and_every_control_a_name(opened, server, theme):
    tab = opened(at(server, lang="en", text=SOURCE, theme=theme, off="cross.0.1"))
    tab.emulate_media(reduced_motion="reduce")
    for screen in visit(tab, SCREENS):
        until(tab, "!document.querySelector('.unwritten')")  # words that are still to be written
        assert tab.evaluate(CONTRASTS) == [], screen
        assert tab.evaluate(NAMELESS) == [], screen


@pytest.mark.parametrize("view", ["matrix", "lines", "layers"])
def test_a_figure_fills_its_place_from_a_phone_to_a_projector(opened, server, view):
    tab = opened(at(server, screen="head", text=SOURCE, lang="en", view=view))
    widths = {}
    for width in (360, 768, 1280, 1920, 2560):
        tab.set_viewport_size({"width": width, "height": width * 9 // 16 if width > 768 else 800})
        drawn(tab, lambda: tab.click("#theme"))
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
        figure = tab.locator("main svg.figure")
        widths[width] = figure.evaluate("node => node.getBoundingClientRect().width")
    natural, place = figure.evaluate("node => [node.viewBox.baseVal.width, node.parentElement.clientWidth]")
    assert widths[2560] >= min(1.85 * natural, 0.95 * place)
    if view == "matrix":
        assert widths[360] <= 336, "a short sentence is seen as a whole"


def test_every_screen_fits_a_narrow_phone_and_a_large_display(opened, server):
    tab = opened(at(server, lang="en", text=SOURCE, off="cross.0.1", unplaced="1"))
    for width in (360, 2560):
        tab.set_viewport_size({"width": width, "height": 1200})
        for screen in visit(tab, SCREENS):
            assert tab.evaluate("document.documentElement.scrollWidth") <= width, (screen, width)


def test_a_presenter_goes_on_by_one_key(opened, server):
    tab = opened(at(server, screen="steps", text=SOURCE, step=0, lang="en"))
    normal = tab.locator("h1").evaluate("node => node.getBoundingClientRect().height")
    drawn(tab, lambda: tab.keyboard.press("p"))
    assert tab.locator(".rail").is_hidden()
    assert tab.locator(".bar").is_hidden()
    assert tab.locator("h1").evaluate("node => node.getBoundingClientRect().height") > 1.1 * normal
    drawn(tab, lambda: tab.keyboard.press("PageDown"))
    assert "step=1" in tab.url  # first the steps of a screen
    last = tab.locator(".skyline button").count() - 1
    drawn(tab, lambda: tab.click(f"#step-{last}"))
    drawn(tab, lambda: tab.keyboard.press("n"))
    assert "screen=beam" in tab.url
    drawn(tab, lambda: tab.click("#present-back"))
    assert "screen=steps" in tab.url
    drawn(tab, lambda: tab.keyboard.press("Escape"))
    assert tab.locator(".rail").is_visible()
    assert "present" not in tab.url


def test_a_saved_figure_says_what_it_shows(opened, server):
    tab = opened(at(server, screen="head", kind="cross", layer=0, head=2, text=SOURCE, lang="en"))
    with tab.expect_download() as got:
        tab.click("#save-svg")
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", Path(got.value.path()).read_text("utf-8"))
    assert texts[0] == page_text("head")
    said = " ".join(texts)
    assert SOURCE in said.replace(" ", "") or SOURCE in said
    assert "Cross-attention, Layer 0, Head 2" in said
    assert texts[-2:] == ["0", "1.000"], "the scale"


def test_the_page_is_saved_as_one_file_that_opens_where_it_was(opened, server, tmp_path):
    state = {"screen": "head", "kind": "cross", "layer": 0, "head": 2, "view": "lines", "lang": "zh"}
    tab = opened(at(server, text=SOURCE, **state))
    shown = tab.locator("main svg.figure").evaluate(
        "node => [...node.querySelectorAll('path')].map(p => p.getAttribute('d')).length"
    )
    with tab.expect_download() as got:
        tab.click("#save-page")
    file = tmp_path / "saved.html"
    got.value.save_as(file)
    assert file.stat().st_size < 4_000_000
    saved = opened(file.as_uri())
    assert saved.locator("h1").inner_text() == page_text("head", "zh")
    assert saved.locator("main svg.figure path").count() == shown
    assert saved.locator("#save-page").count() == 0
    assert saved.locator("[data-paint]").count() == 0


def test_the_address_of_what_is_shown_can_be_copied(opened, server):
    tab = opened(at(server, screen="map", text=SOURCE, off="cross.0.1", lang="en"))
    tab.context.grant_permissions(["clipboard-read", "clipboard-write"])
    tab.click("#link")
    until(tab, f"document.querySelector('#link').textContent === '{page_text('copied')}'")
    assert tab.evaluate("navigator.clipboard.readText()") == tab.url


def test_heads_are_drawn_over_each_other_and_through_all_layers(opened, server, model):
    tab = opened(
        at(
            server,
            screen="head",
            kind="cross",
            layer=0,
            head=0,
            view="lines",
            threshold=0,
            text=SOURCE,
            lang="en",
        )
    )
    one = tab.locator("main svg.figure path").count()
    drawn(tab, lambda: tab.click("#superpose-1"))
    assert "heads=0%2C1" in tab.url
    two = tab.locator("main svg.figure path")
    assert two.count() > one
    trace = model.look(SOURCE, beam_size=4)
    weights = [trace.attention("cross", 0, head) for head in (0, 1)]
    assert two.count() == pytest.approx(sum((each >= 0.02).sum() for each in weights), abs=3)  # sent as u8
    drawn(tab, lambda: tab.click("#choose-layers"))
    kinds = [(kind, layer) for kind in trace.kinds for layer in range(2 if kind == "encoder" else 1)]
    names = tab.locator("main svg.figure text").all_text_contents()
    assert sum(name.startswith(("Encoder ", "Decoder ", "Cross ")) for name in names) >= len(kinds) - 1
