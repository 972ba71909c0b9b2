"""A real Chromium, driven by Playwright, and a server with a small trained model."""

import re
import shutil

import pytest

import regard
from regard.look.interventions.interventions import Uniform
from regard.look.trace.probes import Probe, probe_file, write_probes
from regard.serve.http.metrics import Metrics
from regard.serve.models import load_models
from tests.browser.served import SOURCE
from tests.engine import talking
from tests.serve.running import running

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
VIEWPORT = {"width": 1280, "height": 900}


@pytest.fixture(scope="session")
def window():
    """One window for all tests, so that the page's modules are loaded and cached once."""
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed")
    with playwright.sync_playwright() as driver:
        # Containers do not allow Chromium's sandbox; only our own pages are opened.
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser.new_context(viewport=VIEWPORT, locale="en-GB")
        browser.close()


@pytest.fixture(scope="session")
def free_tabs():
    """Tabs that no test uses now; a new one takes longer to open than most tests take."""
    return []


@pytest.fixture
def opened(window, free_tabs):
    """Open an address in a tab; errors in it, and requests to other hosts, fail the test."""
    used, wrong, expected_ones = [], [], []

    def open_address(address, wait_for="body[data-drawn]", expected="(?!)"):
        expected_ones.append(expected)
        own = ("data:", "blob:", "about:", re.match(r"file:|https?://[^/]+", address)[0])
        listeners = {
            "console": lambda line: wrong.append(line.text) if line.type in ("error", "warning") else None,
            "pageerror": lambda error: wrong.append(str(error)),
            "request": lambda sent: None if sent.url.startswith(own) else wrong.append(sent.url),
        }
        tab = free_tabs.pop() if free_tabs else window.new_page()
        used.append((tab, listeners))
        for event, listener in listeners.items():
            tab.on(event, listener)
        tab.bring_to_front()
        tab.goto(address)
        tab.wait_for_selector(wait_for)
        return tab

    yield open_address
    for tab, listeners in used:
        tab.evaluate("try { localStorage.clear() } catch {}")  # language and colours that a test chose
        tab.goto("about:blank")
        for event, listener in listeners.items():
            tab.remove_listener(event, listener)
        tab.set_viewport_size(VIEWPORT)
        free_tabs.append(tab)
    assert [line for line in wrong if not any(re.search(each, line) for each in expected_ones)] == []


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """The folder of a run: a model, a journal, and probes."""
    place = tmp_path_factory.mktemp("page")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REGARD_CACHE", str(place / "cache"))
        run = place / "zh-en"
        shutil.copytree(talking.talker(place / "training"), run / "best")
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
def registry(folder):
    found = load_models([folder], Metrics(), threads=1)
    yield found
    found.close()


@pytest.fixture(scope="session")
def server(registry):
    with running(registry) as found:
        yield found
