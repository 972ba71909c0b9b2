"""The page as it is after `regard serve`: the bundled translator, which reads the language off the text."""

import json

import pytest

from regard import bundled
from regard.serve.http.limits import Limits
from tests.browser.served import at, page_text
from tests.browser.waiting import drawn, until, visit
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
    detected = tab.locator(".pane-head span")
    translate(tab, "猫坐在垫子上。", "cat")
    assert detected.all_inner_texts() == [page_text("translate.detected", name="Chinese"), "English"]
    translate(tab, "Where is the nearest subway station?", "地铁站")
    assert detected.all_inner_texts() == [page_text("translate.detected", name="English"), "Chinese"]
    tab.fill("#text", "")
    until(tab, "document.querySelector('#look').disabled")
    assert detected.first.inner_text() == page_text("translate.text")


def test_something_is_shown_during_steady_typing(opened, server):
    tab = opened(f"{server.url}/")
    translate(tab, "猫坐在垫子上。", "cat")  # the model is there
    before = tab.locator("#output").inner_text()
    tab.fill("#text", "")
    until(tab, "document.querySelector('#look').disabled")
    for letter in "the cat is sleeping on the old green chair in the garden ":
        tab.keyboard.type(letter)
        tab.wait_for_timeout(90)  # shorter than any pause
        if tab.locator("#look").is_enabled():
            break
    assert tab.locator("#look").is_enabled()
    assert tab.locator("#output").inner_text() != before
    assert len(tab.input_value("#text")) < 50


def test_a_language_that_was_chosen_is_kept_to(opened, server):
    tab = opened(f"{server.url}/")
    drawn(tab, lambda: tab.select_option("#way", label="English → Chinese"))
    translate(tab, "The cat is sleeping.", "猫")
    drawn(tab, lambda: tab.click("#swap"))
    assert tab.locator("#way option:checked").inner_text() == "Chinese → English"


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_text_in_another_language_stays_until_it_is_forced(opened, server, language):
    french = "Le chat noir dort tranquillement sur le canapé du salon."
    tab = opened(f"{server.url}/#lang={language}")
    tab.fill("#text", french)
    until(tab, "document.querySelector('.notice')")
    name = {"en": "French", "zh": "法语"}[language]
    assert page_text("translate.unexpected", language, name=name) in tab.locator(".notice").inner_text()
    assert tab.locator("#output").inner_text() == french
    tab.click("#anyway-en-zh")
    until(tab, "/[\u4e00-\u9fff]/.test(document.querySelector('#output').innerText)")
    assert tab.locator(".notice").count() == 0
    assert "from=en" in tab.url


def test_what_was_translated_can_be_looked_into_either_way(opened, server):
    tab = opened(f"{server.url}/")
    translate(tab, "The cat is sleeping.", "猫")
    drawn(tab, lambda: tab.click("#screen-alignment"))
    until(tab, "document.body.innerText.includes('猫')")


COMPOSING = """letters => {
    const field = document.querySelector('#text');
    field.focus();
    field.value += letters;
    field.dispatchEvent(new InputEvent('input', { isComposing: true }));
}"""


def test_letters_of_a_character_that_is_being_composed_are_not_translated(opened, server):
    tab = opened(f"{server.url}/")
    asked = []
    tab.on("request", lambda request: asked.append(request.url) if "translate" in request.url else None)
    tab.fill("#text", "猫")
    for letter in "zai":
        tab.evaluate(COMPOSING, letter)
    tab.wait_for_timeout(800)
    assert asked == []
    tab.evaluate(
        """() => {
        const field = document.querySelector('#text');
        field.value = '猫在睡觉。';
        field.dispatchEvent(new CompositionEvent('compositionend'));
    }"""
    )
    until(tab, "document.querySelector('#output').innerText.includes('cat')")


def test_a_key_leads_from_any_screen_to_where_one_writes(opened, server):
    tab = opened(at(server, screen="positions", text="猫"))
    drawn(tab, lambda: tab.keyboard.press("/"))
    until(tab, "document.activeElement.id === 'text'")
    drawn(tab, lambda: tab.click("#screen-positions"))
    drawn(tab, lambda: tab.keyboard.press("/"))
    assert tab.evaluate("document.activeElement.id") == "text"


UNCLEAR = "ᏣᎳᎩ ᎦᏬᏂᎯᏍᏗ"  # a script of no known language
MIXED = "我昨天在 GitHub 上 push 了一个 commit，but CI failed 了。"
FOREIGN = "مرحبا بالعالم"


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_text_of_no_clear_language_takes_the_place_of_the_one_before(opened, server, language):
    tab = opened(at(server, lang=language), expected="422")
    unclear = page_text("refused.unclear_language", language)
    translate(tab, "猫坐在垫子上。", "cat")
    tab.fill("#text", UNCLEAR)
    until(tab, f"document.querySelector('.status.problem')?.textContent === {json.dumps(unclear)}")
    for place in (".pane.said", ".alternatives"):
        assert "cat" not in tab.locator(place).text_content()
    assert tab.locator("#look").is_disabled()
    tab.select_option("#way", value=tab.locator("#way option").nth(1).get_attribute("value"))
    until(tab, "document.querySelector('#output').textContent.length > 0")


def test_a_text_of_two_languages_is_translated_into_the_one_that_it_is_not_in(opened, server):
    tab = opened(at(server))
    translate(tab, MIXED, "pushed a commit on GitHub")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_screens_say_what_to_do_with_a_text_that_they_cannot_show(opened, server, language):
    tab = opened(at(server, screen="map", lang=language, text=FOREIGN), expected="422|RequestError")
    assert page_text("refused.unclear_language", language) in tab.locator(".empty").inner_text()
    drawn(tab, lambda: tab.click(".empty button"))
    assert tab.input_value("#text") == FOREIGN
    tab = opened(
        at(server, screen="head", lang=language, text="One more word. " * 300), expected="413|RequestError"
    )
    told = tab.locator(".empty").inner_text()
    assert page_text("refused.too_large", language, message="").rstrip("()（）") in told
    assert f"{Limits().trace_tokens:,}" in told


@pytest.mark.parametrize(("text", "word"), [("The cat is sleeping.", "猫"), ("猫在睡觉。", "cat")])
def test_examples_for_libretranslate_name_the_language_that_it_is_translated_into(opened, server, text, word):
    tab = opened(at(server, screen="api", text=text))
    code = tab.locator("section:has(#copy-libretranslate) pre").inner_text()
    body = json.loads(code[code.index("{") : code.rindex("}") + 1])
    assert word in server.post("/translate", **body).json()["translatedText"]
    assert (
        f'"auto", "{body["target"]}"' in tab.locator("section:has(#copy-libretranslatepy) pre").inner_text()
    )


TEXT = "The old library on the hill opens at nine, but the new one never closes."


def test_figures_and_words_have_room(opened, server):
    tab = opened(at(server, screen="map", lang="en", text=TEXT))
    for width in (1440, 1024, 720, 390):
        tab.set_viewport_size({"width": width, "height": 900})
        drawn(tab, lambda: tab.click("#theme"))
        for screen in visit(tab, ["steps", "map"]):
            assert has_room(tab, screen), (screen, width)
            assert tab.evaluate("document.documentElement.scrollWidth") <= width, screen
            names = tab.locator(".rail .name")
            assert names.evaluate_all("all => all.every(each => each.offsetHeight > 0)"), (screen, width)


def has_room(tab, screen):
    """Whether nothing of a figure or a label is cut off."""
    if screen == "steps":
        whole = "node.getBoundingClientRect().width === Number(node.getAttribute('width'))"
        inside = "node.parentNode.scrollWidth <= node.parentNode.clientWidth"
        return tab.locator(".steps .figure").evaluate(f"node => {whole} && {inside}")
    return tab.locator(".role").evaluate_all("all => all.every(each => each.scrollWidth <= each.clientWidth)")


def test_a_word_is_looked_at_first_and_names_of_lines_are_whole(opened, server):
    tab = opened(at(server, screen="head", view="lines", lang="en", text="The cat is sleeping soundly."))
    assert "␣" in tab.locator("[id^=outputs-]").all_inner_texts(), "there is a space to pass by"
    assert tab.locator(".looks").inner_text() != "␣"
    past = """figure => [...figure.querySelectorAll('text')].filter(text => {
        const {x, width} = text.getBBox();
        return x < 0 || x + width > figure.viewBox.baseVal.width;
    }).map(text => text.textContent)"""
    assert tab.locator("main svg.figure").evaluate(past) == []
