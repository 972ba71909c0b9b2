"""The screens of a server that show one trace: heads, walkthrough, steps, beam, alignment, influence."""

import json

import numpy as np
import pytest

from regard.look.alignment.alignment import Gold, align
from regard.look.influence.methods import METHODS
from regard.look.trace.trace import Trace
from tests.browser.served import SOURCE, at, page_text
from tests.browser.tables import numbers_on
from tests.browser.waiting import drawn, until

pytestmark = pytest.mark.slow


def test_layers_and_heads_count_from_0_as_they_do_in_python(opened, server):
    tab = opened(at(server, screen="head", text=SOURCE, kind="cross", layer=0, head=2, lang="en"))
    assert tab.locator(".stepper output").all_inner_texts() == ["0 (0–0)", "2 (0–2)"]
    assert f"{page_text('layer')} 0, {page_text('head.number')} 2" in tab.locator(
        "main svg.figure"
    ).first.get_attribute("aria-label")


def test_a_trace_that_the_server_has_let_go_of_is_made_again(opened, server):
    tab = opened(at(server, screen="head", text=SOURCE, lang="en"), expected="404")
    kept = server.state.inspector.traces
    for trace in kept:
        kept.delete(trace)
    drawn(tab, lambda: tab.keyboard.press("."))
    assert tab.locator("main .empty").count() == 0
    drawn(tab, lambda: tab.click("#screen-beam"))
    tab.wait_for_selector("svg [data-node]")


def test_heads_are_marked_by_what_they_are_worth(opened, server, model):
    tab = opened(at(server, screen="map", by="importance", text=SOURCE, lang="en"))
    told = json.dumps(page_text("off.effects.note"))
    until(tab, f"document.querySelector('#map-told').textContent === {told}")
    effects = model.head_effects(model.look(SOURCE, beam_size=4))
    for kind, found in effects.items():
        shown = float(tab.locator(f"#thumb-{kind}-0-1 .by").inner_text().replace("−", "-"))
        assert shown == pytest.approx(found[0, 1], abs=6e-3)
    assert tab.locator("#choose-alignment").count() == 0  # nobody has measured it


def test_a_walk_over_http(opened, server, model):
    tab = opened(at(server, screen="walk", text=SOURCE, kind="cross", layer=0, head=1, query=1, lang="en"))
    walk = model.look(SOURCE, beam_size=4).walk("cross", 0, 1, 1)
    assert tab.locator(".sentence").inner_text() == walk[0].english
    drawn(tab, lambda: tab.keyboard.press("ArrowRight"))
    assert tab.locator(".sentence").inner_text() == walk[1].english


def test_another_candidate_leads_another_way(opened, server, model):
    tab = opened(at(server, screen="steps", text=SOURCE, step=0, lang="en"))
    trace = model.look(SOURCE, beam_size=4)
    second = trace.candidates(0)[1]
    drawn(tab, lambda: tab.locator("main svg.figure g[cursor=pointer]").nth(1).click())
    forced = model.look(SOURCE, beam_size=4, prefix=[second.id])
    assert tab.locator("[id^=outputs-]").all_inner_texts() == forced.outputs.texts
    assert second.text in tab.locator(".forced").inner_text()
    drawn(tab, lambda: tab.click("#free"))
    assert tab.locator("[id^=outputs-]").all_inner_texts() == trace.outputs.texts


def test_candidates_and_heads_are_buttons_for_keys_and_for_those_who_hear(opened, server, model):
    tab = opened(at(server, screen="steps", text=SOURCE, step=0, lang="en"))
    second = model.look(SOURCE, beam_size=4).candidates(0)[1]
    row = tab.get_by_role("button", name=f"{second.text}: ", exact=False).first
    row.focus()
    drawn(tab, lambda: tab.keyboard.press("Enter"))
    assert second.text in tab.locator(".forced").inner_text()
    assert tab.locator("main svg.figure").get_attribute("role") == "group"
    for screen, figure in (("head", "img"),):
        drawn(tab, lambda screen=screen: tab.click(f"#screen-{screen}"))
        assert tab.locator("main svg.figure").get_attribute("role") == figure


def test_a_node_that_was_given_up_can_be_gone_on_from(opened, server, model):
    tree = model.look(SOURCE, beam_size=4).beam
    fallen = next(n for n in tree.nodes if n.fate == "pruned" and n.step == 1 and n.text != "</s>")
    tab = opened(at(server, screen="beam", text=SOURCE, node=fallen.id, lang="en"))
    drawn(tab, lambda: tab.click("#force"))
    forced = model.look(SOURCE, beam_size=4, prefix=tree.ids(fallen.id))
    assert tab.locator("[id^=outputs-]").all_inner_texts() == forced.outputs.texts
    assert tab.locator("svg [data-node]").count() == len(forced.beam.nodes)


def test_a_beam_is_searched_again_by_another_size_and_penalty(opened, server, model):
    tab = opened(at(server, screen="beam", text=SOURCE, lang="en"))
    drawn(tab, lambda: tab.locator("#beam").fill("2"))
    drawn(tab, lambda: tab.locator("#penalty").fill("2"))
    assert "beam=2" in tab.url
    assert "penalty=2" in tab.url
    tree = model.look(SOURCE, beam_size=2, length_penalty=2.0).beam
    assert tab.locator("svg [data-node]").count() == len(tree.nodes)
    drawn(tab, lambda: tab.keyboard.press("t"))
    shown = [
        float(text.replace("−", "-")) for text in tab.locator(".table td:nth-child(6)").all_inner_texts()
    ]
    assert shown == pytest.approx([node.score for node in tree.nodes], abs=6e-4)
    drawn(tab, lambda: tab.click("#screen-head"))
    found = model.look(SOURCE, beam_size=2, length_penalty=2.0)
    assert tab.locator("[id^=outputs-]").all_inner_texts() == found.outputs.texts


def test_an_alignment_is_scored_by_links_that_one_pastes(opened, server, model):
    tab = opened(at(server, screen="alignment", text=SOURCE, lang="en"))
    heads = model.aligning_heads
    aligned = align(model.look(SOURCE, beam_size=4), heads.heads, heads.rows)
    ((found, _), *_) = aligned.links
    others = [i for i in range(len(aligned.inputs)) if i != found]
    gold = f"{found}p0 {others[0]}-0"
    tab.fill("#gold", gold)
    drawn(tab, lambda: tab.keyboard.press("Enter"))
    score = aligned.score(Gold.read(gold))
    assert score.precision > score.recall == 0
    assert f" {score.error_rate:.3f} " in tab.locator(".gold p").inner_text()
    assert tab.locator("main svg .mark").count() == 2
    tab.fill("#gold", "99-0")
    drawn(tab, lambda: tab.keyboard.press("Enter"))
    assert tab.locator(".gold p").inner_text() == page_text("alignment.gold.wrong", link="99-0")


def test_influence_by_every_measure_on_the_token_that_is_chosen(opened, server, model):
    tab = opened(at(server, screen="influence", text=SOURCE, lang="en", step=0))
    title = page_text("influence.of", token=tab.locator("#outputs-2").inner_text())
    tab.click("#outputs-2")  # a token above the figure, like the tower of its step
    until(
        tab,
        "[...document.querySelectorAll('main .scroll svg text')]"
        f".some(each => each.textContent === {json.dumps(title)})",
    )
    assert tab.locator("#step-1").get_attribute("aria-current") == "step"
    assert tab.locator("main .scroll svg svg").count() == 2
    texts = tab.locator("main .scroll svg text").all_text_contents()
    names = {page_text(f"influence.{name}") for name in METHODS}
    assert len(names) == 7
    assert names <= set(texts), "also beside many columns"
    lines = tab.locator("main svg path[fill=none][d^=M]")
    assert len({line.get_attribute("stroke") for line in lines.all()}) == 7
    drawn(tab, lambda: tab.keyboard.press("t"))
    trace = model.look(SOURCE, beam_size=4)
    found = np.stack(list(model.influences(trace, 1).values.values()), axis=1)
    np.testing.assert_allclose(numbers_on(tab), found[: len(trace.inputs) + 2], atol=2e-3)


def test_a_trace_is_saved_for_python(opened, server, model):
    tab = opened(at(server, screen="head", text=SOURCE, lang="en"))
    with tab.expect_download() as got:
        tab.click("#save-trace")
    assert got.value.suggested_filename == "trace.safetensors"
    trace, expected = Trace.load(got.value.path()), model.look(SOURCE, beam_size=4)
    assert trace.outputs == expected.outputs
    np.testing.assert_allclose(trace.attention("cross", 0, 1), expected.attention("cross", 0, 1), atol=1e-6)


def test_a_token_of_the_strip_is_the_one_that_every_screen_shows(opened, server, model):
    trace = model.look(SOURCE, beam_size=4)
    last = len(trace.outputs) - 1
    tab = opened(at(server, screen="steps", text=SOURCE, kind="cross", layer=0, head=1, lang="en"))

    def looks():
        return tab.locator(".chip.looks").evaluate_all("all => all.map(each => each.id)")

    assert looks() == [f"outputs-{1 + int(tab.locator('.skyline [aria-current]').get_attribute('id')[5:])}"]
    drawn(tab, lambda: tab.click("#outputs-3"))
    assert tab.locator("#step-2").get_attribute("aria-current") == "step"
    assert page_text("steps.after", token=trace.outputs[2].text) in tab.locator("h2").all_inner_texts()
    shades = "all => all.map(each => getComputedStyle(each).backgroundColor)"
    shown = tab.locator(".reading").last.locator(".read").evaluate_all(shades)
    assert tab.locator("[id^=inputs-]").evaluate_all(shades) == shown, "the weights that wrote this token"
    drawn(tab, lambda: tab.click("#screen-beam"))
    path = tab.locator("main aside .soft").first.inner_text().split(" ")
    assert (looks(), len(path)) == (["outputs-3"], 3)
    drawn(tab, lambda: tab.click(f"#outputs-{last}"))
    assert len(tab.locator("main aside .soft").first.inner_text().split(" ")) == last
    drawn(tab, lambda: tab.keyboard.press("ArrowRight"))  # the end has no token
    assert looks() == []
    drawn(tab, lambda: tab.click("#outputs-3"))
    drawn(tab, lambda: tab.click("#screen-head"))
    assert looks() == ["outputs-3"]
    assert "query=3" in tab.url
    drawn(tab, lambda: tab.click("#screen-alignment"))
    heads = model.aligning_heads
    shares = align(model.look(SOURCE, beam_size=4), heads.heads, heads.rows)
    word = next(i for i, each in enumerate(shares.outputs) if each.first <= 3 <= each.last)
    read = next(i for i in range(len(shares.inputs)) if shares.shares[word][i] == max(shares.shares[word]))
    token = shares.inputs[read].first
    told = tab.locator(f"#inputs-{token}").get_attribute("aria-label")
    percent = tab.locator(
        "main svg.figure text", has_text=f"{max(shares.shares[word]):.2f}".replace("0.", ".")
    )
    assert percent.count() > 0
    assert f" · {max(shares.shares[word]) * 100:.0f}%" in told


def test_the_tree_shows_who_won_and_how_likely_each_token_was(opened, server, model):
    tree = model.look(SOURCE, beam_size=4).beam
    tab = opened(at(server, screen="beam", text=SOURCE, lang="en"))
    first = tab.locator(".endings li").first.inner_text()
    assert f"{tree.winner.score:.3f}".replace("-", "−") in first
    assert "the output" in first
    for node in tree.nodes[:9]:
        share = tab.locator(f"[data-node='{node.id}'] [data-share]").get_attribute("data-share")
        assert float(share) == pytest.approx(np.exp(node.log_prob), abs=6e-4)
    inside = "node => node.parentNode.scrollWidth <= node.parentNode.clientWidth"
    assert tab.locator("main svg.figure").evaluate(inside), "the whole tree is seen"
