"""The Translate screen of a server, and what it does when the server refuses or goes away."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest

from regard.serve.http.keys import KeyRing, new_key, read_keys
from regard.serve.http.limits import Limits
from tests.browser.served import OTHER, SOURCE, at, best, page_text, typed
from tests.browser.tables import numbers_on
from tests.browser.waiting import drawn, until
from tests.serve.running import Gated, gated_registry, running

pytestmark = pytest.mark.slow
OFFLINE = "ERR_INTERNET_DISCONNECTED|Failed to fetch"


def test_a_text_is_translated_as_it_is_typed(opened, server, model):
    tab = opened(server.url)
    typed(tab, SOURCE)
    found = best(model, SOURCE)
    assert tab.locator("#output").inner_text() == found.text
    assert tab.locator(".others li span[dir]").all_inner_texts() == [each.text for each in found.alternatives]
    until(tab, f"location.href.includes({json.dumps(quote(SOURCE[0]))})")
    typed(tab, OTHER)
    until(tab, f"document.querySelector('#output').textContent === {json.dumps(best(model, OTHER).text)}")
    tab.fill("#text", "")
    until(tab, "document.querySelector('#look').disabled")


DROP = """text => {
  const carried = new DataTransfer();
  carried.items.add(new File([text], "三月.txt", { type: "text/plain" }));
  const drop = new DragEvent("drop", { dataTransfer: carried, bubbles: true });
  document.querySelector("#text").dispatchEvent(drop);
}"""


def test_a_file_that_is_dropped_is_translated_line_by_line(opened, server, model, tmp_path):
    lines = [SOURCE, "", *[f"三月{day}日" for day in "一二三四五六七八九"], *["十月"] * 9, "12"]
    tab = opened(at(server, lang="en"))
    assert tab.locator("#save-file").is_hidden()
    tab.evaluate(DROP, "\r\n".join(lines) + "\r\n")
    until(tab, "!document.querySelector('#save-file').hidden")
    assert tab.locator("#file-status").inner_text() == page_text(
        "file.far", name="三月.txt", done=len(lines), of=len(lines)
    )
    with tab.expect_download() as got:
        tab.click("#save-file")
    assert got.value.suggested_filename == "三月_translated.txt"
    got.value.save_as(tmp_path / "found.txt")
    found = (tmp_path / "found.txt").read_text("utf-8").split("\n")
    assert found == [model.translate(line).text if line else "" for line in lines] + [""]


def test_a_file_of_an_older_encoding_can_be_chosen(opened, server, model):
    tab = opened(at(server, lang="zh"))
    content = {"name": "a.txt", "mimeType": "text/plain", "buffer": SOURCE.encode("gb18030")}
    tab.set_input_files("#file", content)
    until(tab, "!document.querySelector('#save-file').hidden")
    with tab.expect_download() as got:
        tab.click("#save-file")
    assert Path(got.value.path()).read_text("utf-8") == f"{model.translate(SOURCE).text}\n"


def test_pointing_at_a_word_lights_up_where_it_comes_from(opened, server, model):
    tab = opened(server.url)
    typed(tab, SOURCE)
    links = model.translate(SOURCE, n_best=4, alignment=True).alignment
    for i, link in enumerate(links):
        word = tab.locator("#output .word").nth(i)
        word.hover()
        assert word.inner_text() == link.target
        assert tab.locator(".mirror mark").inner_text() == link.source
        assert f"{link.target} ← {link.source}" in tab.locator(".tip").inner_text()
    tab.focus("#output")
    tab.keyboard.press("ArrowRight")
    assert links[0].target in tab.locator(".status").inner_text()


def test_what_the_model_was_not_sure_of_is_dotted(opened, server, model):
    tab = opened(server.url)
    doubtful = "零点零" * 4  # nothing that it has learned
    typed(tab, doubtful)
    until(tab, "document.querySelector('.doubtful')")
    scores = model.translate(doubtful, n_best=4, token_scores=True).token_scores
    assert min(scores[:-1]) < np.log(0.5)


def test_looking_inside_shows_the_trace_and_the_address_brings_it_back(opened, server, model):
    tab = opened(server.url)
    typed(tab, SOURCE)
    drawn(tab, lambda: tab.click("#look"))
    until(tab, "document.querySelector('#screen-model').ariaCurrent === 'page'")
    drawn(tab, lambda: tab.click("#screen-map"))
    trace = model.look(SOURCE, model.translate(SOURCE, beam_size=4).text)
    assert tab.locator("[id^=outputs-]").all_inner_texts() == trace.outputs.texts
    tab.click("#thumb-cross-0-2")
    until(tab, "document.querySelector('#screen-head').ariaCurrent === 'page'")
    drawn(tab, lambda: tab.keyboard.press("t"))
    np.testing.assert_allclose(numbers_on(tab), trace.attention("cross", 0, 2), atol=6e-4)
    address, text = tab.url, tab.locator("main").inner_text()
    again = opened(address)
    until(again, "document.querySelector('.table')")
    assert again.locator("main").inner_text() == text


def test_whoever_comes_from_a_translation_looks_at_that_one(opened, folder, model):
    """By whatever click; here the engine echoes, and so finds another than the search that is looked at."""
    engine = Gated()
    engine.let_all()
    registry = gated_registry(folder, model, engine)
    with running(registry) as echoing:
        tab = opened(at(echoing, lang="en"))
        tab.fill("#text", SOURCE)
        until(tab, f"document.querySelector('#output').textContent === {json.dumps(SOURCE)}")
        shown, found = tab.locator("[id^=outputs-]"), model.look(SOURCE, beam_size=4).outputs.texts
        drawn(tab, lambda: tab.click("#screen-beam"))
        assert shown.all_inner_texts() == found  # a tree is that of a search
        assert tab.locator("svg [data-node]").count() > 0
        drawn(tab, lambda: tab.click("#screen-steps"))
        assert shown.all_inner_texts() == model.look(SOURCE, SOURCE).outputs.texts
        drawn(tab, lambda: tab.click("#screen-beam"))
        assert shown.all_inner_texts() == found
        drawn(tab, lambda: tab.click("#screen-steps"))
        drawn(tab, lambda: tab.click("#free"))
        assert shown.all_inner_texts() == found
        drawn(tab, lambda: tab.click("#screen-map"))
        assert shown.all_inner_texts() == found  # as the reader chose
    registry.close()


def test_a_server_that_goes_away_is_waited_for(opened, server, model):
    tab = opened(server.url, expected=OFFLINE)
    typed(tab, SOURCE)
    tab.context.set_offline(True)
    tab.fill("#text", OTHER)
    until(tab, "!document.querySelector('.lost').hidden")
    assert tab.locator(".lost").inner_text()
    assert tab.input_value("#text") == OTHER
    assert tab.locator("#copy").is_disabled()  # what stood there translates another text
    drawn(tab, lambda: tab.click("#screen-map"))
    drawn(tab, lambda: tab.click("#language"))
    assert page_text("lost", "zh") == tab.locator(".lost").inner_text()
    assert page_text("lost", "zh") in tab.locator(".empty").inner_text()
    drawn(tab, lambda: tab.click("#screen-translate"))
    tab.context.set_offline(False)
    until(tab, "document.querySelector('.lost').hidden")
    until(tab, f"document.querySelector('#output').textContent === {json.dumps(best(model, OTHER).text)}")


def test_a_busy_server_is_asked_again(opened, folder, model):
    engine = Gated()
    registry = gated_registry(folder, model, engine)
    with running(registry, limits=Limits(waiting=1)) as full, ThreadPoolExecutor() as others:
        other = others.submit(full.post, "/api/v1/translate", text=SOURCE)
        assert engine.began.acquire(timeout=30)
        tab = opened(full.url, expected="503|429")
        tab.fill("#text", OTHER)
        until(tab, "document.querySelector('.status.problem')?.textContent.includes('busy')")
        engine.let_all()
        assert other.result().status_code == 200
        until(tab, f"document.querySelector('#output').textContent === {json.dumps(OTHER)}")  # it echoes
    registry.close()


def test_what_is_refused_is_said_and_the_text_stays(opened, registry):
    with running(registry, limits=Limits(characters=50)) as small:
        tab = opened(small.url, expected="413")
        tab.fill("#text", "三" * 60)
        until(tab, "document.querySelector('.status.problem')?.textContent.includes('50 characters')")
        assert tab.input_value("#text") == "三" * 60


def test_a_key_is_asked_for_and_kept(opened, registry, tmp_path):
    secret = new_key(tmp_path / "keys", "reader")
    with running(registry, keys=KeyRing(read_keys(tmp_path / "keys"))) as closed:
        tab = opened(closed.url, wait_for="input[name=key]", expected="401")
        tab.fill("input[name=key]", secret)
        tab.click("button[type=submit]")
        tab.wait_for_selector("#text")
        typed(tab, SOURCE)
        drawn(tab, lambda: tab.click("#look"))
        tab.wait_for_selector(".figure-one image")


def with_fields(tab, **fields):
    """The server's translations, with fields that it gives other texts."""

    def answer(route):
        response = route.fetch()
        forced = "source" in route.request.post_data_json
        items = [{**item, **({} if forced else fields)} for item in response.json()["items"]]
        route.fulfill(response=response, json={"items": items})

    tab.route("**/api/v1/translate", answer)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_numbers_that_changed_are_marked_and_told(opened, server, model, language):
    tab = opened(at(server, screen="translate", lang=language))
    text = model.translate(SOURCE).text
    kept = {"source": SOURCE[:2], "source_start": 0, "source_end": 2, "source_value": "1,400,000,000"}
    other = {"target": text[:3], "target_start": 0, "target_end": 3, "target_value": "14,000,000,000"}
    lost = {"target": "", "target_start": None, "target_end": None, "target_value": ""}
    with_fields(tab, numbers=[{**kept, **other}, {**kept, **lost}])
    typed(tab, SOURCE)
    until(tab, "document.querySelectorAll('.notice li').length === 2")
    told = tab.locator(".notice li").all_inner_texts()
    assert told == [
        page_text("translate.number.changed", language, **kept, **other),
        page_text("translate.number.lost", language, **kept),
    ]
    assert tab.locator(".mirror mark.changed").all_inner_texts() == [SOURCE[:2]]
    assert tab.locator("#output mark.changed").count() >= 1
    assert tab.locator(".notices").get_attribute("role") == "status"
    tab.unroute_all(behavior="wait")
    typed(tab, OTHER)
    until(tab, "!document.querySelector('.notice, mark.changed')")


def test_a_text_in_another_language_is_translated_only_when_forced(opened, server):
    tab = opened(at(server, screen="translate", lang="en"))
    with_fields(tab, unexpected_language="fr")
    typed(tab, SOURCE)
    assert page_text("translate.unexpected", name="French") in tab.locator(".notice").inner_text()
    sent = []
    tab.on(
        "request", lambda request: sent.append(request.post_data_json) if "translate" in request.url else None
    )
    tab.locator(".notice button").first.click()
    until(tab, "!document.querySelector('.notice')")
    assert sent[0]["source"]
    tab.unroute_all(behavior="wait")
