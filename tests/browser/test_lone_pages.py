"""The first screens of a generator and a classifier, in a real browser: they show what the models say."""

import json
import re
import shutil

import pytest

import regard
from regard.look.interventions.interventions import HeadOff
from regard.serve.http.metrics import Metrics
from regard.serve.models import load_models
from tests.browser.served import at, page_text
from tests.browser.waiting import drawn, until
from tests.serve.running import running, serving
from tests.serve.single_stack_models import save_single_stack_models

pytestmark = pytest.mark.slow
TEXT = "the cat sat"


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return save_single_stack_models(tmp_path_factory.mktemp("lone"), ["1", "0"])


@pytest.fixture(scope="module")
def server(folders):
    with serving([folders / "writer", folders / "labeller"]) as found:
        yield found


def shares(tab, within):
    return tab.evaluate(
        "within => [...document.querySelectorAll(`${within} .shares li`)].map(each =>"
        " [each.querySelector('.share-name').textContent, each.querySelector('.number').textContent])",
        within,
    )


def test_labels_as_one_types_and_the_tokens_that_made_them(opened, server, folders):
    tab = opened(at(server, model="labeller", lang="en"))
    until(tab, "document.querySelector('#look:not([disabled])')")  # an example
    tab.fill("#text", "")
    until(tab, "document.querySelector('#look').disabled")
    tab.fill("#text", TEXT)
    until(tab, "document.querySelectorAll('.why .read').length")
    model = regard.load(folders / "labeller")
    found = model.classify(TEXT)
    assert [name for name, _ in shares(tab, "#output")] == list(found.probabilities)
    assert shares(tab, "#output")[0][1] == f"{found.probability:.0%}"
    trace = model.look(TEXT)
    tokens = tab.locator(".why .read")
    assert tokens.all_inner_texts() == trace.inputs.texts
    for value, told in zip(
        model.influence(trace), tokens.evaluate_all("all => all.map(e => e.title)"), strict=True
    ):
        assert float(told.rpartition(" · ")[2].replace("−", "-")) == pytest.approx(value, abs=6e-4)
    assert found.label in tab.locator(".why h2").inner_text()
    other = next(label for label in model.labels if label != found.label)
    tab.click(f"#output button >> text={other}")
    until(tab, f"document.querySelector('.why h2').textContent.includes('{other}')")
    value = model.influence(model.look(TEXT, other))[0]
    told = tokens.first.get_attribute("title").rpartition(" · ")[2].replace("−", "-")
    assert float(told) == pytest.approx(value, abs=6e-4)
    drawn(tab, lambda: tab.click("#screen-steps"))
    assert other in tab.locator(".why h2").inner_text()
    drawn(tab, lambda: tab.click("#screen-classify"))
    tab.fill("#text", "")
    until(tab, "document.querySelector('.why').hidden && document.querySelector('#look').disabled")
    assert not tab.locator(".why").is_visible()


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_tokens_that_made_a_label_beside_it_at_a_server_and_in_a_file(
    opened, server, folders, tmp_path, language
):
    model = regard.load(folders / "labeller")
    trace = model.with_influence(model.look(TEXT))
    trace.save(tmp_path / "label.html")
    for address in (at(server, model="labeller", text=TEXT), (tmp_path / "label.html").as_uri() + "#"):
        tab = opened(f"{address}&screen=steps&lang={language}")
        tokens = tab.locator(".why .read")
        assert tokens.all_inner_texts() == trace.inputs.texts
        told = tokens.evaluate_all("all => all.map(each => each.title)")
        values = [float(each.rpartition(" · ")[2].replace("−", "-")) for each in told]
        assert values == pytest.approx(trace.influence.tolist(), abs=6e-4)


def test_a_text_goes_on_as_it_is_drawn_and_can_be_kept(opened, server, folders):
    state = {"model": "writer", "heat": 0.7, "most": 9, "lang": "en"}
    tab = opened(at(server, **state, text=TEXT))
    writer = regard.load(folders / "writer")
    asked = {"max_tokens": 9, "temperature": 0.7, "past_length": "slide"}
    for seed in (1, 2):  # each time another way
        tab.click("#go")
        text = writer.generate(TEXT, seed=seed, **asked).text
        until(tab, f"document.querySelector('#output .added')?.textContent === {json.dumps(text)}")
        until(tab, "!document.querySelector('#keep').disabled")
    tab.click("#keep")
    assert tab.input_value("#text") == TEXT + text


def test_a_text_ends_where_one_says(opened, server, folders):
    whole = regard.load(folders / "writer").generate(TEXT, max_tokens=9, temperature=0).text
    stop = whole[3:5]
    tab = opened(at(server, model="writer", heat=0, most=9, lang="en", text=TEXT))
    tab.fill("#until", stop)
    drawn(tab, lambda: tab.press("#until", "Enter"))
    tab.click("#go")
    expected = whole[: whole.index(stop)]
    until(tab, f"document.querySelector('#output .added')?.textContent === {json.dumps(expected)}")


def test_a_generators_text_is_not_called_outputs(opened, server):
    tab = opened(at(server, screen="head", model="writer", lang="en", text=TEXT))
    assert tab.locator(".strip-name").all_inner_texts() == [page_text("text")]
    assert page_text("strip.beginning") in tab.locator("#outputs-0").get_attribute("aria-label")
    drawn(tab, lambda: tab.click("#screen-map"))
    assert page_text("kind.decoder.note.alone") in tab.locator("main").inner_text()


def test_what_is_cut_away_is_shown_while_one_slides_and_never_written(opened, server, folders):
    state = {"model": "writer", "heat": 1.5, "top_k": 6, "min_p": 0.01, "most": 9, "lang": "en"}
    tab = opened(at(server, **state, text=TEXT))
    until(tab, "document.querySelectorAll('.coming .shares li').length")
    writer = regard.load(folders / "writer")
    scaled = writer.generator.log_probs_after(TEXT).div(1.5).softmax(0).sort(descending=True).values
    rows = tab.locator(".coming .shares li")
    assert tab.locator(".coming .cut").count() == rows.count() - 6
    assert [told for _, told in shares(tab, ".coming")] == [spoken(share) for share in scaled[: rows.count()]]
    left = scaled[:6] / scaled[:6].sum()
    then = [f"→ {spoken(share)}" for share in left] + ["✕"] * (rows.count() - 6)
    assert tab.locator(".coming .then").all_inner_texts() == then
    tab.locator("#top_p").fill("0.5")
    n = int((left.cumsum(0) - left < 0.5).sum())
    assert tab.locator(".coming .cut").count() == rows.count() - n
    assert re.findall(r"\d+", tab.locator("#left").inner_text())[:2] == [str(n), str(len(scaled))]
    assert "top_p=0.5" in tab.url
    tab.click("#go")
    asked = {"max_tokens": 9, "temperature": 1.5, "top_k": 6, "top_p": 0.5, "min_p": 0.01}
    text = writer.generate(TEXT, seed=1, past_length="slide", **asked).text
    until(tab, f"document.querySelector('#output .added')?.textContent === {json.dumps(text)}")


def spoken(share):
    """As the page writes a share."""
    return "<0.1%" if share < 0.0005 else f"{share:.1%}" if share < 0.0995 else f"{share:.0%}"


def test_what_might_come_next_can_be_added(opened, server, folders):
    tab = opened(at(server, model="writer", lang="en", text=TEXT))
    until(tab, "document.querySelectorAll('.coming .shares li').length")
    trace = regard.load(folders / "writer").look(TEXT)
    expected = trace.candidates(len(trace.outputs) - 1)
    spaced = [each.piece.replace("▁", "␣", 1) if each.piece[0] == "▁" else each.text for each in expected]
    assert [name for name, _ in shares(tab, ".coming")] == spaced
    spelt = next(each for each in expected if not each.piece.startswith("<"))
    tab.click(f".coming button >> text={spelt.text} >> nth=0")
    assert tab.input_value("#text") == TEXT + spelt.piece.replace("▁", " ")
    tab.fill("#text", "")
    until(tab, "!document.querySelector('.coming').offsetHeight")


def test_labels_of_one_text_do_not_stay_beside_another_that_gets_none(opened, server):
    tab = opened(at(server, model="labeller", lang="en"), expected="413")
    tab.fill("#text", TEXT)
    until(tab, "document.querySelectorAll('.why .read').length")
    tab.fill("#text", "a" * 100_001)
    too_large = page_text("refused.too_large", message="")[:-3]
    until(tab, f"document.querySelector('.status.problem')?.textContent.startsWith({json.dumps(too_large)})")
    assert shares(tab, "#output") == []
    assert tab.locator("#look").is_disabled()
    assert tab.locator(".why").is_hidden()


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("model", ["writer", "labeller"])
def test_their_screens_are_those_that_they_have(opened, server, model, language):
    tab = opened(at(server, model=model, lang=language, text=TEXT))
    first = {"writer": "generate", "labeller": "classify"}[model]
    ids = tab.locator(".rail button").evaluate_all("all => all.map(each => each.id.replace('screen-', ''))")
    looking = ["model", "follow", "map", "head", "walk", "steps", "influence", "compare", "positions"]
    assert ids == [first, *looking, "training", "experiments", "learn", "api"]
    for screen in ids:
        drawn(
            tab,
            lambda screen=screen: tab.click(f"#screen-{screen}") if screen != first else tab.click("#theme"),
        )
        assert tab.locator("main .empty").count() == 0, screen
        told = tab.locator(".head").inner_text()
        assert not re.search(
            "LibreTranslate" if model == "writer" else "LibreTranslate|OpenAI|生成|Step", told
        )
    tab.set_viewport_size({"width": 390, "height": 800})
    drawn(tab, lambda: tab.click(f"#screen-{first}"))
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390


def test_another_model_can_be_chosen(opened, server):
    tab = opened(at(server, model="writer", lang="en", text=TEXT))
    drawn(tab, lambda: tab.select_option("#way", label="labeller"))
    until(tab, "document.querySelector('#screen-classify').ariaCurrent === 'page'")
    until(tab, "document.querySelector('#output .shares')")
    assert tab.input_value("#text") == TEXT


def test_a_label_without_some_heads_beside_the_intact_one(opened, server, folders):
    model, off = regard.load(folders / "labeller"), HeadOff(kind="encoder", layer=0, head=1)
    tab = opened(at(server, model="labeller", lang="en", text=TEXT, screen="map", op="off"))
    until(tab, "document.querySelector('.dock .shares')")
    found = model.classify(TEXT)
    assert [name for name, _ in shares(tab, ".dock")] == list(found.probabilities)
    tab.click("#thumb-encoder-0-1")
    until(tab, "document.querySelector('.dock .was')")
    without = model.look(TEXT, found.label, interventions=[off])
    change = float(without.log_probs[0] - model.look(TEXT).log_probs[0])
    assert f"{change:.2f}".replace("-", "−") in tab.locator(".dock").inner_text()
    assert tab.locator("[data-op=off]").count() == 1
    drawn(tab, lambda: tab.click("#beside"))
    assert found.label in tab.locator(".compare").inner_text()
    assert tab.locator(".apart").count() == 3


def test_more_runs_than_a_browser_has_connections(opened, folders, tmp_path):
    entry = {"step": 9, "loss": 0.5, "tokens": 9, "learning_rate": 0.1, "seconds": 9}
    valid = {"step": 9, "valid_loss": 0.5, "valid_macro_f1": 0.5}
    runs = [tmp_path / f"run-{i}" for i in range(7)]
    for run in (*runs, tmp_path / "other"):
        shutil.copytree(folders / ("writer" if run.name == "other" else "labeller"), run / "best")
        (run / "journal.jsonl").write_text(f"{json.dumps(entry)}\n{json.dumps(valid)}\n")
    registry = load_models([*runs, tmp_path / "other"], Metrics())
    with running(registry) as live:
        tab = opened(at(live, screen="training", lang="en"))
        controls = tab.locator(".controls").first.inner_text()
        assert page_text("training.so-far", run="run-0", step=9) in controls
        assert page_text("training.f1") in controls
        legend = tab.locator(".training svg").first.text_content()
        assert ("run-6" in legend, "other" in legend) == (True, False)  # which does something else
        drawn(tab, lambda: tab.evaluate("location.hash += '&model=run-6'"))
        until(tab, "document.querySelector('.controls').textContent.includes('run-6')")
    registry.close()


def test_how_a_text_goes_on_without_some_heads(opened, server, folders):
    tab = opened(at(server, model="writer", lang="en", text=TEXT, screen="map", off="decoder.0.0"))
    intact = regard.load(folders / "writer").generate(TEXT, max_tokens=24, temperature=0).text
    until(tab, "document.querySelector('.dock .was')")
    assert tab.locator(".dock .was [dir]").inner_text() == intact.strip()
    written = tab.locator(".dock .rewritten").evaluate("each => each.textContent")
    assert written.startswith(TEXT)
    drawn(tab, lambda: tab.click("#beside"))
    assert tab.locator(".compare svg").count() == 2
