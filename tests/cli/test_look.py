"""`regard look`: every view on the terminal, every kind of file and of model, and mistakes in plain words."""

import json
import re
import zlib
from base64 import b64decode

import numpy as np
import pytest
import torch

import regard
from regard.cli import main
from regard.look.trace.trace import Trace
from regard.look.views import MODULES
from tests.cli.conftest import Answer
from tests.look.pictures import outside, texts
from tests.look.traced import model_of, subwords


@pytest.fixture
def look(talker, capsys, tmp_path, monkeypatch):
    """Type `regard look` and some words."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")

    def look(*words, model=talker):
        with pytest.raises(SystemExit) as ended:
            main(["look", "--model", str(model), *words])
        return Answer(ended.value.code or 0, *capsys.readouterr())

    return look


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """A model folder of the decoder alone, and one of the encoder alone."""
    place = tmp_path_factory.mktemp("alone")
    return {
        name: regard.save_bundle(
            place / name, model_of(torch.float32, architecture=name), subwords=subwords().model
        )
        for name in ("decoder", "encoder")
    }


@pytest.mark.parametrize("view", MODULES)
def test_every_view_is_printed(look, view):
    found = look("三月", "--view", view, "--beam", "2")
    assert (found.status, found.err) == (0, "")
    assert len(found.out.splitlines()) > 5
    assert "\x1b" not in found.out


def test_what_is_looked_at_is_the_translation(look, talker):
    found = look("四月二日", "--view", "steps")
    translation = regard.load(talker, threads=1).translate("四月二日").text
    assert found.out.startswith(f"四月二日 → {translation}")
    assert look("四月二日", "--output", "in March").out.startswith("四月二日 → in March\n")


def test_the_tree_of_the_search_is_shown_unless_a_target_is_given(look):
    assert "★" in look("三月", "--view", "beam").out
    refused = look("三月", "--view", "beam", "--output", "March")
    assert (refused.status, refused.out) == (2, "")
    assert "error[nothing_to_show]" in refused.err


def test_the_chosen_place_is_written_as_a_picture_and_as_numbers(look, tmp_path):
    chosen = ["--kind", "encoder", "--layer", "0", "--head", "1", "--view", "matrix", "--output", "March"]
    assert look("三月", *chosen, "-o", "a.svg").out == "a.svg\n"
    picture = (tmp_path / "a.svg").read_text(encoding="utf-8")
    assert outside(picture) == []
    assert any(words.startswith("encoder self-attention, layer 0, head 1") for words in texts(picture))
    for name in ("a.npz", "a.csv", "a.png", "a.html", "a.safetensors"):
        assert look("三月", *chosen, "--out", name).status == 0
    trace = Trace.load(tmp_path / "a.safetensors")
    with np.load(tmp_path / "a.npz") as found:
        assert np.array_equal(found["values"][0], trace.attention("encoder", 0, 1))


@pytest.mark.parametrize("view", ["heads", "matrix", "lines", "positions", "walk", "steps", "influence"])
@pytest.mark.parametrize("architecture", ["decoder", "encoder"])
def test_models_of_one_stack_are_looked_at_too(look, alone, architecture, view):
    found = look("the cat sat", "--view", view, model=alone[architecture])
    assert (found.status, found.err) == (0, "")
    assert ("sinusoidal" if view == "positions" else "the cat sat") in found.out


def test_an_alignment_is_scored_by_the_links_that_are_right(look):
    whole = ("--view", "alignment", "--output", "March", "--layer", "0", "--head", "1")
    out = look("三月", *whole, "--gold", "0-0").out
    assert re.search(r"alignment error rate \d\.\d{3} \(precision \d\.\d{3}, recall \d\.\d{3}\)", out)
    assert "alignment error rate" in look("三月", *whole, "--gold", "0-0", "-o", "a.csv").out
    for words, why in (
        (["--gold", "0-0", "--view", "heads"], "error[option_conflict]: --gold needs the view alignment"),
        (["--method", "rollout"], "error[option_conflict]: --method"),
        ([*whole, "--gold", "here"], "error[bad_link]: 'here'"),
        ([*whole, "--gold", "9-0"], "error[bad_link]: no link 9-0"),
    ):
        refused = look("三月", *words)
        assert refused.status == 2
        assert why in refused.err


def test_interventions_are_given_as_json_or_as_a_file(look, talker, tmp_path):
    at = "encoder.layers.0.feed_forward.output"
    changes = [{"op": "ablate", "at": at, "by": "mean", "texts": ["四月二日", ["五月", "in May"]]}]
    found = look("三月", "--intervene", json.dumps(changes), "--beam", "3", "-o", "a.safetensors")
    assert (found.status, found.err) == (0, "")
    expected = regard.load(talker).look("三月", interventions=changes, beam_size=3)
    trace = Trace.load(tmp_path / "a.safetensors")
    assert trace.targets == expected.targets
    np.testing.assert_allclose(trace.log_probs, expected.log_probs, atol=1e-5)
    (tmp_path / "b.json").write_text(
        json.dumps([{"op": "patch", "at": at, "trace": "a.safetensors", "positions": [1]}])
    )
    assert look("三月", "--intervene", "b.json", "-o", "b.safetensors").status == 0
    rows = [Trace.load(tmp_path / f"{name}.safetensors").arrays[at][1] for name in "ab"]
    np.testing.assert_allclose(*rows, atol=1e-5)
    for words, code in (
        ("[1", "bad_intervention"),
        ('[{"op": "ablate"}]', "bad_intervention"),
        ('[{"op": "ablate", "at": "encoder.layer", "by": "zero"}]', "intervention_mismatch"),
        ("none.json", "unreadable_file"),
    ):
        assert f"error[{code}]" in look("三月", "--intervene", words).err


def test_what_a_token_hangs_on_by_one_method_or_all(look, alone, tmp_path):
    words = ("--view", "influence", "--query", "2")
    out = look("the cat sat", *words, model=alone["decoder"]).out
    assert all(name in out for name in ("attention", "rollout", "zeroing"))
    assert "integrated gradients:" in out
    few = look(
        "the cat sat", *words, "--method", "integrated-gradients", "--steps", "3", model=alone["decoder"]
    )
    assert "integrated gradients: 3 steps, change" in " ".join(few.out.split())
    assert look("the cat sat", *words, "--method", "norms", "-o", "a.csv", model=alone["decoder"]).status == 0
    _, *rows = (tmp_path / "a.csv").read_text(encoding="utf-8").splitlines()
    assert [row.partition(",")[0] for row in rows] == ["norms"]
    model = regard.load(alone["decoder"])
    values = model.influence(model.look("the cat sat"), 2, method="norms")[:3]
    assert [float(each) for each in rows[0].split(",")[1:]] == pytest.approx(values.tolist(), abs=1e-5)
    refused = look("the cat sat", *words, "--method", "guess", model=alone["decoder"])
    assert "error[unknown_method]: there is no method 'guess'" in refused.err


def test_what_made_a_label_is_told_with_it(look, alone, tmp_path):
    model = regard.load(alone["encoder"])
    label = model.labels[0]
    values = model.influence(model.look("the cat sat", label))
    words = ("--view", "steps", "--output", label)
    out = look("the cat sat", *words, model=alone["encoder"]).out
    assert f"influence on “{label}”" in out
    assert f"integrated gradients: {values.convergence}" in " ".join(out.split())
    assert all(f"{value:+.3f}" in out for value in values)
    look("the cat sat", *words, "-o", "a.svg", model=alone["encoder"])
    picture = texts((tmp_path / "a.svg").read_text(encoding="utf-8"))
    assert {f"{value:+.3f}".replace("-", "−") for value in values} <= set(picture)
    look("the cat sat", *words, "-o", "a.html", model=alone["encoder"])
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    held = json.loads(re.search(r'id="held">(.*?)</script>', page, re.DOTALL)[1])
    kept = json.loads(zlib.decompress(b64decode(held["text"])))
    assert kept["influence"]["values"] == pytest.approx(values, abs=1e-4)
    refused = look("the cat sat", "--view", "beam", model=alone["encoder"])
    assert "error[nothing_to_show]" in refused.err


@pytest.mark.parametrize(
    ("words", "code", "place"),
    [
        (["--view", "head"], "unknown_view", "'head'; did you mean heads?"),
        (["--kind", "self"], "unknown_kind", "'self'"),
        (["--target", "fr"], "", "fr"),
        (["--layer", "9"], "unknown_place", "layer 9"),
        (["--head", "9"], "unknown_place", "head 9"),
        (["--view", "walk", "--query", "99"], "unknown_place", "query 99"),
        (["-o", "x.pdf"], "unknown_format", "x.pdf"),
        (["-o", "no/x.svg"], "unwritable_file", "no/x.svg"),
    ],
)
def test_mistakes_are_told_and_nothing_is_printed(look, words, code, place):
    found = look("三月", "--output", "March", *words)
    assert (found.status, found.out) == (2, "")
    assert found.err.startswith(f"regard: error[{code}")
    assert place in found.err


def test_a_model_that_is_not_there_is_named(look, tmp_path):
    found = look("三月", model=tmp_path / "nowhere")
    assert found.status == 2
    assert "nowhere" in found.err
