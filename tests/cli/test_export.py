"""`regard export`: what was written is run, and what is said of it is true."""

import re

import ctranslate2
import numpy as np
import pytest

from regard.cli import main
from regard.cli.verbs.export import FORMATS
from regard.config import ModelConfig
from regard.errors import BundleError
from regard.exchange.verification import compare, draw_probe
from tests.cli.conftest import Answer
from tests.exchange.folders import small_folder
from tests.refusals import refused
from tests.serve.single_stack_models import save_single_stack_models


@pytest.fixture
def run(capsys):
    def run(*words):
        with pytest.raises(SystemExit) as ended:
            main(["export", *map(str, words)])
        return Answer(ended.value.code or 0, *capsys.readouterr())

    return run


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return small_folder(tmp_path_factory.mktemp("export"))


@pytest.mark.parametrize(("quantisation", "least", "most"), [("float32", 0, 1e-4), ("int8", 1e-4, 1)])
def test_ctranslate2_runs_what_was_exported(run, model, tmp_path, quantisation, least, most):
    found = run(model, tmp_path / "out", "--to", "ctranslate2", "--quantisation", quantisation)
    assert found.status == 0, found.err
    n_tokens, difference = re.search(r"CTranslate2: (\d+) tokens .* (\S+)$", found.out, re.MULTILINE).groups()
    assert int(n_tokens) == draw_probe(ModelConfig()).n_tokens
    assert least <= float(difference) <= most
    assert ctranslate2.Translator(str(tmp_path / "out")).compute_type.startswith(quantisation)


def test_ctranslate2_is_int8_unless_something_else_is_given(run, model, tmp_path):
    found = run(model, tmp_path / "out", "--to", "ctranslate2")
    assert found.status == 0, found.err
    assert ctranslate2.Translator(str(tmp_path / "out")).compute_type.startswith("int8")
    assert run(model, tmp_path / "other", "--to", "onnx", "--texts", "a.txt").status == 2
    assert run(model, tmp_path / "other", "--to", "onnx", "--quantisation", "int8").status == 2
    assert not (tmp_path / "other").exists()


def test_formats_and_quantisations_that_do_not_exist_are_refused_with_those_that_do(run, model, tmp_path):
    found = run(model, tmp_path / "out", "--to", "word")
    assert (found.status, found.out) == (2, "")
    assert all(name in found.err for name in FORMATS)
    found = run(model, tmp_path / "out", "--to", "ctranslate2", "--quantisation", "int3")
    assert found.status == 2
    assert "int8" in found.err
    assert not (tmp_path / "out").exists()


def test_everything_that_cannot_be_expressed_is_named_at_once(run, tmp_path):
    labeller = save_single_stack_models(tmp_path, ["good", "bad"]) / "labeller"
    found = run(labeller, tmp_path / "out", "--to", "huggingface")
    assert found.status == 2
    assert "error[inexpressible_setting]" in found.err
    assert "model.positions = 'sinusoidal'" in found.err
    assert "SentencePiece model, which BertTokenizer cannot read" in found.err


def test_what_computes_something_else_is_not_passed_off_as_the_same():
    given = draw_probe(ModelConfig(vocab_size=11, d_model=8, n_heads=2), count=2)
    ours = [np.zeros((len(ids) + 1, 1)) for ids in given.outputs]
    theirs = [rows + 0.002 for rows in ours]
    with refused("wrong_export", "somebody", error=BundleError):
        compare("somebody", given, ours, theirs, exact=True)
    assert compare("somebody", given, ours, theirs, exact=False).difference == pytest.approx(0.002)
