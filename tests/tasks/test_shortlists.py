"""Shortlists of translators: which tokens are always candidates, and which model folders get one."""

from __future__ import annotations

import shutil
from types import SimpleNamespace

import numpy as np
import pytest

import regard
from regard import bundled
from regard.bundle import describe_bundle
from regard.bundle.bundle import add_file
from regard.bundle.manifest import SHORTLIST
from regard.decode.shortlist import Shortlist
from regard.engine.loading import shortlist_of
from regard.tasks import translate
from regard.tasks.translate import shortlist_of_pairs


@pytest.fixture(scope="module")
def subwords():
    return regard.load().subwords


@pytest.fixture(scope="module")
def pairs(subwords):
    texts = [("猫坐在垫子上。", "The cat sits on the mat."), ("天气很好。", "The weather is nice.")] * 20
    to = subwords.tag_id("en")
    return [((to, *subwords.encode_one(zh).tolist()), subwords.encode_one(en)) for zh, en in texts]


def test_special_tokens_and_bytes_are_known_by_the_vocabulary(subwords, pairs):
    found = shortlist_of_pairs(pairs, subwords)
    assert {subwords.bos_id, subwords.eos_id} <= {*found.always.tolist()}
    rare = subwords.encode_one("𰻝").tolist()  # in no subword
    bytes_ = {i for i in range(subwords.vocab_size) if subwords.pieces([i])[0].startswith("<0x")}
    assert len(bytes_) == 256
    assert bytes_ <= {*found.candidates([rare]).tolist()}
    assert not bytes_ & {*found.candidates([pairs[0][0]]).tolist()}


def test_a_pair_that_was_learned_is_among_its_candidates(subwords, pairs):
    found = shortlist_of_pairs(pairs, subwords)
    for read, written in pairs[:2]:
        assert {*written.tolist()} <= {*found.candidates([read]).tolist()}


def test_the_bundled_translator_has_candidates_for_common_sentences(subwords):
    found = shortlist_of(describe_bundle(bundled.folder()))
    for zh, en in (("你叫什么名字？", "What's your name?"), ("明天会下雨吗？", "Will it rain tomorrow?")):
        for to, source, target in (("en", zh, en), ("zh", en, zh)):
            ids = [subwords.tag_id(to), *subwords.encode_one(source).tolist()]
            candidates = found.candidates([ids])
            assert {*subwords.encode_one(target).tolist()} <= {*candidates.tolist()}
            assert len(candidates) < subwords.vocab_size / 5


@pytest.mark.parametrize(("smallest", "has_one"), [(24_000, True), (24_001, False)])
def test_a_run_stores_one_if_the_vocabulary_is_large(
    subwords, pairs, tmp_path, monkeypatch, smallest, has_one
):
    monkeypatch.setattr(translate, "SMALLEST_VOCABULARY", smallest)
    best = shutil.copytree(bundled.folder(), tmp_path / "best")
    described = describe_bundle(best)
    add_file(best, SHORTLIST, Shortlist.of_everything(subwords.vocab_size).to_bytes())
    prepared = SimpleNamespace(subwords=subwords, lesson=SimpleNamespace(train=pairs))
    translate._learn_shortlist(SimpleNamespace(folder=tmp_path), prepared)
    found = shortlist_of(describe_bundle(best))
    assert (len(found.always) < described.config.vocab_size) == has_one


def test_a_number_may_need_a_word_that_is_no_candidate(subwords, tmp_path):
    """Then the sentence is searched again among all tokens."""
    folder = shutil.copytree(bundled.folder(), tmp_path / "model")
    words = {subwords.encode_one(word).tolist()[0] for word in ("January", "Jan")}
    others = [i for i in range(subwords.vocab_size) if i not in words]
    nothing = np.zeros(subwords.vocab_size + 1, dtype=np.int64)
    crippled = Shortlist(nothing, nothing[:0], np.array(others))
    add_file(folder, SHORTLIST, crippled.to_bytes())
    model, text = regard.load(folder), "他生于1990年1月7日。"
    unchecked = model.translate(text, to="en", check_numbers=False, shortlist=True).text
    assert "January" not in unchecked
    result = model.translate(text, to="en", shortlist=True)
    assert "January" in result.text
    assert result.numbers == ()
