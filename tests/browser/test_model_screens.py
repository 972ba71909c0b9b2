"""The screens of a server that need no trace: embeddings, training, experiments, API."""

import json
import shutil
import subprocess

import numpy as np
import pytest

from regard.experiments.registry import recorded_results
from regard.serve.http.metrics import Metrics
from regard.serve.models import load_models
from tests.browser.served import SOURCE, at
from tests.browser.tables import numbers_on, saved_csv
from tests.browser.waiting import drawn, until
from tests.serve.running import running

pytestmark = pytest.mark.slow


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
    registry = load_models([run], Metrics(), threads=1)
    with running(registry) as live:
        tab = opened(at(live, screen="training", kind="cross", layer=0, head=2, lang="en"))
        until(tab, "document.querySelector('.controls').textContent.includes(': 300 ')")
        with (run / "journal.jsonl").open("a") as file:
            file.write('{"step": 301, "loss": 0.5, "tokens": 9, "learning_rate": 0.1, "seconds": 99}\n')
        until(tab, "document.querySelector('.controls').textContent.includes(': 301 ')")
        last = tab.locator(".played svg.figure").inner_html()
        drawn(tab, lambda: tab.click("#play"))
        until(tab, "document.querySelector('.slider output').textContent === 'step 0'")
        assert tab.locator(".played svg.figure").inner_html() != last
        until(tab, "document.querySelector('.slider output').textContent === 'step 300'")
    registry.close()


def test_an_experiment_is_chosen_and_told_in_both_languages(opened, server):
    tab = opened(at(server, screen="experiments", lang="en"))
    values = next(each for each in recorded_results() if each["name"] == "values")
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
    values = next(each for each in recorded_results() if each["name"] == "values")
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


def test_requests_can_be_copied_and_sent(opened, server, model):
    hostile = '三月\'; "$(echo hurt)" \\ 五日'
    tab = opened(at(server, screen="api", text=hostile, lang="en"))
    command = tab.locator("pre").first.inner_text()
    told = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True).stdout
    assert json.loads(told)["items"][0]["text"] == model.translate(hostile, n_best=3).text
    program = tab.locator("pre").nth(1).inner_text()
    said = subprocess.run(["python3", "-c", program], capture_output=True, text=True, check=True).stdout
    assert said.strip() == model.translate(hostile, n_best=3).text.strip()


def test_the_list_of_routes_opens(opened, server):
    assert "/api/v1/traces" in opened(f"{server.url}/docs", wait_for="table").locator("table").inner_text()
