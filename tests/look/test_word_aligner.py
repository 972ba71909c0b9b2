"""Results that say where their words come from, whichever engine found them."""

import pytest
import torch

import regard
from regard.look.alignment.alignment import AligningHeads, align, save_aligning_heads
from tests.look.traced import model_of, subwords
from tests.refusals import refused

CHOICE = AligningHeads(heads=((2, 1), (1, 0)), rows="predicting", accuracy=0.75, n_pairs=40)
DOCUMENT = "  - 猫坐在垫子上。 the cat sat!\n\nTwo dogs e\u0301 ran. 鸟"
"""Sentences, a mark of a list, a blank line, and an accent that is not composed."""


@pytest.fixture(scope="module", autouse=True)
def _conversions_are_kept_elsewhere(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REGARD_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    model = model_of(torch.float32, n_heads=2, d_k=7, d_v=7)
    decoding = regard.DecodingConfig(beam_size=3, extra_length=4)
    place = tmp_path_factory.mktemp("models") / "model"
    return regard.save_bundle(place, model, subwords=subwords().model, decoding=decoding)


@pytest.fixture(scope="module")
def measured(folder, tmp_path_factory):
    """The same with a choice of heads kept in it."""
    bundle = regard.load_bundle(folder)
    place = tmp_path_factory.mktemp("models") / "measured"
    regard.save_bundle(place, bundle.model, subwords=bundle.subwords, decoding=bundle.decoding)
    save_aligning_heads(place, CHOICE)
    return place


@pytest.mark.parametrize("engine", ["torch", "ctranslate2"])
def test_links_are_those_of_a_look_at_the_pair(measured, engine):
    model = regard.load(measured, engine=engine, threads=1)
    for text in ("猫坐在垫子上。", "two dogs ran", "a 龘 cat"):
        result = model.translate(text, alignment=True, whole_lines=True)
        ids = [subwords()._processor.piece_to_id(piece) for piece in result.tokens]
        aligned = align(model.look(text, ids), CHOICE.heads, CHOICE.rows)
        assert [(link.source, link.target) for link in result.alignment] == [
            (aligned.inputs[i].text, aligned.outputs[j].text) for i, j in aligned.links
        ]
        shares = [aligned.shares[j, i] for i, j in aligned.links]
        assert [link.strength for link in result.alignment] == pytest.approx(shares, abs=1e-5)
        assert result.engine == engine


def test_places_are_those_of_the_whole_text_and_the_whole_translation(measured):
    model = regard.load(measured, engine="torch", threads=1)
    result = model.translate(DOCUMENT, alignment=True, n_best=2)
    composed = DOCUMENT.replace("e\u0301", "\u00e9")
    for one in (result, *result.alternatives):
        assert one.alignment
        for link in one.alignment:
            assert composed[link.source_start : link.source_end] == link.source
            assert one.text[link.target_start : link.target_end] == link.target
    starts = [link.target_start for link in result.alignment]
    assert starts == sorted(starts)
    sources = {link.source_start for link in result.alignment}
    assert min(sources) < DOCUMENT.index("\n") < max(sources)
    assert result.text == model.translate(DOCUMENT, n_best=2).text


def test_what_the_links_go_by_is_said(folder, measured):
    chosen = regard.load(measured, engine="torch", threads=1).translate("two dogs", alignment=True)
    assert chosen.aligned_by == "heads 2.1, 1.0 (layer.head), which found 75% of known links"
    usual = regard.load(folder, engine="torch", threads=1).translate("two dogs. a cat.", alignment=True)
    assert usual.aligned_by.startswith("heads 1.0, 1.1, 2.0, 2.1 (layer.head), not measured")
    assert usual.alignment


def test_nothing_is_aligned_unless_asked_for(measured):
    result = regard.load(measured, engine="torch", threads=1).translate("two dogs")
    assert (result.alignment, result.aligned_by) == ((), "")


def test_where_there_is_nothing_there_are_no_links(measured):
    model = regard.load(measured, engine="torch", threads=1)
    assert model.translate("", alignment=True).alignment == ()
    assert [each.alignment for each in model.translate(["---", "\n"], alignment=True)] == [(), ()]


def test_who_cannot_align_says_so(measured):
    with refused("ensemble", "2 models"):
        regard.load([measured, measured]).translate("two dogs", alignment=True)
