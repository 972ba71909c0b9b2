"""The page of a real server, in a real browser: it translates, and shows what the model does."""

import json
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest

import regard
from regard.config import TaskConfig
from regard.experiments.shelf import seen
from regard.look.alignment.alignment import align
from regard.look.alignment.gold import Gold
from regard.look.interventions.interventions import HeadOff, MaskSource, NoPositions, SkipBlock, Uniform
from regard.look.trace.probes import Probe, probe_file, write_probes
from regard.look.trace.trace import Trace
from regard.serve.http.keys import KeyRing, new_key, read_keys
from regard.serve.http.limits import Limits
from regard.serve.http.metrics import Metrics
from regard.serve.served import serve_models
from tests.browser.tables import numbers_on, saved_csv
from tests.browser.waiting import drawn, until
from tests.engine import talking
from tests.serve.running import Gated, gated_catalogue, running

pytestmark = pytest.mark.slow
SCREENS = [
    "translate", "map", "head", "walk", "steps", "beam", "alignment",
    "influence", "off", "compare", "positions", "training", "experiments", "api",
]  # fmt: skip
SOURCE = talking.PAIRS["train"][0][0]
OTHER = talking.PAIRS["train"][1][0]
OFFLINE = "ERR_INTERNET_DISCONNECTED|Failed to fetch"


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """The folder of a run: a model, a journal, and probes."""
    place = tmp_path_factory.mktemp("page")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REGARD_CACHE", str(place / "cache"))
        talking.trained(place / "training", talking.learned(), task=TaskConfig(source="zh", target="en"))
        run = place / "zh-en"
        shutil.copytree(place / "training" / "trained", run / "best")
        shutil.copy(place / "training" / "run" / "journal.jsonl", run)
        model = regard.load(run / "best")
        (run / "probes").mkdir()
        for step, changes in enumerate([(Uniform(kind="cross", layer=0, head=2),), ()]):
            probe = Probe.of_trace(model.look(SOURCE, "the third", interventions=changes))
            write_probes(probe_file(run, 300 * step), [probe])
        yield run


@pytest.fixture(scope="session")
def model(folder):
    return regard.load(folder)


@pytest.fixture(scope="session")
def catalogue(folder):
    found = serve_models([folder], Metrics(), threads=1)
    yield found
    found.close()


@pytest.fixture(scope="session")
def server(catalogue):
    with running(catalogue) as found:
        yield found


def at(server, **state):
    return f"{server.url}/#" + "&".join(f"{name}={quote(str(value))}" for name, value in state.items())


def typed(tab, text):
    """Write a text, and wait until its translation has said where its words come from."""
    tab.fill("#text", text)
    until(tab, "document.querySelector('#output .word') && !document.querySelector('#output[aria-busy]')")


def best(model, text):
    return model.translate(text, n_best=4)


def test_a_text_is_translated_as_it_is_typed(opened, server, model):
    tab = opened(server.url)
    assert tab.locator("#look").is_disabled()
    typed(tab, SOURCE)
    found = best(model, SOURCE)
    assert tab.locator("#output").inner_text() == found.text
    assert tab.locator(".others li span[dir]").all_inner_texts() == [each.text for each in found.alternatives]
    assert quote(SOURCE[0]) in tab.url
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
    assert tab.locator("#file-told").inner_text() == f"三月.txt: {len(lines)} of {len(lines)} lines"
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
    until(tab, "document.querySelectorAll('.thumb').length > 0")
    trace = model.look(SOURCE, beam_size=4)
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
    catalogue = gated_catalogue(folder, model, engine)
    with running(catalogue) as echoing:
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
    catalogue.close()


def test_layers_and_heads_count_from_0_as_they_do_in_python(opened, server):
    tab = opened(at(server, screen="head", text=SOURCE, kind="cross", layer=0, head=2, lang="en"))
    assert tab.locator(".stepper output").all_inner_texts() == ["0 (0–0)", "2 (0–2)"]
    assert "Layer 0, Head 2" in tab.locator("main svg.figure").first.get_attribute("aria-label")


def test_a_trace_that_the_server_has_let_go_of_is_made_again(opened, server):
    tab = opened(at(server, screen="head", text=SOURCE, lang="en"), expected="404")
    kept = server.service.inspector.traces
    for trace in kept:
        kept.drop(trace)
    drawn(tab, lambda: tab.keyboard.press("."))
    assert tab.locator("main .empty").count() == 0
    drawn(tab, lambda: tab.click("#screen-beam"))
    tab.wait_for_selector("svg [data-node]")


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("screen", SCREENS)
def test_every_screen_is_drawn_in_both_languages_and_on_a_phone(opened, server, screen, language):
    more = {"off": "cross.0.1", "effects": 1} if screen in ("off", "compare") else {}
    tab = opened(at(server, screen=screen, lang=language, text=SOURCE, theme="dark", **more))
    until(tab, f"document.querySelector('#screen-{screen}').ariaCurrent === 'page'")
    assert bool(re.search("[\u4e00-\u9fff]", tab.locator("h1").inner_text())) == (language == "zh")
    assert tab.locator("main .empty").count() == 0
    assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(21, 25, 31)"
    tab.set_viewport_size({"width": 390, "height": 800})
    drawn(tab, lambda: tab.click("#language"))
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390


def test_screens_without_a_text_say_what_to_do(opened, server):
    tab = opened(at(server, screen="walk", lang="en"))
    assert "nothing to look at" in tab.locator("main .empty").inner_text()
    drawn(tab, lambda: tab.click("main .empty button"))
    assert tab.locator("#text").is_visible()


def test_a_walk_over_http(opened, server, model):
    tab = opened(at(server, screen="walk", text=SOURCE, kind="cross", layer=0, head=1, query=1, lang="en"))
    walk = model.look(SOURCE, beam_size=4).walk("cross", 0, 1, 1)
    assert tab.locator(".sentence").inner_text() == walk[0].english
    drawn(tab, lambda: tab.keyboard.press("ArrowRight"))
    assert tab.locator(".sentence").inner_text() == walk[1].english


def test_another_candidate_leads_another_way(opened, server, model):
    tab = opened(at(server, screen="steps", text=SOURCE, lang="en"))
    trace = model.look(SOURCE, beam_size=4)
    second = trace.candidates(0)[1]
    drawn(tab, lambda: tab.locator("main svg.figure g[cursor=pointer]").nth(1).click())
    forced = model.look(SOURCE, beam_size=4, prefix=[second.id])
    assert tab.locator("[id^=outputs-]").all_inner_texts() == forced.outputs.texts
    assert second.text in tab.locator(".forced").inner_text()
    drawn(tab, lambda: tab.click("#free"))
    assert tab.locator("[id^=outputs-]").all_inner_texts() == trace.outputs.texts


def test_candidates_and_heads_are_buttons_for_keys_and_for_those_who_hear(opened, server, model):
    tab = opened(at(server, screen="steps", text=SOURCE, lang="en"))
    second = model.look(SOURCE, beam_size=4).candidates(0)[1]
    row = tab.get_by_role("button", name=f"{second.text}: ", exact=False).first
    row.focus()
    drawn(tab, lambda: tab.keyboard.press("Enter"))
    assert second.text in tab.locator(".forced").inner_text()
    assert tab.locator("main svg.figure").get_attribute("role") == "group"
    for screen, figure in (("off", "group"), ("head", "img")):
        drawn(tab, lambda screen=screen: tab.click(f"#screen-{screen}"))
        assert tab.locator("main svg.figure").get_attribute("role") == figure


def test_keys_reach_the_screen_without_every_token_before_it(opened, server):
    tab = opened(at(server, screen="head", text=SOURCE, lang="zh"))
    tab.keyboard.press("Tab")
    assert tab.locator(":focus").inner_text() == "跳到页面内容"
    tab.keyboard.press("Enter")
    assert tab.locator(":focus").get_attribute("id") == "main"
    tab.keyboard.press("Tab")
    assert tab.locator(":focus").get_attribute("id").startswith("choose-")


def test_the_list_of_routes_opens(opened, server):
    assert "/api/v1/traces" in opened(f"{server.url}/docs", wait_for="table").locator("table").inner_text()


def test_a_node_that_was_given_up_can_be_gone_on_from(opened, server, model):
    tree = model.look(SOURCE, beam_size=4).beam
    fallen = next(node for node in tree.nodes if node.fate == "pruned" and node.step == 1)
    tab = opened(at(server, screen="beam", text=SOURCE, node=fallen.id, lang="en"))
    drawn(tab, lambda: tab.click("#force"))
    forced = model.look(SOURCE, beam_size=4, prefix=tree.ids(fallen.id))
    assert tab.locator("[id^=outputs-]").all_inner_texts() == forced.outputs.texts
    assert tab.locator("svg [data-node]").count() == len(forced.beam.nodes)


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
    assert f"error rate {score.error_rate:.3f}" in tab.locator(".gold p").inner_text()
    assert tab.locator("main svg .mark").count() == 2
    tab.fill("#gold", "99-0")
    drawn(tab, lambda: tab.keyboard.press("Enter"))
    assert "“99-0” is no link" in tab.locator(".gold p").inner_text()


def test_influence_by_every_measure_on_the_token_that_is_chosen(opened, server, model):
    tab = opened(at(server, screen="influence", text=SOURCE, lang="en"))
    drawn(tab, lambda: tab.click("#step-1"))
    assert tab.locator("main .scroll svg svg").count() == 2
    drawn(tab, lambda: tab.keyboard.press("t"))
    trace = model.look(SOURCE, beam_size=4)
    found = np.stack(list(model.influences(trace, 1).values.values()), axis=1)
    np.testing.assert_allclose(numbers_on(tab), found[: len(trace.inputs) + 2], atol=2e-3)


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


def test_heads_are_switched_off_and_their_effects_shown(opened, server, model):
    tab = opened(at(server, screen="off", text=SOURCE, lang="en"))
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
    drawn(tab, lambda: tab.click("#effects"))
    drawn(tab, lambda: tab.keyboard.press("t"))
    effects = model.head_effects(model.look(SOURCE, beam_size=4))
    expected = np.concatenate([effects[kind].ravel() for kind in ("encoder", "decoder", "cross")])
    np.testing.assert_allclose(numbers_on(tab)[:, -1], expected, atol=2e-3)


def test_heads_look_evenly_blocks_are_skipped_and_tokens_dropped(opened, server, model):
    tab = opened(at(server, screen="off", text=SOURCE, lang="en"))
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
    forced = model.look(SOURCE, list(intact.wanted[:-1]), interventions=changes)
    change = forced.log_probs.sum() - intact.log_probs.sum()
    told = tab.locator("aside p", has_text="What the intact model says").inner_text().replace("−", "-")
    assert float(re.search(r"-?\d+\.\d+", told)[0]) == pytest.approx(change, abs=2e-3)
    assert (
        tab.locator("[id^='off-encoder.0.'][aria-pressed=true]").count() == model.look(SOURCE).config.n_heads
    )
    assert tab.locator("#drop-0 del").count() == 1
    drawn(tab, lambda: tab.click("#all-on"))
    assert tab.locator("[aria-pressed=true][id^='off-'], #drop-0 del").count() == 0


def test_heads_are_marked_by_what_they_are_worth(opened, server, model):
    tab = opened(at(server, screen="map", by="importance", text=SOURCE, lang="en"))
    effects = model.head_effects(model.look(SOURCE, beam_size=4))
    for kind, found in effects.items():
        shown = float(tab.locator(f"#thumb-{kind}-0-1 .by").inner_text().replace("−", "-"))
        assert shown == pytest.approx(found[0, 1], abs=2e-3)
    assert tab.locator("#choose-alignment").count() == 0  # nobody has measured it


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


def test_tokens_are_shown_among_those_with_embeddings_alike(opened, server, model):
    tab = opened(at(server, screen="positions", text=SOURCE, lang="en"))
    found = model.neighbours(SOURCE, 6)
    assert tab.locator(".lens th").all_inner_texts() == list(found.pieces.values())
    near = [each for of_token in found.nearest.values() for each in of_token]
    told = [each.rpartition(" ") for each in tab.locator(".lens td").all_inner_texts()]
    assert [piece for piece, _, _ in told] == [each.piece for each in near]
    assert [float(each) for _, _, each in told] == pytest.approx([each.cosine for each in near], abs=6e-3)
    circles = tab.locator("main svg.figure circle[r='5']")
    assert circles.count() == len(found.pieces)


def test_a_trace_is_saved_for_python(opened, server, model):
    tab = opened(at(server, screen="head", text=SOURCE, lang="en"))
    with tab.expect_download() as got:
        tab.click("#save-trace")
    assert got.value.suggested_filename == "trace.safetensors"
    trace, expected = Trace.load(got.value.path()), model.look(SOURCE, beam_size=4)
    assert trace.outputs == expected.outputs
    np.testing.assert_allclose(trace.attention("cross", 0, 1), expected.attention("cross", 0, 1), atol=1e-6)


def test_what_is_compared_is_saved_with_both_sides(opened, server, model, tmp_path):
    tab = opened(at(server, screen="compare", text=SOURCE, off="cross.0.1", kind="cross", layer=0, lang="en"))
    _, rows = saved_csv(tab, tmp_path)
    trace = model.look(SOURCE, beam_size=4)
    weights = np.array([float(row[-1]) for row in rows]).reshape(2, len(trace.outputs), len(trace.inputs))
    np.testing.assert_allclose(weights[0], trace.attention("cross", 0, 0), atol=6e-4)
    with tab.expect_download() as got:
        tab.click("#save-svg")
    assert Path(got.value.path()).read_text("utf-8").count("<svg") == 1 + 2
    assert {row[0] for row in rows} == {"Intact model", "Changes: 1"}


def test_positions_are_those_of_the_model(opened, server, model):
    tab = opened(at(server, screen="positions", dims="0,5", table=1, lang="en"))
    positions = model.positions(64)
    shown = numbers_on(tab)
    np.testing.assert_allclose(shown[:, :2], positions[:, [0, 5]], atol=6e-4)
    products = positions @ positions.T
    expected = [np.diagonal(products, i).mean() for i in range(64)]
    np.testing.assert_allclose(shown[:, 2], expected, atol=6e-3)


def test_a_run_is_followed_and_its_attention_played(opened, folder, tmp_path):
    run = shutil.copytree(folder, tmp_path / "live")
    catalogue = serve_models([run], Metrics(), threads=1)
    with running(catalogue) as live:
        tab = opened(at(live, screen="training", kind="cross", layer=0, head=2, lang="en"))
        until(tab, "document.querySelector('.controls').textContent.includes('300 steps')")
        with (run / "journal.jsonl").open("a") as file:
            file.write('{"step": 301, "loss": 0.5, "tokens": 9, "learning_rate": 0.1, "seconds": 99}\n')
        until(tab, "document.querySelector('.controls').textContent.includes('301 steps')")
        last = tab.locator(".played svg.figure").inner_html()
        drawn(tab, lambda: tab.click("#play"))
        until(tab, "document.querySelector('.slider output').textContent === 'step 0'")
        assert tab.locator(".played svg.figure").inner_html() != last
        until(tab, "document.querySelector('.slider output').textContent === 'step 300'")
    catalogue.close()


def test_requests_can_be_copied_and_sent(opened, server, model):
    hostile = '三月\'; "$(echo hurt)" \\ 五日'
    tab = opened(at(server, screen="api", text=hostile, lang="en"))
    command = tab.locator("pre").first.inner_text()
    told = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True).stdout
    assert json.loads(told)["items"][0]["text"] == model.translate(hostile, n_best=3).text
    program = tab.locator("pre").nth(1).inner_text()
    said = subprocess.run(["python3", "-c", program], capture_output=True, text=True, check=True).stdout
    assert said.strip() == model.translate(hostile, n_best=3).text.strip()


@pytest.mark.parametrize(
    "screen", ["map", "head", "walk", "steps", "beam", "influence", "off", "positions", "training"]
)
def test_figures_can_be_saved(opened, server, screen, tmp_path):
    tab = opened(at(server, screen=screen, text=SOURCE, kind="cross"))
    with tab.expect_download() as got:
        tab.click("#save-svg")
    got.value.save_as(tmp_path / "figure.svg")
    assert "<svg" in (tmp_path / "figure.svg").read_text(encoding="utf-8")


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
    assert "无法连接服务器" in tab.locator(".lost").inner_text()
    assert "无法连接服务器" in tab.locator(".empty").inner_text()
    drawn(tab, lambda: tab.click("#screen-translate"))
    tab.context.set_offline(False)
    until(tab, "document.querySelector('.lost').hidden")
    until(tab, f"document.querySelector('#output').textContent === {json.dumps(best(model, OTHER).text)}")


def test_a_busy_server_is_asked_again(opened, folder, model):
    engine = Gated()
    catalogue = gated_catalogue(folder, model, engine)
    with running(catalogue, limits=Limits(waiting=1)) as full, ThreadPoolExecutor() as others:
        other = others.submit(full.post, "/api/v1/translate", text=SOURCE)
        assert engine.began.acquire(timeout=30)
        tab = opened(full.url, expected="503|429")
        tab.fill("#text", OTHER)
        until(tab, "document.querySelector('.status.problem')?.textContent.includes('busy')")
        engine.let_all()
        assert other.result().status_code == 200
        until(tab, f"document.querySelector('#output').textContent === {json.dumps(OTHER)}")  # it echoes
    catalogue.close()


def test_what_is_refused_is_said_and_the_text_stays(opened, catalogue):
    with running(catalogue, limits=Limits(characters=50)) as small:
        tab = opened(small.url, expected="413")
        tab.fill("#text", "三" * 60)
        until(tab, "document.querySelector('.status.problem')?.textContent.includes('50 characters')")
        assert tab.input_value("#text") == "三" * 60


def test_a_text_that_looks_like_a_script_is_only_shown(opened, server):
    hostile = "<script>hurt=1</script>"
    other = "<img src=x onerror=hurt=1>"
    for screen in SCREENS:
        tab = opened(at(server, screen=screen, lang="en", text=hostile, other=other, beside="text"))
        until(tab, f"document.querySelector('#screen-{screen}').ariaCurrent === 'page'")
        assert tab.evaluate("window.hurt") is None
        tab.close()


def test_an_experiment_is_chosen_and_told_in_both_languages(opened, server):
    tab = opened(at(server, screen="experiments", lang="en"))
    values = next(each for each in seen() if each["name"] == "values")
    drawn(tab, lambda: tab.click("#choose-values"))
    until(tab, "document.querySelector('#choose-values').ariaPressed === 'true'")
    for language in ("en", "zh"):
        assert tab.locator(".claim").inner_text() == values["claim"][language]
        told = tab.locator(".verdict li span").all_inner_texts()
        assert told == [each["seen"][language] for each in values["verdict"]]
        captions = tab.locator(".experiment caption").all_inner_texts()
        assert captions == [table["name"][language] for table in values["tables"]]
        drawn(tab, lambda: tab.click("#language"))
    assert tab.locator(".experiment table").count() == len(values["tables"])
    lines = sum(len(chart["lines"]) for chart in values["charts"])
    assert tab.locator(".experiment .figure path:not(.band)").count() == lines


def test_the_numbers_of_an_experiment_are_saved(opened, server, tmp_path):
    tab = opened(at(server, screen="experiments", lang="zh"))
    cells = tab.locator(".experiment td").all_inner_texts()
    _, rows = saved_csv(tab, tmp_path)
    assert [row[-1] for row in rows][: len(cells)] == [cell.replace("−", "-") for cell in cells]
    assert len(rows) > len(cells), "the points of its charts too"


def test_the_seeds_of_an_experiment_fill_a_band_about_their_mean(opened, server):
    tab = opened(at(server, screen="experiments", experiment="values", lang="en"))
    values = next(each for each in seen() if each["name"] == "values")
    several = [line for chart in values["charts"] for line in chart["lines"] if spread_out(line)]
    bands = tab.locator(".experiment .figure path.band").all()
    assert len(bands) == len(several) > 0
    for line, band in zip(several, bands, strict=True):
        corners = [tuple(map(float, each.split())) for each in band.get_attribute("d")[1:-1].split("L")]
        n = len(line["x"])
        highs, lows = corners[:n], corners[: n - 1 : -1]
        colour = band.get_attribute("fill")
        dots = tab.locator(f".experiment .figure circle[fill='{colour}']").all()[:n]
        for high, low, dot in zip(highs, lows, dots, strict=True):
            x, y = (float(dot.get_attribute(name)) for name in ("cx", "cy"))
            assert high[0] == low[0] == pytest.approx(x, abs=0.06)
            assert high[1] - 0.06 <= y <= low[1] + 0.06  # pixels are counted downwards


def spread_out(line):
    return any(value["low"] != value["high"] for value in line["y"])


def test_a_key_is_asked_for_and_kept(opened, catalogue, tmp_path):
    secret = new_key(tmp_path / "keys", "reader")
    with running(catalogue, keys=KeyRing(read_keys(tmp_path / "keys"))) as closed:
        tab = opened(closed.url, wait_for="input[name=key]", expected="401")
        tab.fill("input[name=key]", secret)
        tab.click("button[type=submit]")
        tab.wait_for_selector("#text")
        typed(tab, SOURCE)
        drawn(tab, lambda: tab.click("#look"))
        tab.wait_for_selector(".thumb")
