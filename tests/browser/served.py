"""Addresses and texts for tests of a server's page."""

from urllib.parse import quote

from tests.browser.waiting import until
from tests.engine import talking

SOURCE = talking.PAIRS["train"][0][0]
OTHER = talking.PAIRS["train"][1][0]


def at(server, **state):
    return f"{server.url}/#" + "&".join(f"{name}={quote(str(value))}" for name, value in state.items())


def typed(tab, text):
    """Write a text, and wait until its translation has said where its words come from."""
    tab.fill("#text", text)
    until(tab, "document.querySelector('#output .word') && !document.querySelector('#output[aria-busy]')")


def best(model, text):
    return model.translate(text, n_best=4)
