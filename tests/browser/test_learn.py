"""Learn: the tour, exercises and their score, the glossary, and a model that is trained while one watches."""

import json
import math
import re

import pytest

from regard import bundled
from tests.browser.served import SOURCE, at, page_text
from tests.browser.waiting import drawn, until
from tests.serve.running import serving

pytestmark = pytest.mark.slow


def solved(tab):
    return tab.locator("#score").inner_text()


def verdict(tab, press):
    """What the panel says after a press."""
    press()
    passing = ["", page_text("practice.checking"), page_text("loading")]
    until(tab, f"!{json.dumps(passing)}.includes(document.querySelector('#coach-verdict').textContent)")
    return tab.locator("#coach-verdict").inner_text()


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_tour_has_eight_steps_and_ends_at_the_exercises(opened, server, language):
    tab = opened(at(server, screen="learn", text=SOURCE, lang=language))
    drawn(tab, lambda: tab.click("#tour-start"))
    seen = []
    for place in range(1, 9):
        assert f"{place} / 8" in tab.locator(".coach h2").inner_text()
        seen.append(tab.locator(".rail [aria-current]").get_attribute("id"))
        assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
        drawn(tab, lambda: tab.click("#coach-next"))
    assert len({*seen}) >= 6
    assert tab.locator("h1").inner_text() == page_text("learn", language)
    assert tab.locator(".coach").is_hidden()


def test_the_tour_can_be_followed_by_keyboard_and_left(opened, server):
    tab = opened(at(server, screen="learn", text=SOURCE))
    tab.focus("#tour-start")
    drawn(tab, lambda: tab.keyboard.press("Enter"))
    assert tab.evaluate("document.activeElement.id") in ("text", "coach-next"), "not lost"
    tab.focus("#coach-next")
    drawn(tab, lambda: tab.keyboard.press("Enter"))
    until(tab, "document.activeElement.id === 'coach-next'")
    tab.reload()
    tab.wait_for_selector("body[data-drawn]")
    assert "2 / 8" in tab.locator(".coach h2").inner_text(), "the step is part of the address"
    drawn(tab, lambda: tab.click("#coach-close"))
    assert tab.locator(".coach").is_hidden()
    assert "tour" not in tab.url


def numbers(text):
    return [float(each) for each in re.findall(r"-?[\d.]+(?:e-?\d+)?", text)]


def test_a_number_of_the_walkthrough_counts(opened, server):
    tab = opened(at(server, screen="learn", text=SOURCE))
    assert solved(tab) == page_text("score.count", count=0, all=12)
    drawn(tab, lambda: tab.click("#practice-walk-similarity"))
    given = tab.locator(".comparison details div").all_text_contents()
    q, k = (numbers(line.partition("[")[2]) for line in given)
    answer = sum(one * other for one, other in zip(q, k, strict=True))
    tab.fill(".comparison input[type=text], .comparison form input, form.comparison input", f"{answer:.4f}")
    drawn(tab, lambda: tab.click("#check"))
    assert tab.locator(".coach .right").inner_text() == f"✓ {page_text('practice.walk-similarity.why')}"
    drawn(tab, lambda: tab.click("#coach-all"))
    assert solved(tab) == page_text("score.count", count=1, all=12)
    assert "done" in tab.locator("#practice-walk-similarity").get_attribute("class")


def test_numbers_are_checked_below_the_screen(opened, server):
    tab = opened(at(server, screen="learn", text=SOURCE))
    drawn(tab, lambda: tab.click("#practice-uniform"))
    keys = tab.locator("#inputs-0").locator("..").locator(".chip").count()
    for answer, said in (
        ("0.5", "walk.hand.small"),
        ("many", "walk.hand.number"),
        (f"{math.log2(keys):.3f}", "practice.right"),
    ):
        tab.fill("#coach-answer", answer)
        assert verdict(tab, lambda: tab.click("#coach-check")) == page_text(said)
        if said != "practice.right":
            tab.evaluate("document.querySelector('#coach-verdict').textContent = ''")


def test_a_head_has_to_be_found(opened, server):
    layer, head = aligner(server)
    tab = opened(at(server, screen="head", text=SOURCE, exercise="aligner", kind="encoder", layer=0, head=0))
    assert verdict(tab, lambda: tab.click("#coach-check")) == page_text("practice.not-yet")
    place = at(server, screen="head", text=SOURCE, exercise="aligner", kind="cross", layer=layer, head=head)
    drawn(tab, lambda: tab.evaluate("address => { location.hash = address }", place.partition("#")[2]))
    tab.click("#coach-check")
    until(tab, "document.querySelector('.coach .right')")


def aligner(server):
    """A head by which the server aligns this text."""
    made = server.post("/api/v1/traces", source=SOURCE).json()
    return server.get(f"/api/v1/traces/{made['trace_id']}/alignment").json()["heads"][0]


def test_the_bundled_model_loses_a_date_without_one_head(opened):
    with serving([bundled.folder()], threads=1) as server:
        tab = opened(at(server, screen="learn"))
        drawn(tab, lambda: tab.click("#practice-off"))
        until(tab, "document.querySelector('.coach') && !document.querySelector('main[aria-busy]')")
        assert verdict(tab, lambda: tab.click("#coach-check")) == page_text("practice.off.none")
        place = tab.url + "&off=cross.0.1"
        drawn(tab, lambda: tab.evaluate("address => { location.hash = address }", place.partition("#")[2]))
        tab.click("#coach-check")
        until(tab, "document.querySelector('.coach .right')")


def test_the_score_is_kept_saved_and_loaded(opened, server, tmp_path):
    tab = opened(at(server, screen="learn", text=SOURCE))
    tab.evaluate("localStorage.setItem('regard-score', 'off,uniform')")
    tab.reload()
    tab.wait_for_selector("body[data-drawn]")
    assert solved(tab) == page_text("score.count", count=2, all=12)
    with tab.expect_download() as download:
        tab.click("#score-save")
    saved = tmp_path / download.value.suggested_filename
    download.value.save_as(saved)
    assert json.loads(saved.read_text())["solved"] == ["off", "uniform"]
    drawn(tab, lambda: tab.click("#score-forget"))
    assert solved(tab) == page_text("score.count", count=0, all=12)
    drawn(tab, lambda: tab.set_input_files("#score-file", saved))
    assert solved(tab) == page_text("score.count", count=2, all=12)
    wrong = tmp_path / "wrong.json"
    wrong.write_text("{}")
    drawn(tab, lambda: tab.set_input_files("#score-file", wrong))
    assert page_text("score.wrong", file="regard-score.json") in tab.locator("main").inner_text()


@pytest.mark.parametrize(
    ("language", "word", "meaning"), [("en", "query", "projections"), ("zh", "查询", "投影")]
)
def test_terms_show_their_entry_on_hover_and_focus(opened, server, language, word, meaning):
    tab = opened(at(server, screen="head", text=SOURCE, lang=language))
    term = tab.locator(".note .term", has_text=word).first
    term.hover()
    entry = tab.locator("#entry")
    assert meaning in entry.inner_text()
    box = entry.bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 1280
    tab.keyboard.press("Escape")
    assert entry.is_hidden()
    term.focus()
    assert entry.is_visible()
    assert meaning in term.get_attribute("aria-description")
    tab.mouse.move(0, 0)
    tab.keyboard.press("Tab")
    assert meaning not in entry.inner_text() or entry.is_hidden()
    ids = tab.locator(".term").evaluate_all("all => all.map(({ id }) => id)")
    assert len(ids) == len({*ids})


def test_no_text_of_a_user_is_explained(opened, server):
    tab = opened(at(server, screen="translate", text="attention heads"))
    assert tab.locator("[dir] .term, button .term, svg .term").count() == 0


def test_a_model_learns_while_one_watches(opened, server):
    tab = opened(at(server, screen="learn", text=SOURCE))
    tab.click("#train-start")
    until(tab, "document.querySelector('.learn .training .played svg')", seconds=100)
    assert tab.locator("#train-stop").is_enabled()
    assert tab.locator(".learn .samples li").count() >= 1
    drawn(tab, lambda: tab.click("#train-stop"))
    until(tab, "document.querySelector('#train-start')")
    assert re.search(r"stopped after \d+ s, at step \d+", tab.locator(".training .under").first.inner_text())
    assert tab.locator(".learn .training .played svg").count() == 1, "what it has learned stays"


def test_a_saved_page_has_the_tour_and_the_exercises_that_need_no_server(opened, model, tmp_path):
    page = tmp_path / "page.html"
    model.look(SOURCE).save(page)
    tab = opened(page.as_uri() + "#screen=learn")
    assert tab.locator("#train-start").count() == 0
    disabled = tab.locator(".lessons button:disabled").evaluate_all("all => all.map(({ id }) => id)")
    assert disabled == ["practice-off", "practice-fork"]
    drawn(tab, lambda: tab.click("#practice-doubt"))
    assert verdict(tab, lambda: tab.click("#coach-check")) in (
        page_text("practice.not-yet"),
        page_text("practice.right"),
    )
    drawn(tab, lambda: tab.click("#coach-all"))
    drawn(tab, lambda: tab.click("#tour-start"))
    for _ in range(8):
        drawn(tab, lambda: tab.click("#coach-next"))
    assert tab.locator("h1").inner_text() == page_text("learn")
