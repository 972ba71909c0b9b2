"""What was seen comes with the package: all of it, small, of three seeds, in both languages."""

import re
from importlib.resources import files
from pathlib import Path

import pytest

from regard.experiments.claims_page import claims_page
from regard.experiments.registry import NAMES, find
from regard.experiments.shelf import seen
from tests.look.pictures import outside, overlapping

FOLDER = files("regard.experiments").joinpath("seen")


def test_every_experiment_was_seen_at_its_usual_size():
    documents = seen()
    assert [document["name"] for document in documents] == list(NAMES)
    for document in documents:
        assert document["size"] == "normal"
        experiment = find(document["name"])
        assert len(document["seeds"]) == (3 if experiment.seeded else 0)
        assert document["claim"]["zh"] == experiment.claim.zh


def labels(part):
    """All labels of a document, however deep."""
    match part:
        case str() | {"en": _}:
            return [part]
        case dict():
            return [label for value in part.values() for label in labels(value)]
        case list():
            return [label for value in part for label in labels(value)]
        case _:
            return []


@pytest.mark.parametrize("document", seen(), ids=NAMES)
def test_words_are_told_in_both_languages(document):
    """What is told once is a name or a sign."""
    once = [label for label in labels([document["tables"], document["charts"]]) if isinstance(label, str)]
    signs = r"[dn]_?[kv]?|GRU|Transformer|(Layer|Batch)Norm|rollout|[\d.]+|\S*attention|[qx][₁₂ ].*"
    assert [label for label in once if not re.fullmatch(signs, label)] == []


@pytest.mark.parametrize("name", [document["name"] for document in seen() if document["charts"]])
def test_its_picture_has_room_for_all_words(name):
    svg = FOLDER.joinpath(f"{name}.svg").read_text(encoding="utf-8")
    assert not outside(svg)
    assert not overlapping(svg)


def test_the_page_of_claims_is_made_from_what_was_seen():
    page = Path(__file__).parents[2] / "docs" / "claims.md"
    assert page.read_text(encoding="utf-8") == claims_page(), "run `make docs`"


def test_all_of_it_is_small():
    assert sum(len(file.read_bytes()) for file in FOLDER.iterdir()) < 300_000
