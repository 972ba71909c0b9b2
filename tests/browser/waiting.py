"""Waiting for a page, from outside: its policy forbids Playwright's way, which evaluates a string inside."""

import pytest


def until(tab, condition):
    for _ in range(750):
        if tab.evaluate(condition):
            return
        tab.wait_for_timeout(20)
    pytest.fail(f"never came: {condition}")


def drawn(tab, act):
    """Do something, and wait until the page has been drawn again."""
    before = int(tab.get_attribute("body", "data-drawn"))
    act()
    until(tab, f"Number(document.body.dataset.drawn) > {before}")
