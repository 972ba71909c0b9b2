"""A real Chromium, driven by Playwright; what is missing is said."""

import shutil

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture(scope="session")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("Chromium, in which the page is tried, is not installed")
    with playwright.sync_playwright() as driver:
        # Without its sandbox, which containers do not allow: it opens our own files only.
        running = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield running
        running.close()


@pytest.fixture
def opened(browser):
    """Open a file in a fresh window; whatever goes wrong in it, or leaves it, fails the test."""
    context = browser.new_context(
        viewport={"width": 1280, "height": 900}, locale="en-GB", accept_downloads=True
    )
    wrong = []

    def open_file(path, anchor=""):
        tab = context.new_page()
        tab.on("console", lambda told: wrong.append(told.text) if told.type in ("error", "warning") else None)
        tab.on("pageerror", lambda error: wrong.append(str(error)))
        tab.on("request", lambda asked: wrong.append(asked.url) if not _is_own(asked.url) else None)
        tab.goto(path.as_uri() + anchor)
        tab.wait_for_selector("body[data-drawn]")
        return tab

    yield open_file
    context.close()
    assert wrong == []


def _is_own(address):
    return address.startswith(("file:", "data:", "blob:"))
