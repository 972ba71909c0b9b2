"""The screens that change a model (All heads) and compare two traces (Compare)."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from regard.look.interventions.activations import Ablate, Patch
from regard.look.interventions.interventions import HeadOff, MaskSource, NoPositions, SkipBlock, Uniform
from regard.serve.http.metrics import Metrics
from regard.serve.models import load_models
from tests.browser.served import OTHER, SOURCE, at, page_text
from tests.browser.tables import saved_csv
from tests.browser.waiting import drawn, until
from tests.engine import talking
from tests.serve.running import running

pytestmark = pytest.mark.slow


WRITTEN = "p => [...p.childNodes].filter(n => n.tagName !== 'DEL').map(n => n.textContent).join('')"


def changed_by(count):
    return page_text("off.without", count=count)


def effects_known(tab):
    until(
        tab,
        f"document.querySelector('#map-told').textContent === {json.dumps(page_text('off.effects.note'))}",
    )


def rewritten(tab, act):
    """Do something that changes the model, and wait for its output."""
    before = int(tab.get_attribute(".dock", "data-answers") or 0)
    act()
    until(tab, f"Number(document.querySelector('.dock').dataset.answers) > {before}")


def drag(tab, *items):
    """Press on the first item, move across the others, and release."""
    for i, item in enumerate(items):
        tab.locator(f"[data-paint='{item}']").scroll_into_view_if_needed()
        box = tab.locator(f"[data-paint='{item}']").bounding_box()
        tab.mouse.move(box["x"] + box["width"] / 2, box["y"] + 12, steps=3)
        if i == 0:
            tab.mouse.down()
    tab.mouse.up()


def test_a_drag_across_heads_switches_them_off_and_rewrites_the_output(opened, server, model):
    tab = opened(at(server, screen="map", text=SOURCE, lang="en"))
    effects_known(tab)
    rewritten(tab, lambda: drag(tab, *(f"head.cross.0.{head}" for head in range(3))))
    until(tab, "location.hash.includes('cross.0.2')")
    off = [HeadOff(kind="cross", layer=0, head=head) for head in range(3)]
    until(tab, f"document.querySelector('.dock-facts').textContent.startsWith({json.dumps(changed_by(3))})")
    tab = opened(tab.url)  # every state is a link
    until(tab, "document.querySelector('.dock .was')")
    changed = model.look(SOURCE, interventions=off, beam_size=4).outputs.text
    assert tab.locator(".dock .rewritten").evaluate(WRITTEN) == changed
    assert change_told(tab) == pytest.approx(change_of(model, off), abs=6e-3)
    pressed = "[data-paint^='head.'][aria-pressed=true]"
    assert [each.get_attribute("data-op") for each in tab.locator(pressed).all()] == ["off"] * 3
    tab.click("#choose-off")
    until(tab, "document.querySelector('#choose-off').ariaPressed === 'true'")
    tab.focus("#thumb-cross-0-1")
    rewritten(tab, lambda: tab.keyboard.press("Enter"))
    assert tab.locator(pressed).count() == 2
    rewritten(tab, lambda: tab.click("#all-on"))
    assert tab.locator(pressed).count() == 0


def test_the_effect_of_every_head_is_its_colour(opened, server, model):
    tab = opened(at(server, screen="map", text=SOURCE, lang="en"))
    effects_known(tab)
    effects = model.head_effects(model.look(SOURCE, beam_size=4))
    for kind, layers in effects.items():
        for (layer, head), effect in np.ndenumerate(layers):
            shown = tab.locator(f"#thumb-{kind}-{layer}-{head} .by").inner_text().replace("−", "-")
            assert float(shown) == pytest.approx(effect, abs=0.051)
    drawn(tab, lambda: tab.keyboard.press("t"))
    everything = np.concatenate([effects[kind].ravel() for kind in effects])
    told = tab.locator(".table tbody td:last-child").all_inner_texts()
    values = sorted(float(each.replace("−", "-")) for each in told)
    np.testing.assert_allclose(values, np.sort(everything), atol=0.051)


def test_heads_attend_evenly_blocks_are_skipped_and_tokens_dropped(opened, server, model):
    tab = opened(at(server, screen="off", op="off", text=SOURCE, lang="en"))  # the name of older links
    until(tab, "document.querySelector('.dock .rewritten')")
    head = tab.locator("#thumb-cross-0-1")
    rewritten(tab, lambda: head.click())
    drawn(tab, lambda: tab.click("#choose-uniform"))
    rewritten(tab, lambda: head.click())  # one change of a head replaces another
    drawn(tab, lambda: tab.click("#choose-skip"))
    rewritten(tab, lambda: tab.click("#thumb-encoder-0-2"))
    rewritten(tab, lambda: tab.click("#drop-0"))
    rewritten(tab, lambda: tab.click("#no-positions"))
    tab = opened(tab.url)  # the address holds all of it
    until(tab, "document.querySelector('.dock .was')")
    changes = [
        Uniform(kind="cross", layer=0, head=1),
        SkipBlock(block="encoder", layer=0),
        MaskSource(token=0),
        NoPositions(),
    ]
    assert change_told(tab) == pytest.approx(change_of(model, changes), abs=6e-3)
    n_heads = model.look(SOURCE).config.n_heads
    assert tab.locator("[data-paint^='head.encoder.0.'][data-op=skip]").count() == n_heads
    assert tab.locator("#drop-0").get_attribute("aria-pressed") == "true"
    rewritten(tab, lambda: tab.click("#all-on"))
    assert tab.locator("[data-paint][aria-pressed=true]").count() == 0


def test_heads_are_averaged_and_frozen_and_positions_taken_away(opened, server, model):
    off = "mean.cross.0.0,freeze.encoder.0.1"
    tab = opened(at(server, screen="map", text=SOURCE, off=off, unplaced="1,2", lang="en"))
    until(tab, "document.querySelector('.dock .was')")
    written = model.look(SOURCE, beam_size=4).outputs.text
    changes = [
        Ablate(
            at="decoder.layers.0.multi_head_attention.heads", head=0, by="mean", texts=((SOURCE, written),)
        ),
        Patch(at="encoder.layers.0.multi_head_attention.heads", head=1, text=(SOURCE, written)),
        Ablate(at="input_positions.added", by="zero", positions=(1, 2)),
    ]
    assert change_told(tab) == pytest.approx(change_of(model, changes), abs=6e-3)
    rewritten(tab, lambda: drag(tab, "unplaced.1", "unplaced.2"))
    until(tab, "!location.hash.includes('unplaced')")
    expected = f"{change_of(model, changes[:2]):.2f}".replace("-", "−")
    until(tab, f"document.querySelector('.dock-facts').textContent.includes(' {expected}')")


def change_of(model, changes):
    """How the log-probability of the unchanged output changes."""
    intact = model.look(SOURCE, beam_size=4)
    forced = model.look(SOURCE, list(intact.targets[:-1]), interventions=changes)
    return forced.log_probs.sum() - intact.log_probs.sum()


def change_told(tab):
    words = page_text("off.of-intact", change="").rstrip(".")
    told = tab.locator(".dock-facts").inner_text().split(words)[1].replace("−", "-")
    return float(re.search(r"-?\d+\.\d+", told)[0])


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


def test_a_model_and_a_checkpoint_of_its_run_stand_side_by_side(opened, tmp_path, folder, model):
    talking.talker(tmp_path)
    run = tmp_path / "run"
    shutil.rmtree(run / "best")
    shutil.copytree(tmp_path / "trained", run / "best")  # with its subwords
    (checkpoint,) = (run / "checkpoints").glob("step-*")
    weights = load_file(checkpoint / "weights.safetensors")
    save_file({name: 0.9 * each for name, each in weights.items()}, checkpoint / "weights.safetensors")
    served = load_models([folder, checkpoint], Metrics(), threads=1)
    try:
        with running(served) as server:
            tab = opened(at(server, screen="compare", beside="model", text=SOURCE, lang="en"))
            name = f"run-{checkpoint.name.replace('-0', '-').replace('-0', '-')}"
            assert tab.locator("#rival option").all_inner_texts() == [each.id for each in served][1:], name
            sides = tab.locator(".compare .split > section")
            scales = [side.locator("svg.figure text").all_text_contents()[-2:] for side in sides.all()]
            assert scales == [["0", "1.000"]] * 2
            other = next(each for each in served if each.id != "zh-en").model
            written = model.look(SOURCE, beam_size=4).outputs.text
            given = other.look(SOURCE, written)
            sums = [side.locator("p.number").inner_text() for side in sides.all()]
            assert float(sums[1].split()[-1].replace("−", "-")) == pytest.approx(
                given.log_probs.sum(), abs=2e-3
            )
            assert tab.locator(".aparts td").count() == sum(
                given.config.n_heads * len(layers) for layers in model.head_effects(given).values()
            )
            assert page_text("compare.by-token") in tab.locator("main").inner_text()
    finally:
        served.close()


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
    assert Path(got.value.path()).read_text("utf-8").count("<svg") == 1 + 1 + 2
    assert {row[0] for row in rows} == {page_text("off.intact"), page_text("off.without", count=1)}
