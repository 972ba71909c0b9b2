"""The screens that change a model (Heads off) and compare two traces (Compare)."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from regard.look.interventions.interventions import HeadOff, MaskSource, NoPositions, SkipBlock, Uniform
from tests.browser.served import OTHER, SOURCE, at, page_text
from tests.browser.tables import numbers_on, saved_csv
from tests.browser.waiting import drawn, until

pytestmark = pytest.mark.slow


def test_heads_are_switched_off_and_their_effects_shown(opened, server, model):
    tab = opened(at(server, screen="off", text=SOURCE, lang="en"))
    legend = page_text("off.effects.note")
    until(tab, f"document.querySelector('#off-legend').textContent === {json.dumps(legend)}")
    for head in range(3):
        drawn(tab, lambda head=head: tab.click(f"[id='off-cross.0.{head}']"))
    off = [HeadOff(kind="cross", layer=0, head=head) for head in range(3)]
    changed = model.look(SOURCE, interventions=off, beam_size=4).outputs.text
    shown = tab.locator("aside .rewritten").last
    assert (
        shown.evaluate(
            "p => [...p.childNodes].filter(n => n.tagName !== 'DEL').map(n => n.textContent).join('')"
        )
        == changed
    )
    assert tab.locator("[id='off-cross.0.1']").get_attribute("aria-pressed") == "true"
    tab.focus("[id='off-cross.0.1']")
    drawn(tab, lambda: tab.keyboard.press("Enter"))
    assert tab.locator("[id='off-cross.0.1']").get_attribute("aria-pressed") == "false"
    heads = tab.locator("main svg.figure g[id^=off-]:not([aria-pressed=true]) text").all_text_contents()
    effects = model.head_effects(model.look(SOURCE, beam_size=4))
    assert len(heads) > 3
    everything = [each for kind in effects.values() for each in kind.ravel()]
    assert all(
        min(abs(float(head.replace("−", "-")) - each) for each in everything) < 0.051 for head in heads
    )
    drawn(tab, lambda: tab.keyboard.press("t"))
    expected = np.concatenate([effects[kind].ravel() for kind in ("encoder", "decoder", "cross")])
    np.testing.assert_allclose(numbers_on(tab)[:, -1], expected, atol=2e-3)


def test_heads_look_evenly_blocks_are_skipped_and_tokens_dropped(opened, server, model):
    tab = opened(at(server, screen="off", text=SOURCE, effects=0, lang="en"))
    head = tab.locator("[id='off-cross.0.1']")
    drawn(tab, lambda: head.click())
    drawn(tab, lambda: tab.click("#choose-uniform"))
    drawn(tab, lambda: head.click())  # one change of a head takes the place of another
    drawn(tab, lambda: tab.click("#choose-skip"))
    drawn(tab, lambda: tab.click("[id='off-encoder.0.2']"))
    drawn(tab, lambda: tab.click("#drop-0"))
    drawn(tab, lambda: tab.click("#no-positions"))
    tab = opened(tab.url)  # the address holds all of it
    changes = [
        Uniform(kind="cross", layer=0, head=1),
        SkipBlock(block="encoder", layer=0),
        MaskSource(token=0),
        NoPositions(),
    ]
    intact = model.look(SOURCE, beam_size=4)
    forced = model.look(SOURCE, list(intact.targets[:-1]), interventions=changes)
    change = forced.log_probs.sum() - intact.log_probs.sum()
    told = (
        tab.locator("aside p", has_text=page_text("off.of-intact", change="").rstrip("."))
        .inner_text()
        .replace("−", "-")
    )
    assert float(re.search(r"-?\d+\.\d+", told)[0]) == pytest.approx(change, abs=2e-3)
    assert (
        tab.locator("[id^='off-encoder.0.'][aria-pressed=true]").count() == model.look(SOURCE).config.n_heads
    )
    assert tab.locator("#drop-0 del").count() == 1
    drawn(tab, lambda: tab.click("#all-on"))
    assert tab.locator("[aria-pressed=true][id^='off-'], #drop-0 del").count() == 0


def test_two_traces_beside_each_other(opened, server):
    tab = opened(at(server, screen="compare", text=SOURCE, off="cross.0.1", lang="en"))
    assert tab.locator("main svg.figure").count() == 2
    assert (
        float(tab.locator(".aparts tr").first.locator("button").first.inner_text()) == 0
    )  # below what is off
    drawn(tab, lambda: tab.click("#choose-text"))
    tab.fill("#other", OTHER)
    drawn(tab, lambda: tab.keyboard.press("Enter"))
    assert OTHER in tab.locator("main section").nth(1).inner_text()


@pytest.mark.parametrize("language", ["en", "zh"])
def test_both_sides_have_one_scale_and_a_head_that_is_off_is_marked(opened, server, language):
    where = {"kind": "cross", "layer": 0, "head": 1}
    tab = opened(at(server, screen="compare", text=SOURCE, off="cross.0.1", lang=language, **where))
    sides = tab.locator(".compare .split > section")
    scales = [side.locator("svg.figure text").all_text_contents()[-2:] for side in sides.all()]
    assert scales == [["0", "1.000"]] * 2
    told = page_text("compare.is-off", language)
    assert [told in text for text in sides.all_inner_texts()] == [False, True]
    assert tab.locator(".aparts button", has_text="✕").count() == 1
    assert told in tab.locator(".aparts button", has_text="✕").get_attribute("aria-label")
    drawn(tab, lambda: tab.click("#head−"))
    assert told not in tab.locator(".compare .split").inner_text()


def test_what_is_compared_is_saved_with_both_sides(opened, server, model, tmp_path):
    tab = opened(at(server, screen="compare", text=SOURCE, off="cross.0.1", kind="cross", layer=0, lang="en"))
    _, rows = saved_csv(tab, tmp_path)
    trace = model.look(SOURCE, beam_size=4)
    weights = np.array([float(row[-1]) for row in rows]).reshape(2, len(trace.outputs), len(trace.inputs))
    np.testing.assert_allclose(weights[0], trace.attention("cross", 0, 0), atol=6e-4)
    with tab.expect_download() as got:
        tab.click("#save-svg")
    assert Path(got.value.path()).read_text("utf-8").count("<svg") == 1 + 2
    assert {row[0] for row in rows} == {page_text("off.intact"), page_text("off.without", count=1)}
