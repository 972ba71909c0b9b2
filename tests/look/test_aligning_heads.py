"""The heads that align are found by measuring, kept in the folder, and found there again."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

import regard
from regard.errors import BundleError
from regard.look.alignment.aligner import measure_heads
from regard.look.alignment.alignment import (
    AligningHeads,
    align,
    default_heads,
    read_aligning_heads,
    save_aligning_heads,
    shares_of_words,
)
from regard.look.trace.recorder import look
from regard.look.trace.tokens import Word
from tests.look import ciphers
from tests.look.traced import model_of, subwords, trace_of
from tests.model.small import small_config
from tests.refusals import refused

CHOICE = AligningHeads(
    heads=((2, 1), (0, 0)),
    rows="predicting",
    accuracy=0.75,
    n_pairs=40,
    of_each_head=((0.5, 0.25), (0.0, 1.0)),
)


def folder_of(place):
    return regard.save_bundle(place / "model", model_of(torch.float32), subwords=subwords().model)


def test_words_look_where_their_tokens_look_in_either_row():
    """Two words of inputs, of 2 and 1 tokens; one word of outputs, of tokens 2 and 3."""
    weights = np.arange(5 * 4, dtype=float).reshape(5, 4)
    inputs, outputs = (Word("a", 0, 1), Word("b", 2, 2)), (Word("c", 2, 3),)
    own, before = (shares_of_words(weights, inputs, outputs, rows) for rows in ("own", "predicting"))
    assert own.tolist() == [[(8 + 9 + 12 + 13) / 2, (10 + 14) / 2]]
    assert before.tolist() == [[(4 + 5 + 8 + 9) / 2, (6 + 10) / 2]]
    several = shares_of_words(np.stack([weights, 2 * weights]), inputs, outputs, "own")
    assert several.tolist() == [own.tolist(), (2 * own).tolist()]


def test_a_trace_is_aligned_by_the_rows_that_are_asked_for():
    trace = trace_of(model_of())
    own, before = (align(trace, [(1, 1)], rows) for rows in ("own", "predicting"))
    word = before.outputs[1]
    joined = np.stack(
        [trace.attention("cross", 1, 1)[:, w.first : w.last + 1].sum(1) for w in own.inputs], axis=1
    )
    np.testing.assert_allclose(own.shares[1], joined[word.first : word.last + 1].mean(0))
    np.testing.assert_allclose(before.shares[1], joined[word.first - 1 : word.last].mean(0))


def test_a_choice_is_kept_in_the_folder_and_the_folder_stays_whole(tmp_path):
    folder = folder_of(tmp_path)
    before = regard.describe_bundle(folder)
    assert read_aligning_heads(folder) is None
    save_aligning_heads(folder, CHOICE)
    assert read_aligning_heads(folder) == CHOICE
    save_aligning_heads(folder, replace(CHOICE, rows="own"))
    assert read_aligning_heads(folder).rows == "own"
    after = regard.describe_bundle(folder)
    assert after.weights_hash == before.weights_hash
    assert set(after.files) == {*before.files, "alignment.json"}
    assert regard.load_bundle(folder).config == before.config


def test_a_damaged_folder_is_not_written_to(tmp_path):
    folder = folder_of(tmp_path)
    (folder / "config.toml").write_text("# changed")
    with pytest.raises(BundleError, match=r"config\.toml"):
        save_aligning_heads(folder, CHOICE)
    assert not (folder / "alignment.json").exists()


@pytest.mark.parametrize("spoilt", ["{", "{}", json.dumps({**CHOICE.to_json(), "rows": "odd"})])
def test_a_choice_that_cannot_be_read_is_refused(tmp_path, spoilt):
    (tmp_path / "alignment.json").write_text(spoilt)
    with refused("damaged_file", "alignment.json", str(tmp_path)):
        read_aligning_heads(tmp_path)


def test_without_a_measurement_the_later_layers_are_taken():
    usual = default_heads(small_config(n_heads=2, decoder_layers=3, d_k=7, d_v=7))
    assert usual.heads == ((1, 0), (1, 1), (2, 0), (2, 1))
    assert usual.rows == "predicting"
    assert not usual.measured
    assert CHOICE.measured
    assert default_heads(small_config(decoder_layers=1)).heads[0] == (0, 0)


def test_what_cannot_be_measured_is_refused(tmp_path):
    with refused("too_few_pairs", "1 pairs"):
        measure_heads(model_of(), subwords(), [([9], [9])])
    with refused("too_few_pairs", "9 pairs"):
        measure_heads(model_of(), subwords(), [([], [9])] * 9)
    folder = regard.save_bundle(
        tmp_path / "alone", model_of(torch.float32, architecture="decoder"), subwords=subwords().model
    )
    with refused("wrong_task"):
        regard.load(folder).measure_alignment(["a"], ["b"])
    with refused("pair_count_mismatch", "2", "1"):
        regard.load(folder_of(tmp_path)).measure_alignment(["a", "b"], ["b"])


@pytest.mark.slow
def test_the_choice_is_right_where_the_links_are_known(tmp_path):
    folder = ciphers.trained(tmp_path)
    model = regard.load(folder, engine="torch", threads=1)
    rows = ciphers.drawn(300, 3)
    chosen = model.measure_alignment((row[0] + "\n" for row in rows), (row[1] for row in rows))
    assert model.aligning_heads == chosen == read_aligning_heads(folder)
    watched = regard.load_bundle(folder).model
    fresh = ciphers.drawn(60, 4)
    traces = [look(watched, ciphers.subwords(), inputs, outputs) for inputs, outputs, _ in fresh]

    def truly_right(heads, which):
        links = [set(align(trace, heads, which).links) for trace in traces]
        right = sum(len(found & known) for found, (*_, known) in zip(links, fresh, strict=True))
        return right / sum(len(known) for *_, known in fresh)

    truth = truly_right(chosen.heads, chosen.rows)
    alone = {
        (head, which): truly_right([head], which)
        for head in np.ndindex(2, 2)
        for which in ("own", "predicting")
    }
    assert truth > 0.9
    assert truth >= max(alone.values()) - 0.02
    assert max(alone, key=alone.get) == (chosen.heads[0], chosen.rows)
    assert abs(truth - chosen.accuracy) < 0.05
    assert max(map(max, chosen.of_each_head)) == chosen.of_each_head[chosen.heads[0][0]][chosen.heads[0][1]]
