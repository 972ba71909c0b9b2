"""The page of a real server, in a real browser: it shows what the model does."""

import numpy as np
import pytest
import torch

from regard.bundle import save_bundle
from regard.serve.keys import KeyRing, new_key, read_keys
from regard.serve.metrics import Metrics
from regard.serve.served import serve_models
from tests.browser.tables import numbers_on
from tests.look.traced import SOURCE, TARGET, model_of, subwords, trace_of
from tests.serve.running import running

pytestmark = pytest.mark.slow


@pytest.fixture(scope="session")
def catalogue(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served") / "small"
    save_bundle(folder, model_of(torch.float32), subwords=subwords().model)
    found = serve_models([folder], Metrics(), engine="torch", threads=1)
    yield found
    found.close()


def look_at(tab, source, target=""):
    tab.fill("textarea[name=source]", source)
    tab.fill("textarea[name=target]", target)
    tab.click("button[type=submit]")
    tab.wait_for_selector("body[data-drawn]")


def test_a_text_is_traced_and_shown(opened, catalogue):
    trace = trace_of(model_of(torch.float32))
    with running(catalogue) as server:
        tab = opened(server.url, wait_for="form")
        look_at(tab, SOURCE, TARGET)
        assert [chip.inner_text() for chip in tab.locator("[id^=outputs-]").all()] == trace.outputs.texts
        for screen in ("map", "head", "walk", "steps", "alignment"):
            tab.goto(tab.url.partition("#")[0] + f"#screen={screen}&kind=cross&layer=2&head=1&query=2")
            tab.wait_for_selector(f"#screen-{screen}[aria-current=page]")
            assert tab.locator("main .empty").count() == 0
        tab.goto(tab.url.partition("#")[0] + "#screen=head&kind=cross&layer=2&head=1&table=1&lang=en")
        tab.wait_for_selector(".table")
        np.testing.assert_allclose(numbers_on(tab), trace.attention("cross", 2, 1), atol=6e-4)


def test_what_was_searched_for_has_a_tree(opened, catalogue):
    with running(catalogue) as server:
        tab = opened(server.url, wait_for="form")
        look_at(tab, SOURCE)
        tab.click("#screen-beam")
        tab.wait_for_selector("svg [data-node]")


def test_a_text_that_is_refused_says_why_and_stays(opened, catalogue):
    with running(catalogue) as server:
        tab = opened(server.url, wait_for="form", expected="413|422|400")
        tab.fill("textarea[name=source]", "猫" * 100_000)
        tab.click("button[type=submit]")
        tab.wait_for_selector(".problem:not(:empty)")
        assert tab.input_value("textarea[name=source]").startswith("猫")


def test_a_trace_that_is_gone_is_said_to_be(opened, catalogue):
    with running(catalogue) as server:
        tab = opened(f"{server.url}/?trace=nonesuch", wait_for=".empty[role=alert] a", expected="404")
        assert tab.locator(".empty p").inner_text()


def test_a_key_is_asked_for_and_kept(opened, catalogue, tmp_path):
    secret = new_key(tmp_path / "keys", "reader")
    with running(catalogue, keys=KeyRing(read_keys(tmp_path / "keys"))) as server:
        tab = opened(server.url, wait_for="input[name=key]", expected="401")
        tab.fill("input[name=key]", secret)
        tab.click("button[type=submit]")
        tab.wait_for_selector("textarea[name=source]")
        look_at(tab, SOURCE, TARGET)
