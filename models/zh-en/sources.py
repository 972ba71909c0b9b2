"""Where the pairs come from, and how often each source is learned from.

Everyday sentences are few beside software documents, so they come several times and the largest of those in
part. Dictionaries teach words and no sentences; the bible, sentences that nobody says. A weight of 2.5 is two
copies of every pair and a third of half of them.

Left out, because their terms forbid to pass on what is made from them, or state none: tvsub, wcc, aic,
newscommentary, wesnoth. Left out, because they are in part another machine's translations: ethereum, ss14.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

Kind = Literal["everyday", "documents", "words"]


class Source(NamedTuple):
    """What a source is like."""

    kind: Kind
    weight: float
    held_out: int = 0
    """Pairs that are kept to validate with, beside those of the data's own validation set."""


SOURCES = {
    "tatoeba": Source("everyday", 3),
    "tatoeba2": Source("everyday", 3, 150),
    "tatoeba2-hant": Source("everyday", 1),  # traditional characters, as found …
    "simplified": Source("everyday", 2),  # … and in simplified ones, which outputs should have
    "msctd": Source("everyday", 4, 60),
    "3am": Source("everyday", 2),
    "cataclysm": Source("everyday", 2),
    "woz": Source("everyday", 2, 80),
    "xrisawoz": Source("everyday", 3),
    "xsid": Source("everyday", 2),
    "mgsm": Source("everyday", 3),
    "storybook": Source("everyday", 3, 30),
    "renpy": Source("everyday", 2),
    "numerals": Source("everyday", 1),
    "osguide": Source("documents", 3),
    "learnosm": Source("documents", 2),
    "gnomehelp": Source("documents", 2),
    "d2l": Source("documents", 2, 40),
    "msdocs": Source("documents", 0.7),
    "mdn": Source("documents", 0.7, 80),
    "pydocs": Source("documents", 0.8),
    "djangodocs": Source("documents", 0.8),
    "k8s": Source("documents", 0.8),
    "flutter": Source("documents", 1),
    "dart": Source("documents", 1),
    "angular": Source("documents", 1),
    "reactdocs": Source("documents", 1, 40),
    "vuedocs": Source("documents", 1),
    "aosp": Source("documents", 1, 40),
    "homeassistant": Source("documents", 0.5),
    "scratch": Source("documents", 1),
    "rocketchat": Source("documents", 0.7),
    "zulip": Source("documents", 1),
    "element": Source("documents", 1),
    "wikiapp": Source("documents", 1),
    "osm-id": Source("documents", 0.5),
    "cedict": Source("words", 0.7),
    "cow": Source("words", 0.2),
    "cldr": Source("words", 1),
    "tico-terms": Source("words", 2),
    "bible": Source("words", 0.5),
}

TOKENISED = ("3am", "xsid", "woz", "storybook", "learnosm")
"""Sources that went through a tokeniser, and have its spaces."""

SUBTITLES = ("msctd",)
"""Sources whose lines may start and break off in the middle of a sentence."""

TRADITIONAL = "tatoeba2-hant"
MIXED = (TRADITIONAL, "tatoeba", "tatoeba2")
"""Sources with traditional characters: such sentences come a second time, in simplified ones."""

NUMERALS = 20_000
"""Pairs of the built-in corpus: numbers, dates, times and prices in words."""
