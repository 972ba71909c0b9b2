"""What all screens of a server have in common."""

import re
from pathlib import Path

import pytest

from tests.browser.served import SOURCE, at, page_text
from tests.browser.waiting import drawn, is_chinese, until, visit

pytestmark = pytest.mark.slow
SCREENS = [
    "translate", "model", "follow", "map", "head", "walk", "steps", "beam", "alignment",
    "influence", "compare", "positions", "training", "experiments", "learn", "api",
]  # fmt: skip


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_screen_is_drawn_in_both_languages_and_on_a_phone(opened, server, language):
    tab = opened(at(server, lang=language, text=SOURCE, theme="dark", off="cross.0.1", effects=1))
    assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(21, 25, 31)"
    for screen in visit(tab, SCREENS):
        assert is_chinese(tab.locator("h1").inner_text()) == (language == "zh"), screen
        assert tab.locator("main .empty").count() == 0, screen
    tab.set_viewport_size({"width": 390, "height": 800})
    for screen in visit(tab, SCREENS):
        assert tab.evaluate("document.documentElement.scrollWidth") <= 390, screen
        chips = tab.locator(".strips .chip")
        assert chips.evaluate_all("all => all.every(each => each.offsetHeight >= 44)"), screen
    assert rail(tab) == [True, False], "at the last screen, more are on the left"
    drawn(tab, lambda: tab.click("#screen-translate"))
    assert rail(tab) == [False, True]


def test_a_number_is_no_child(opened, server):
    """What a condition such as `0 && …` yields would be shown."""
    tab = opened(at(server, screen="api"))
    takes = """child => import('/page/now/parts/dom.js').then(({ h }) => {
        try { return h('p', {}, child).outerHTML; } catch (problem) { return problem.name; }
    })"""
    assert [tab.evaluate(takes, child) for child in (0, 5, True, False, None, "0")] == [
        "TypeError", "TypeError", "TypeError", "<p></p>", "<p></p>", "<p>0</p>",
    ]  # fmt: skip


def rail(tab):
    tab.wait_for_timeout(60)  # the scroll event
    sides = ("more-left", "more-right")
    return [side in tab.locator(".rail").get_attribute("class") for side in sides]


def test_numbers_lead_to_every_screen_and_choices_outlive_the_address(opened, server):
    tab = opened(at(server, screen="api", text=SOURCE, lang="en"))
    assert tab.locator("#screen-training").get_attribute("title").endswith("(13)")
    drawn(tab, lambda: tab.keyboard.type("13"))
    assert tab.locator("#screen-training").get_attribute("aria-current") == "page"
    drawn(tab, lambda: tab.keyboard.press("l"))
    drawn(tab, lambda: tab.click("#theme"))
    drawn(tab, lambda: tab.click("#theme"))
    tab.goto("about:blank")
    tab.goto(f"{server.url}/")
    tab.wait_for_selector("body[data-drawn]")
    root = tab.locator("html")
    assert [root.get_attribute("lang"), root.get_attribute("data-theme")] == ["zh-CN", "dark"]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_tokens_that_cannot_be_seen_yet_can_be_read(opened, server, theme):
    tab = opened(at(server, screen="steps", text=SOURCE, step=0, lang="en", theme=theme))
    seen = """all => all.map(each => {
        const {color, opacity} = getComputedStyle(each);
        return [color, opacity, getComputedStyle(document.body).backgroundColor];
    })"""
    (ahead, *_) = tab.locator(".read.ahead").evaluate_all(seen)
    assert ahead[1] == "1"
    high, low = sorted((luminance(ahead[i]) for i in (0, 2)), reverse=True)
    assert (high + 0.05) / (low + 0.05) >= 4.5


def luminance(colour):
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_screens_without_a_text_show_an_example(opened, server):
    """Of the model's own run, if it stored some; also after the text field was emptied, which stays empty."""
    tab = opened(at(server, lang="en"))
    until(tab, "document.querySelector('#output .word')")
    assert tab.input_value("#text") == SOURCE
    assert tab.locator(".example.here").count() == 1
    tab.fill("#text", "")
    until(tab, "document.querySelector('#look').disabled")
    for screen in visit(tab, SCREENS[1:]):
        assert tab.locator("main .empty").count() == 0, screen
        if tab.locator(".strips").is_visible():
            assert SOURCE[0] in tab.locator(".strips").inner_text(), screen
    assert "text=" not in tab.url
    drawn(tab, lambda: tab.click("#screen-translate"))
    assert tab.input_value("#text") == ""


def test_keys_reach_the_screen_without_every_token_before_it(opened, server):
    tab = opened(at(server, screen="head", text=SOURCE, lang="zh"))
    tab.keyboard.press("Tab")
    assert tab.locator(":focus").inner_text() == page_text("skip", "zh")
    tab.keyboard.press("Enter")
    assert tab.locator(":focus").get_attribute("id") == "main"
    tab.keyboard.press("Tab")
    assert tab.locator(":focus").get_attribute("id") == "zoom-out"


def test_figures_can_be_saved(opened, server):
    tab = opened(at(server, screen="map", text=SOURCE, kind="cross"))
    screens = ["map", "head", "walk", "steps", "beam", "influence", "positions", "training"]
    for screen in visit(tab, screens):
        with tab.expect_download() as got:
            tab.click("#save-svg")
        assert got.value.suggested_filename.startswith(f"regard-{screen}"), screen
        assert "<svg" in Path(got.value.path()).read_text(encoding="utf-8"), screen


def test_a_text_that_looks_like_a_script_is_only_shown(opened, server):
    hostile = "<script>hurt=1</script>"
    other = "<img src=x onerror=hurt=1>"
    # With a given output: what the model makes of such a text is long, and every screen would search for it.
    state = {"text": hostile, "target": other, "other": other, "beside": "text"}
    tab = opened(at(server, lang="en", **state))
    for screen in visit(tab, SCREENS):
        assert tab.evaluate("window.hurt") is None, screen
