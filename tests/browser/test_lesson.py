"""What a visitor sees first: an example that is translated, Figure 1 of the model, and a word on its way."""

import json
import re

import numpy as np
import pytest

import regard
from regard import bundled, page
from tests.browser.served import at, page_text
from tests.browser.waiting import drawn, until
from tests.serve.running import serving

pytestmark = pytest.mark.slow
EXAMPLES = page.read("state/examples.js")
IT = "The animal didn't cross the street because it was too {}."
WIDTHS = (360, 768, 1280, 1920, 2560)


@pytest.fixture(scope="module")
def server():
    with serving([bundled.folder()], threads=1) as found:
        yield found


@pytest.fixture(scope="module")
def translator():
    return regard.load()


def test_the_page_opens_on_an_example_that_is_written_word_by_word(opened, server, translator):
    tab = opened(at(server, lang="en"))
    text = IT.format("tired")
    assert tab.input_value("#text") == text
    until(tab, "document.querySelector('#output .unwritten')")
    until(tab, "document.querySelector('#output .word.lit') && document.querySelector('.mirror mark')")
    until(tab, "!document.querySelector('#output .unwritten')")
    assert tab.locator("#output").inner_text() == translator.translate(text).text
    assert tab.locator(".example").count() == 6
    drawn(tab, lambda: tab.click("#example-variant"))
    until(tab, "document.querySelector('#output').textContent.includes('宽')")
    drawn(tab, lambda: tab.click("#how"))
    assert tab.locator("#screen-follow").get_attribute("aria-current") == "page"
    assert "wide" in tab.locator(".strips").inner_text()


def test_nothing_is_hidden_from_those_who_want_no_motion(opened, server):
    tab = opened(at(server, lang="en"))
    tab.emulate_media(reduced_motion="reduce")
    until(tab, "document.querySelector('#output .word')")
    drawn(tab, lambda: tab.click("#example-idiom"))
    until(tab, "document.querySelector('#output').textContent.includes('篮')")
    assert tab.locator(".unwritten").count() == 0
    tab.emulate_media(reduced_motion="no-preference")


def test_what_is_said_about_the_examples_is_true_of_the_bundled_model(translator, server):
    hash_ = re.search(r'CHECKED_WEIGHTS = "(\w+)"', EXAMPLES)[1]
    assert server.get("/api/v1/models").json()["models"][0]["weights_hash"] == hash_
    texts = dict(re.findall(r'id: "(\w+)",\s+language: "\w+",\s+text: "([^"]+)"', EXAMPLES))
    assert len(texts) == 6
    outputs = {name: translator.translate(text).text for name, text in texts.items()}
    assert outputs["order"].rstrip(".").endswith("yesterday")
    assert outputs["idiom"].index("把你所有的蛋") < outputs["idiom"].index("放")
    assert [int(number) for number in re.findall(r"\d+", outputs["date"])] == [2025, 3, 3, 2025, 4, 14]
    assert "下了一整天" in outputs["long"]
    assert "雨" not in outputs["long"]
    assert "正在下雨的猫和狗" in outputs["fails"]
    for word, share in (("tired", 79), ("wide", 84)):
        trace = translator.look(IT.format(word))
        texts_ = trace.inputs.texts
        weight = trace.attention("encoder", 6, 0)[texts_.index("it"), texts_.index("animal")]
        assert round(100 * float(weight)) == share
        for language in ("en", "zh"):
            assert f"{share}%" in page_text("example.it.found", language)


def test_a_box_of_figure_1_shows_its_tensors_and_leads_in_and_out(opened, server, translator):
    tab = opened(at(server, screen="model", lang="en"))
    trace = translator.look(IT.format("tired"))
    until(tab, "document.querySelectorAll('.figure-one image').length > 20")
    drawn(tab, lambda: tab.click("[data-box='encoder-feed-forward']"))
    shape = trace.output("encoder-feed-forward", 1).shape
    assert f"S × d_model = {shape[0]} × {shape[1]}" in tab.locator(".opened").inner_text()
    drawn(tab, lambda: tab.click("[data-box=cross]"))
    numbers = tab.locator(".tensor-numbers").all_inner_texts()
    row = int(re.search(r"outputs-(\d+)", tab.locator(".chip.looks").get_attribute("id"))[1])
    found = [float(each) for each in re.findall(r"[-\d.]+", numbers[-1].replace("−", "-").partition("(")[2])]
    np.testing.assert_allclose(found[:8], trace.output("cross", 1)[row][:8], rtol=2e-3, atol=6e-3)
    best = trace.attention("cross", 1, 0)[row].argmax()
    assert trace.inputs.texts[best] in numbers[2]
    drawn(tab, lambda: tab.click("#to-head"))
    assert tab.locator("#screen-head").get_attribute("aria-current") == "page"
    crumbs = tab.locator(".trail li").all_inner_texts()
    assert [each.strip("› ") for each in crumbs] == [
        "Figure 1",
        "Decoder layer 1",
        "Multi-Head Attention",
        "Head 0",
    ]
    drawn(tab, lambda: tab.keyboard.press("Escape"))
    assert tab.locator("#box-name").inner_text() == page_text("figure.cross")
    drawn(tab, lambda: tab.keyboard.press("Escape"))
    assert tab.locator("#box-name").count() == 0
    assert tab.locator("#zoom-out").is_disabled()


def test_boxes_and_layers_can_be_chosen_by_keys(opened, server):
    tab = opened(at(server, screen="model", lang="zh", kind="encoder", layer=4))
    box = tab.locator("[data-box='norm:encoder']")
    assert (box.get_attribute("role"), box.get_attribute("tabindex")) == ("button", "0")
    box.focus()
    drawn(tab, lambda: tab.keyboard.press("Enter"))
    assert tab.locator("#box-name").inner_text() == page_text("figure.norm", "zh")
    layer = tab.locator(
        f"[aria-label='{page_text('figure.encoder.stack', 'zh')}, {page_text('layer', 'zh')} 7']"
    )
    layer.focus()
    drawn(tab, lambda: tab.keyboard.press("Enter"))
    assert "layer=7" in tab.url


def test_a_word_is_followed_from_its_characters_to_the_search(opened, server, translator):
    tab = opened(at(server, screen="follow", lang="en"))
    trace = translator.look(IT.format("tired"), beam_size=4)
    assert tab.locator(".letters li span:first-child").all_inner_texts() == [*"animal"]
    last = int(tab.get_attribute("#stage", "max"))
    drawn(tab, lambda: tab.click("#next"))
    animal = trace.inputs.texts.index("animal")
    assert tab.locator(".pieces .here").inner_text().split() == ["animal", str(trace.inputs[animal].id)]
    assert "stage=tokens" in tab.url
    for layer in (0, 9):
        to_stage(tab, f"encoder.{layer}.weights")
        until(tab, f"document.querySelector('[aria-current=step]').textContent === 'Enc. {layer}'")
        weights = trace.attention("encoder", layer, 0)[animal]
        until(tab, f"document.querySelector('.panel').textContent.includes('{weights.max():.3f}')")
    to_stage(tab, "beam")
    until(tab, "document.querySelector('.searched .here')")
    step = trace.outputs.texts.index("动物") - 1
    found = tab.locator(".searched .here td").all_inner_texts()
    assert found[0] == "动物"
    node = next(each for each in trace.beam.nodes if each.step == step and each.id in set(winners(trace)))
    assert float(found[2].replace("−", "-")) == pytest.approx(node.total, abs=6e-3)
    assert int(tab.input_value("#stage")) == last
    assert tab.locator("#next").is_disabled()


def to_stage(tab, stage):
    tab.evaluate("stage => location.hash = location.hash.replace(/stage=[^&]*/, `stage=${stage}`)", stage)


def winners(trace):
    parents = {node.id: node.parent for node in trace.beam.nodes}
    at_ = trace.beam.winner.id
    while at_ is not None:
        yield at_
        at_ = parents[at_]


def test_every_stage_can_be_shown_and_played(opened, server):
    tab = opened(at(server, screen="follow", lang="zh", stage="cross.1.normed-2"))
    last = int(tab.get_attribute("#stage", "max"))
    begun = int(tab.input_value("#stage"))
    for _ in range(last - begun):
        drawn(tab, lambda: tab.keyboard.press("ArrowRight"))
        assert tab.locator(".card .sentence").last.inner_text().strip()
    assert int(tab.input_value("#stage")) == last
    to_stage(tab, "decoder.1.residual")
    until(tab, "document.querySelector('.chapters [aria-current]').textContent === '解码 1'")
    before = int(tab.input_value("#stage"))
    tab.click("#play")
    until(tab, f"Number(document.querySelector('#stage').value) >= {before + 2}")
    tab.click("#play")


def test_another_token_is_followed_when_it_is_clicked(opened, server):
    tab = opened(at(server, screen="follow", lang="en", stage="encoder.3.residual"))
    drawn(tab, lambda: tab.click("#inputs-13"))
    assert tab.locator(".chip.looks").inner_text() == "tired"
    assert (
        tab.locator(".whom strong")
        .inner_text()
        .startswith(page_text("follow.whom", input="tired", output="")[:8])
    )
    assert "累了" in tab.locator(".whom strong").inner_text()
    drawn(tab, lambda: tab.click("#screen-head"))
    assert tab.locator(".chip.looks").inner_text() == "累了", "the same pair is selected on other screens"
    assert tab.locator(".chip.looked-at").inner_text() == "tired"


def test_training_shows_a_recorded_run(opened, server):
    tab = opened(at(server, screen="training", lang="en"))
    record = json.loads(page.read("recorded.json"))
    assert record["command"] in tab.locator(".recorded").inner_text()
    assert page_text("training.so-far", run="dates", step=200) in tab.locator(".controls").first.inner_text()
    assert tab.locator(".samples li").count() == 6
    mean = np.mean(record["validations"][-1]["log_probs"])
    assert (
        page_text("training.likely", value=f"{mean:.2f}".replace("-", "−"))
        in tab.locator(".played").first.inner_text()
    )
    tab.locator("#moment").fill("0")
    until(tab, "document.querySelector('.slider output').textContent === 'step 0'")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_new_screens_fit_every_width(opened, server, language):
    tab = opened(at(server, screen="model", lang=language, box="cross"))
    for width in WIDTHS:
        tab.set_viewport_size({"width": width, "height": 800})
        for screen, more in (
            ("model", "&box=cross"),
            ("follow", "&stage=cross.1.weights"),
            ("translate", ""),
        ):
            drawn(
                tab,
                lambda where=f"{screen}{more}": tab.evaluate(
                    f"location.hash = 'lang={language}&screen={where}'"
                ),
            )
            assert tab.evaluate("document.documentElement.scrollWidth") <= width, (screen, width)
