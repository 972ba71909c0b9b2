"""What all screens of a server have in common."""

from pathlib import Path

import pytest

from tests.browser.served import SOURCE, at, page_text
from tests.browser.waiting import drawn, is_chinese, visit

pytestmark = pytest.mark.slow
SCREENS = [
    "translate", "map", "head", "walk", "steps", "beam", "alignment",
    "influence", "off", "compare", "positions", "training", "experiments", "api",
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


def test_screens_without_a_text_say_what_to_do(opened, server):
    tab = opened(at(server, screen="walk", lang="en"))
    assert page_text("nothing") in tab.locator("main .empty").inner_text()
    drawn(tab, lambda: tab.click("main .empty button"))
    assert tab.locator("#text").is_visible()


def test_keys_reach_the_screen_without_every_token_before_it(opened, server):
    tab = opened(at(server, screen="head", text=SOURCE, lang="zh"))
    tab.keyboard.press("Tab")
    assert tab.locator(":focus").inner_text() == page_text("skip", "zh")
    tab.keyboard.press("Enter")
    assert tab.locator(":focus").get_attribute("id") == "main"
    tab.keyboard.press("Tab")
    assert tab.locator(":focus").get_attribute("id").startswith("choose-")


def test_figures_can_be_saved(opened, server):
    tab = opened(at(server, screen="map", text=SOURCE, kind="cross"))
    screens = ["map", "head", "walk", "steps", "beam", "influence", "off", "positions", "training"]
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
