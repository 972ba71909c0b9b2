"""The page as it is after `regard serve`: the bundled translator, which reads the language off the text."""

import json

import pytest

from regard import bundled
from tests.browser.test_served_page import at
from tests.browser.waiting import drawn, until
from tests.serve.running import serving

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server():
    with serving([bundled.folder()], threads=1) as found:
        yield found


def translate(tab, text, word):
    """Type a text, and wait until its translation has a word in it."""
    tab.fill("#text", text)
    until(tab, f"document.querySelector('#output').innerText.includes('{word}')")


def test_both_languages_are_translated_and_nobody_has_to_say_which_it_is(opened, server):
    tab = opened(f"{server.url}/")
    translate(tab, "猫坐在垫子上。", "cat")
    translate(tab, "Where is the nearest subway station?", "地铁站")


def test_a_language_that_was_chosen_is_kept_to(opened, server):
    tab = opened(f"{server.url}/")
    drawn(tab, lambda: tab.select_option("#way", label="English → Chinese"))
    translate(tab, "The cat is sleeping.", "猫")
    drawn(tab, lambda: tab.click("#swap"))
    assert tab.locator("#way option:checked").inner_text() == "Chinese → English"


def test_what_was_translated_can_be_looked_into_either_way(opened, server):
    tab = opened(f"{server.url}/")
    translate(tab, "The cat is sleeping.", "猫")
    drawn(tab, lambda: tab.click("text=Alignment"))
    until(tab, "document.body.innerText.includes('猫')")


@pytest.mark.parametrize(("text", "word"), [("The cat is sleeping.", "猫"), ("猫在睡觉。", "cat")])
def test_examples_for_libretranslate_name_the_language_that_it_is_translated_into(opened, server, text, word):
    tab = opened(at(server, screen="api", text=text))
    code = tab.locator("section:has(#copy-libretranslate) pre").inner_text()
    body = json.loads(code[code.index("{") : code.rindex("}") + 1])
    assert word in server.post("/translate", **body).json()["translatedText"]
    assert (
        f'"auto", "{body["target"]}"' in tab.locator("section:has(#copy-libretranslatepy) pre").inner_text()
    )
