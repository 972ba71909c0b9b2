"""A saved file, opened from disk in a real browser."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from regard.engine.engines.protocol import Search
from regard.look.export.html import html
from regard.look.interventions.interventions import HeadOff
from regard.look.trace.recorder import look
from tests.browser.served import page_text
from tests.browser.tables import numbers_on, saved_csv
from tests.browser.waiting import drawn, is_chinese, until, visit
from tests.look.formulas import tiny_model, tiny_texts
from tests.look.traced import ARCHITECTURES, SOURCE, TARGET, model_of, subwords, trace_of

pytestmark = pytest.mark.slow
SCREENS = ["model", "follow", "map", "head", "walk", "steps", "beam", "alignment", "learn"]


@pytest.fixture(scope="session")
def trace():
    """The usual pair, with the tree of a search for another output."""
    model = model_of(torch.float32)
    tree = look(model, subwords(), SOURCE, search=Search(beam_size=3, extra_length=0)).beam
    return replace(trace_of(model), beam=tree)


@pytest.fixture(scope="session")
def saved(trace, tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "cat sat.html"
    path.write_text(html(trace), encoding="utf-8")
    return path


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_screen_is_drawn_in_both_languages(opened, saved, language):
    tab = opened(saved.as_uri() + f"#lang={language}")
    assert tab.locator("html").get_attribute("lang") == {"en": "en", "zh": "zh-CN"}[language]
    for screen in visit(tab, SCREENS):
        assert tab.locator("h1").inner_text().strip(), screen
        assert is_chinese(tab.locator("h1").inner_text()) == (language == "zh"), screen
        assert tab.locator("main .empty").count() == 0, screen


def test_the_page_shows_the_weights_of_the_trace(opened, saved, trace):
    tab = opened(saved.as_uri() + "#screen=head&kind=decoder&layer=1&head=2&table=1")
    shown, real = numbers_on(tab), trace.attention("decoder", 1, 2)
    np.testing.assert_array_equal(np.isnan(shown), ~trace.may_attend("decoder"))
    np.testing.assert_allclose(np.nan_to_num(shown), real, atol=6e-4)
    drawn(tab, lambda: tab.click("#choose-cross"))
    drawn(tab, lambda: tab.click("#layer\\+"))
    drawn(tab, lambda: tab.click("#head−"))
    np.testing.assert_allclose(numbers_on(tab), trace.attention("cross", 2, 1), atol=6e-4)
    drawn(tab, lambda: tab.click("#choose-scores"))
    np.testing.assert_allclose(numbers_on(tab), trace.scores("cross", 2, 1), atol=6e-4)


def test_pointing_at_a_cell_says_who_looks_at_whom(opened, saved, trace):
    tab = opened(saved.as_uri() + "#screen=head&kind=cross&layer=2&head=1")
    box = tab.locator("svg.figure rect[fill=transparent]").bounding_box()
    rows, columns = trace.attention("cross", 2, 1).shape
    tab.mouse.move(box["x"] + box["width"] * 2.5 / columns, box["y"] + box["height"] * 1.5 / rows)
    weight = trace.attention("cross", 2, 1)[1, 2]
    said = f"{trace.outputs[1].text} → {trace.inputs[2].text}: {weight:.3f}"
    assert tab.locator(".tip").inner_text() == said


@pytest.mark.parametrize("view", ["lines", "arcs"])
def test_there_is_a_line_for_each_weight_from_the_threshold_on(opened, saved, trace, view):
    anchor = f"#screen=head&kind=encoder&layer=1&head=0&view={view}&threshold=0.15&query=2"
    tab = opened(saved.as_uri() + anchor)
    weights = trace.attention("encoder", 1, 0)
    assert tab.locator("svg.figure path").count() == (weights >= 0.15).sum()
    assert tab.locator("svg.figure path[stroke='#0072b2']").count() == (weights[2] >= 0.15).sum()
    drawn(tab, lambda: tab.locator("svg.figure text").nth(4).click())
    assert "query=4" in tab.url


def test_a_link_shows_what_was_shown(opened, saved):
    tab = opened(saved.as_uri())
    for key in ["4", "d", "[", ".", "ArrowRight", "v", "l"]:
        drawn(tab, lambda key=key: tab.keyboard.press(key))
    before, text = tab.url, tab.locator("main").inner_text()
    assert "kind=decoder" in before
    assert "view=lines" in before
    again = opened(saved.as_uri() + "#" + before.partition("#")[2])
    assert again.locator("main").inner_text() == text
    tab.go_back()
    until(tab, "document.querySelector('#screen-model').ariaCurrent === 'page'")


def test_the_walk_goes_from_vector_to_probabilities(opened, saved, trace):
    tab = opened(saved.as_uri() + "#screen=walk&kind=cross&layer=2&head=1&query=2&lang=en")
    walk = trace.walk("cross", 2, 1, 2)
    for i, step in enumerate(walk):
        assert tab.locator(".sentence").inner_text() == step.english
        assert tab.locator(".formula math").count() == 1
        assert tab.locator(".panel svg").count() == 1
        if i + 1 < len(walk):
            drawn(tab, lambda: tab.keyboard.press("ArrowRight"))
    assert tab.locator("#next").is_disabled()
    drawn(tab, lambda: tab.keyboard.press("l"))
    assert tab.locator(".sentence").inner_text() == walk[-1].chinese


@pytest.mark.parametrize(
    "settings", [{}, {"norm_position": "pre", "positions": "alibi"}], ids=["post", "pre"]
)
def test_a_panel_draws_the_numbers_of_its_table(opened, settings, tmp_path):
    """The table has been multiplied out elsewhere; the figure shows the same numbers, its inputs included."""
    small = look(tiny_model(dtype=torch.float32, **settings), subwords(), *tiny_texts("encoder-decoder"))
    (tmp_path / "tiny.html").write_text(html(small), encoding="utf-8")
    address = (tmp_path / "tiny.html").as_uri() + "#screen=walk&kind=decoder&layer=1&query=2&lang=en"
    tab, beside = opened(address), opened(f"{address}&table=1")
    for step in small.walk("decoder", 1, 0, 2):
        assert tab.locator(".sentence").inner_text() == step.english
        in_table = {*beside.locator(".table tbody td").all_inner_texts()}
        in_figure = [
            t for t in tab.locator(".panel svg text").all_text_contents() if re.fullmatch(r"−?\d*\.\d+", t)
        ]
        assert len(in_figure) >= min(2, step.values.size)
        if step.name not in ("similarity", "weights", "head"):  # which show products and exponentials, too
            assert set(in_figure) <= in_table, step.name
        if step.name == "q":
            own = tab.locator(".panel svg text").all_text_contents()
            assert page_text("walk.normed" if settings else "walk.x") in own
            assert (page_text("walk.x") in own) == (not settings)
        if tab.locator("#next").is_enabled():
            for each in (tab, beside):
                drawn(each, lambda each=each: each.keyboard.press("ArrowRight"))


def test_the_walkthrough_begins_at_the_beginning_and_covers_nothing(opened, saved):
    tab = opened(saved.as_uri() + "#screen=head&lang=en")
    assert tab.locator("#choose-cross").get_attribute("aria-pressed") == "true"
    drawn(tab, lambda: tab.click("#screen-walk"))
    assert tab.locator(".stepper output").first.inner_text().startswith("0 ")
    assert tab.locator("#choose-encoder").get_attribute("aria-pressed") == "true"
    drawn(tab, lambda: tab.click("#screen-head"))
    assert tab.locator("#choose-encoder").get_attribute("aria-pressed") == "true", "one head everywhere"
    tab = opened(saved.as_uri() + "#screen=head&kind=cross&layer=2&lang=en")
    drawn(tab, lambda: tab.click("#to-walk"))
    assert tab.locator("#choose-cross").get_attribute("aria-pressed") == "true"
    tab.set_viewport_size({"width": 1280, "height": 720})
    names = tab.locator(".way button").all_inner_texts()
    assert tab.locator(".way").evaluate("node => node.scrollWidth <= node.clientWidth"), "all steps are seen"
    drawn(tab, lambda: tab.click(f"#way-{names.index('q·k')}"))
    assert tab.locator("#wide").is_visible()
    drawn(tab, lambda: tab.check("#hand"))
    drawn(tab, lambda: tab.uncheck("#hand"))
    assert "00" not in tab.locator(".comparison").all_inner_texts()
    over = "(one) => getComputedStyle(one).position"
    assert tab.locator(".pace").evaluate(over) == "static"


def test_a_step_stays_in_view_when_one_goes_to_another_layer(opened, saved):
    tab = opened(saved.as_uri() + "#screen=walk&kind=encoder&layer=0&panel=norm-2&lang=en")
    assert tab.locator(".way [aria-current]").inner_text() == "norm"
    drawn(tab, lambda: tab.keyboard.press("]"))
    assert "panel=norm-2" in tab.url
    assert tab.locator(".way button").last.get_attribute("aria-current") == "step"
    drawn(tab, lambda: tab.evaluate("location.hash = 'screen=walk&kind=cross&layer=1&panel=embedding'"))
    assert tab.locator(".way button").first.get_attribute("aria-current") == "step"


def test_without_the_scale_the_softmax_is_surer(opened, saved, trace):
    tab = opened(saved.as_uri() + "#screen=walk&kind=cross&layer=2&head=1&query=2&panel=weights")
    drawn(tab, lambda: tab.check("#unscaled"))
    with_scale, without, most = map(float, re.findall(r"\d+\.\d+", tab.locator(".comparison p").inner_text()))
    weights = trace.attention("cross", 2, 1)[2]
    assert with_scale == pytest.approx(-(weights * np.log2(weights)).sum(), abs=0.006)
    sharper = np.exp(trace.similarities("cross", 2, 1)[2])
    sharper /= sharper.sum()
    assert without == pytest.approx(-(sharper * np.log2(sharper)).sum(), abs=0.006)
    assert most == pytest.approx(np.log2(len(weights)), abs=0.006)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_pointing_at_a_token_that_is_no_text_says_what_it_is_for(opened, saved, language):
    tab = opened(saved.as_uri() + f"#screen=map&kind=cross&query=2&lang={language}")
    tab.hover("#outputs-0")
    assert tab.locator(".tip").inner_text().endswith(page_text("strip.start", language))


@pytest.mark.parametrize("by", ["entropy", "confidence", "distance"])
def test_heads_are_marked_and_sorted_by_how_they_look(opened, saved, trace, by):
    tab = opened(saved.as_uri() + "#screen=map&lang=en")
    drawn(tab, lambda: tab.click(f"#choose-{by}"))
    assert f"by={by}" in tab.url
    weights = trace.attention("decoder", 1, 2)
    places = np.abs(np.subtract.outer(np.arange(len(weights)), np.arange(len(weights))))
    expected = {
        "entropy": -np.sum(weights * np.log2(np.where(weights > 0, weights, 1)), axis=1).mean(),
        "confidence": weights.max(axis=1).mean(),
        "distance": (weights * places).sum(axis=1).mean(),
    }[by]
    marked = tab.locator("#thumb-decoder-1-2 .by").inner_text()
    assert float(marked) == pytest.approx(expected, abs=2e-3)
    assert bool(tab.locator("#thumb-cross-1-2 .by").inner_text().strip()) == (by != "distance")
    drawn(tab, lambda: tab.keyboard.press("t"))
    column = [text.strip() for text in tab.locator(".table td:last-child").all_inner_texts()]
    values = [float(text) for text in column if text]
    assert values == sorted(values, reverse=True)
    assert column[: len(values)] == [text for text in column if text]
    assert tab.locator("#choose-importance").count() == 0


@pytest.mark.parametrize("panel", ["similarity", "scaled", "weights", "head"])
def test_a_number_is_worked_out_by_hand(opened, saved, trace, panel):
    at = {"kind": "cross", "layer": 2, "head": 1, "query": 2}
    weights = trace.attention("cross", 2, 1)[2]
    real = {
        "similarity": trace.similarities("cross", 2, 1)[2],
        "scaled": trace.scores("cross", 2, 1)[2],
        "weights": weights,
        "head": next(step for step in trace.walk(**at) if step.name == "head").values,
    }[panel]
    right = real[0 if panel == "head" else int(np.argmax(weights))]
    state = "&".join(f"{name}={value}" for name, value in at.items())
    tab = opened(saved.as_uri() + f"#screen=walk&panel={panel}&lang=en&{state}")
    assert f"= {right:.3f}".replace("-", "−") in tab.locator(".substituted").inner_text()
    assert tab.locator(".comparison").first.inner_text() == page_text("walk.hand")
    drawn(tab, lambda: tab.check("#hand"))
    assert tab.locator(".substituted").inner_text().endswith("= ?")
    assert tab.locator(".panel text", has_text="?").count() >= 1
    assert f" {right:.3f}" not in tab.locator(".sentence").inner_text()
    for wrong, told in [(right + 1, "large"), (right - 1, "small"), ("x", "number")]:
        tab.fill("#answer", str(wrong))
        tab.click("#check")
        assert tab.locator("#verdict").inner_text() == page_text(f"walk.hand.{told}")
    tab.fill("#answer", f"{right:.3f}")
    drawn(tab, lambda: tab.keyboard.press("Enter"))
    assert tab.locator("#verdict").inner_text() == page_text(
        "walk.hand.right", value=f"{right:.3f}".replace("-", "−")
    )
    assert not tab.locator(".substituted").inner_text().endswith("?")
    drawn(tab, lambda: tab.click("#head−"))
    assert tab.locator(".substituted").inner_text().endswith("= ?")


def test_play_goes_on_by_itself_and_stops(opened, saved):
    tab = opened(saved.as_uri() + "#screen=steps&lang=en")
    tab.click("#play")
    until(tab, "location.hash.includes('step=1')")
    tab.click("#play")
    assert tab.locator("#play").get_attribute("aria-pressed") == "false"


def test_arrow_keys_walk_the_tree(opened, saved, trace):
    tree = trace.beam
    selected = tree.winner or tree.nodes[0]
    tab = opened(saved.as_uri() + "#screen=beam&lang=en")
    assert tab.locator("svg [data-node]").count() == len(tree.nodes)
    for key in ["", "ArrowLeft", "ArrowDown", "ArrowDown", "ArrowUp"]:
        column = [node for node in tree.nodes if node.step == selected.step]
        if key == "ArrowLeft":
            selected = tree.nodes[selected.parent]
        elif key:
            by = {"ArrowDown": 1, "ArrowUp": -1}[key]
            selected = next(node for node in column if node.rank == selected.rank + by)
        if key:
            drawn(tab, lambda key=key: tab.keyboard.press(key))
        assert selected.reason.english in tab.locator("aside").inner_text()
        assert f"{selected.log_prob:.3f}".replace("-", "−") in tab.locator("aside").inner_text()


def test_every_figure_can_be_saved(opened, saved, tmp_path):
    tab = opened(saved.as_uri() + "#kind=cross")
    saved_figures = []
    for screen in visit(tab, [each for each in SCREENS if each != "learn"]):
        with tab.expect_download() as got:
            tab.click("#save-svg")
        path = tmp_path / got.value.suggested_filename
        assert path.suffix == ".svg", screen
        got.value.save_as(path)
        assert path.read_text(encoding="utf-8").startswith("<?xml"), screen
        saved_figures.append(path)
        with tab.expect_download() as got:
            tab.click("#save-png")
        assert Path(got.value.path()).read_bytes().startswith(b"\x89PNG"), screen
    for path in saved_figures:
        tab.goto(path.as_uri())
        assert tab.locator("svg").first.bounding_box()["width"] > 100, path.name


def test_numbers_are_saved_as_programs_read_them(opened, saved, trace, tmp_path):
    tab = opened(saved.as_uri() + "#screen=head&kind=cross&layer=2&head=1&form=scores")
    head, rows = saved_csv(tab, tmp_path)
    assert head[1:] == trace.inputs.texts
    assert [row[0] for row in rows] == trace.outputs.texts
    shown = np.array([row[1:] for row in rows], dtype=float)
    np.testing.assert_allclose(shown, trace.scores("cross", 2, 1), atol=6e-4)
    assert (shown < 0).any(), "a minus is read as one"


def test_themes_and_tables_and_the_sheet_of_keys(opened, saved):
    tab = opened(saved.as_uri() + "#screen=head&theme=dark")
    assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(21, 25, 31)"
    drawn(tab, lambda: tab.get_by_role("button", name=page_text("theme.dark")).click())
    drawn(tab, lambda: tab.keyboard.press("t"))
    assert tab.locator(".table table").count() == 1
    tab.keyboard.press("?")
    assert tab.locator("dialog kbd").count() > 10
    tab.keyboard.press("Escape")
    until(tab, "!document.querySelector('dialog')")


def test_a_head_of_the_decoder_says_which_token_it_looked_for(opened, saved, trace):
    tab = opened(saved.as_uri() + "#screen=head&kind=cross&query=2&lang=en")
    told = page_text("head.next", next=trace.outputs.texts[3])
    assert told in tab.locator(".aside").inner_text()
    drawn(tab, lambda: tab.keyboard.press("e"))
    assert told not in tab.locator(".aside").inner_text()


def test_those_who_hear_the_page_are_told_where_a_key_has_led(opened, saved, trace):
    tab = opened(saved.as_uri() + "#screen=head&kind=cross&query=1&lang=en")
    heard = tab.locator("[aria-live]")
    drawn(tab, lambda: tab.keyboard.press("ArrowRight"))
    assert f"“{trace.outputs.texts[2]}”" in heard.inner_text()
    drawn(tab, lambda: tab.click("#screen-steps"))
    drawn(tab, lambda: tab.keyboard.press("ArrowRight"))
    assert heard.inner_text() in tab.locator("main").inner_text()
    drawn(tab, lambda: tab.click("#screen-beam"))
    drawn(tab, lambda: tab.keyboard.press("ArrowLeft"))
    shown = tab.locator(".aside").inner_text()
    assert heard.inner_text().split(" · ")[0] in shown
    assert heard.inner_text().split()[-1] in shown  # its score
    drawn(tab, lambda: tab.click("#screen-walk"))
    drawn(tab, lambda: tab.keyboard.press("ArrowRight"))
    assert tab.locator(".sentence").inner_text() in heard.inner_text()


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_architecture_is_shown(opened, tmp_path, architecture):
    trace = trace_of(model_of(torch.float32, architecture=architecture))
    (tmp_path / "it.html").write_text(html(trace), encoding="utf-8")
    lone = architecture != "encoder-decoder"
    screens = [screen for screen in SCREENS if not (lone and screen in ("beam", "alignment"))]
    tab = opened((tmp_path / "it.html").as_uri())
    for screen in visit(tab, screens):
        assert tab.locator("main .empty").count() == int(screen == "beam")
    ids = tab.locator(".rail button").evaluate_all("all => all.map(each => each.id.replace('screen-', ''))")
    assert ids == screens


def test_a_model_that_was_changed_inside_is_said_to_be(opened, saved, tmp_path):
    assert opened(saved.as_uri()).locator(".changed").count() == 0
    trace = trace_of(model_of(torch.float32), interventions=[HeadOff(kind="cross", layer=0, head=0)])
    (tmp_path / "it.html").write_text(html(trace), encoding="utf-8")
    tab = opened((tmp_path / "it.html").as_uri() + "#lang=en")
    assert tab.locator(".changed").inner_text() == page_text("model.changed", count=1)


def test_a_text_that_looks_like_a_script_is_only_shown(opened, tmp_path):
    hostile = "<script>window.hurt = 1</script><img src=x onerror='window.hurt = 1'>"
    trace = look(model_of(torch.float32), subwords(), hostile, TARGET)
    (tmp_path / "it.html").write_text(html(trace), encoding="utf-8")
    tab = opened((tmp_path / "it.html").as_uri() + "#kind=encoder&lang=en")
    for screen in visit(tab, SCREENS):
        assert tab.evaluate("window.hurt") is None, screen
    shown = "".join(chip.inner_text() for chip in tab.locator("#inputs-0 ~ button, #inputs-0").all())
    assert "<script>" in shown


def test_a_narrow_window_scrolls_down_and_not_sideways(opened, saved):
    tab = opened(saved.as_uri() + "#screen=walk&kind=cross&panel=similarity")
    tab.set_viewport_size({"width": 390, "height": 800})
    for screen in SCREENS:
        drawn(tab, lambda screen=screen: tab.evaluate(f"location.hash = 'screen={screen}&kind=cross'"))
        assert tab.evaluate("document.documentElement.scrollWidth") <= 390
