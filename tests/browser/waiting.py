"""Waiting for a page. Playwright's `wait_for_function` evaluates strings, which the page's policy forbids."""

import re

import pytest


def until(tab, condition, seconds=15):
    for _ in range(50 * seconds):
        if tab.evaluate(condition):
            return
        tab.wait_for_timeout(20)
    pytest.fail(f"never came: {condition}")


def drawn(tab, act):
    """Do something, and wait until the page has been drawn again."""
    before = int(tab.get_attribute("body", "data-drawn"))
    act()
    until(tab, f"Number(document.body.dataset.drawn) > {before}")


def visit(tab, screens):
    """Go through screens in one tab, and yield the name of each when it has been drawn."""
    for screen in screens:
        if tab.get_attribute(f"#screen-{screen}", "aria-current") != "page":
            drawn(tab, lambda screen=screen: tab.click(f"#screen-{screen}"))
        # A screen may draw itself once more when a result arrives, just before it is left.
        there = f"document.querySelector('#screen-{screen}').ariaCurrent === 'page'"
        until(tab, f"{there} && !document.querySelector('main').ariaBusy")
        yield screen


def is_chinese(text):
    return bool(re.search("[\u4e00-\u9fff]", text))
