"""Neighbours of tokens, and the plane that they are shown on, against another road to the same numbers."""

import numpy as np
import pytest

import regard
from regard.look.trace.comparison import neighbours, on_a_plane
from tests.look.traced import model_of, subwords
from tests.refusals import refused


def cosine(one, other):
    return one @ other / np.sqrt((one @ one) * (other @ other))


def test_the_nearest_are_those_of_the_smallest_angle():
    embedding = np.random.default_rng(1).normal(size=(41, 7)) * np.arange(1, 42)[:, None]
    found = neighbours(embedding, [5, 3, 5], lambda ids: [f"t{i}" for i in ids], 4)
    assert found.pieces == {5: "t5", 3: "t3"}
    for i, near in found.nearest.items():
        order = sorted((j for j in range(41) if j != i), key=lambda j: -cosine(embedding[i], embedding[j]))
        assert [each.id for each in near] == order[:4]
        for each in near:
            assert each.cosine == pytest.approx(cosine(embedding[i], embedding[each.id]))
            assert each.piece == f"t{each.id}"
    assert set(found.places) == {5, 3} | {each.id for near in found.nearest.values() for each in near}


def test_an_empty_embedding_is_near_to_nothing():
    embedding = np.eye(5)
    embedding[2] = 0
    found = neighbours(embedding, [2], lambda ids: [str(i) for i in ids], 9)
    assert [each.cosine for each in found.nearest[2]] == [0.0] * 4


def test_the_plane_has_the_largest_variances():
    vectors = np.random.default_rng(2).normal(size=(13, 5)) * [3.0, 1.0, 2.0, 0.1, 0.5]
    places, explained = on_a_plane(vectors)
    variances = np.linalg.eigvalsh(np.cov(vectors.T))[::-1]
    np.testing.assert_allclose(places.var(axis=0, ddof=1), variances[:2])
    assert places[:, 0] @ places[:, 1] == pytest.approx(0, abs=1e-9)
    assert explained == pytest.approx(variances[:2].sum() / variances.sum())
    assert (places[np.abs(places).argmax(axis=0), [0, 1]] > 0).all()


def test_what_lies_on_a_line_or_a_point_is_shown_as_it_is():
    line = np.arange(4.0)[:, None] * [3.0, 4.0]
    places, explained = on_a_plane(line)
    np.testing.assert_allclose(np.abs(np.diff(places[:, 0])), 5.0)
    np.testing.assert_allclose(places[:, 1], 0, atol=1e-12)
    assert explained == pytest.approx(1)
    places, explained = on_a_plane(np.ones((1, 3)))
    assert (places.tolist(), explained) == ([[0.0, 0.0]], 1.0)


@pytest.mark.parametrize("architecture", ["encoder-decoder", "decoder", "encoder"])
def test_every_model_has_neighbours(architecture, tmp_path):
    model = model_of(architecture=architecture)
    regard.save_bundle(tmp_path / "model", model, subwords=subwords().model)
    loaded = regard.load(tmp_path / "model", threads=1)
    found = loaded.neighbours("the cat", 3)
    assert list(found.pieces) == list(dict.fromkeys(subwords().encode_one("the cat").tolist()))
    assert {len(near) for near in found.nearest.values()} == {3}
    with refused("empty_text"):
        loaded.neighbours("")
