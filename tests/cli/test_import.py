"""`regard import`, and everything that is done with a model afterwards."""

import json

import pytest
from transformers import BertForSequenceClassification

import regard
from regard.cli import main
from regard.tasks.classify import Classify
from tests.cli.conftest import Answer
from tests.exchange.foreign import ENGLISH, GERMAN, bert, marian, sentences


@pytest.fixture
def run(capsys):
    def run(*words):
        with pytest.raises(SystemExit) as ended:
            main([*map(str, words)])
        return Answer(ended.value.code or 0, *capsys.readouterr())

    return run


@pytest.fixture(scope="module")
def theirs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("opus") / "opus-mt-en-de"
    marian(folder)
    return folder


def test_an_imported_model_translates_is_looked_into_trained_and_exported(run, theirs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))
    found = run("import", theirs, "ours")
    assert found.status == 0, found.err
    assert found.out.startswith(f"{theirs} is in ours: encoder-decoder, ")
    model = regard.load("ours")
    assert model.translate("The cat sat.").engine == "ctranslate2"
    trace = model.look("The cat sat.", "Die Katze saß.")
    assert [token.piece for token in trace.inputs.tokens][-1] == "</s>"
    assert trace.outputs[0].special  # <pad>, from which outputs start
    assert trace.outputs.text == "Die Katze saß."
    for name, words in (("train.en", ENGLISH), ("train.de", GERMAN)):
        (tmp_path / name).write_text("\n".join(sentences(words, 200)), encoding="utf-8")
    steps = ["--set", "training.max_steps=2", "--set", "training.validate_every=2"]
    found = run("train", "train.en", "train.de", "--from", "ours", "--out", "run", *steps)
    assert found.status == 0, found.err
    tuned = regard.load("run")
    assert tuned.subwords.model == model.subwords.model
    found = run("export", "run", "ct2", "--to", "ctranslate2")
    assert (found.status, "verified" in found.out) == (0, True), found.err


def test_settings_that_regard_lacks_are_refused_by_name_and_all_at_once(run, theirs, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    settings = json.loads((theirs / "config.json").read_text())
    changes = {"activation_function": "mish", "normalize_before": True, "encoder_ffn_dim": 5}
    (other / "config.json").write_text(json.dumps(settings | changes))
    found = run("import", other, tmp_path / "ours")
    assert found.status == 2
    assert found.err.splitlines()[0] == f"regard: error[unsupported_setting]: 3 problems in {other}"
    assert all(name in found.err for name in changes)
    (other / "config.json").write_text(json.dumps(settings | {"architectures": ["T5Model"]}))
    found = run("import", other, tmp_path / "ours")
    assert "error[unsupported_setting]" in found.err
    assert "T5Model" in found.err
    assert not (tmp_path / "ours").exists()


def test_what_is_missing_or_damaged_is_named(run, theirs, tmp_path):
    def refusal(folder):
        found = run("import", folder, tmp_path / "ours")
        return found.err.split("[")[1].split("]")[0], found.err

    assert refusal(tmp_path / "nothing")[0] == "missing_folder"
    code, message = refusal(tmp_path)
    assert (code, "config.json" in message) == ("missing_file", True)
    (tmp_path / "config.json").write_bytes((theirs / "config.json").read_bytes())
    code, message = refusal(tmp_path)
    assert (code, "model.safetensors" in message) == ("missing_file", True)
    (tmp_path / "model.safetensors").write_bytes(b"no weights")
    code, message = refusal(tmp_path)
    assert (code, "model.safetensors" in message) == ("unreadable_file", True)


def test_a_bert_is_trained_further_between_its_own_tokens_and_handed_out(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    bert(tmp_path / "theirs", "BertForMaskedLM")
    assert run("import", "theirs", "ours").status == 0
    rows = [f"{('yes', 'no')[i % 2]}\t{text}" for i, text in enumerate(sentences(ENGLISH, 120))]
    (tmp_path / "train.tsv").write_text("\n".join(rows), encoding="utf-8")
    steps = ["--set", "training.max_steps=2", "--set", "training.validate_every=2"]
    found = run("train", "--task", "classify", "train.tsv", "--from", "ours", "--out", "run", *steps)
    assert found.status == 0, found.err
    prepared = Classify().prepared(tmp_path / "run" / "data", regard.RunConfig())
    assert [prepared.test[0][0][-1]] == [*prepared.subwords.closing]
    assert regard.load("run").classify("two cats").label in ("yes", "no")
    found = run("export", "run", "out", "--to", "huggingface")
    assert found.status == 0, found.err
    assert "verified by transformers (BertForSequenceClassification)" in found.out
    assert BertForSequenceClassification.from_pretrained("out").config.id2label == {0: "no", 1: "yes"}
