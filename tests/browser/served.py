"""Addresses and texts for tests of the page."""

import json
from functools import cache
from urllib.parse import quote

from regard import page
from tests.browser.waiting import until
from tests.engine import talking

SOURCE = talking.PAIRS["train"][0][0]
OTHER = talking.PAIRS["train"][1][0]


@cache
def _words(language):
    return json.loads(page.read(f"words/{language}.json"))


def page_text(key, language="en", **values):
    """What the page shows for a key."""
    return _words(language)[key].format(**values)


def at(server, **state):
    return f"{server.url}/#" + "&".join(f"{name}={quote(str(value))}" for name, value in state.items())


def typed(tab, written):
    """Write a text instead of another, and wait until its translation has said where its words come from."""
    tab.fill("#text", "")
    until(tab, "document.querySelector('#look').disabled")
    tab.fill("#text", written)
    until(tab, "document.querySelector('#output .word') && !document.querySelector('#output[aria-busy]')")


def best(model, source):
    return model.translate(source, n_best=4)
