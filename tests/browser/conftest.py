"""A real Chromium, driven by Playwright; what is missing is said."""

import re
import shutil

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture(scope="session")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("Chromium, in which the page is tried, is not installed")
    with playwright.sync_playwright() as driver:
        # Without its sandbox, which containers do not allow: it opens our own pages only.
        running = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield running
        running.close()


@pytest.fixture
def opened(browser):
    """Open an address in a fresh window; what goes wrong in it, or leaves for elsewhere, fails the test."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, locale="en-GB")
    wrong, expected_ones = [], []

    def open_address(address, wait_for="body[data-drawn]", expected="(?!)"):
        expected_ones.append(expected)
        own = ("data:", "blob:", re.match(r"file:|https?://[^/]+", address)[0])
        tab = context.new_page()
        tab.on("console", lambda told: wrong.append(told.text) if told.type in ("error", "warning") else None)
        tab.on("pageerror", lambda error: wrong.append(str(error)))
        tab.on("request", lambda asked: None if asked.url.startswith(own) else wrong.append(asked.url))
        tab.goto(address)
        tab.wait_for_selector(wait_for)
        return tab

    yield open_address
    context.close()
    assert [told for told in wrong if not any(re.search(each, told) for each in expected_ones)] == []
