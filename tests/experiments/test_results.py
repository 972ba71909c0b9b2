"""Recorded results come with the package: of all experiments, small, with three seeds, in both languages."""

import re
from importlib.resources import files
from pathlib import Path

import pytest

from regard.experiments.registry import NAMES, find_experiment, recorded_results
from regard.experiments.report import claims_page
from tests.look.pictures import outside, overlapping

FOLDER = files("regard.experiments").joinpath("results")


def test_every_experiment_is_recorded_at_its_normal_size():
    documents = recorded_results()
    assert [document["name"] for document in documents] == list(NAMES)
    for document in documents:
        assert document["size"] == "normal"
        experiment = find_experiment(document["name"])
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


@pytest.mark.parametrize("document", recorded_results(), ids=NAMES)
def test_words_are_in_both_languages(document):
    """A label that both languages share is a name or a symbol."""
    once = [label for label in labels([document["tables"], document["charts"]]) if isinstance(label, str)]
    signs = r"[dn]_?[kv]?|GRU|Transformer|(Layer|Batch)Norm|rollout|[\d.]+|\S*attention|[qx][₁₂ ].*"
    assert [label for label in once if not re.fullmatch(signs, label)] == []


@pytest.mark.parametrize("name", [document["name"] for document in recorded_results() if document["charts"]])
def test_all_words_fit_into_the_picture(name):
    svg = FOLDER.joinpath(f"{name}.svg").read_text(encoding="utf-8")
    assert not outside(svg)
    assert not overlapping(svg)


def test_the_page_of_claims_is_up_to_date():
    page = Path(__file__).parents[2] / "docs" / "claims.md"
    assert page.read_text(encoding="utf-8") == claims_page(), "run `make docs`"


def test_recorded_results_are_small():
    assert sum(len(file.read_bytes()) for file in FOLDER.iterdir()) < 300_000
