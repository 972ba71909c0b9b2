"""What is written is run with onnxruntime, and says what the model says."""

import ast
import json
import re
import subprocess
import sys
from contextlib import redirect_stdout
from io import StringIO
from typing import Any

import numpy as np
import pytest
import torch
from onnxruntime import InferenceSession
from tokenizers import Tokenizer
from tokenizers.models import WordPiece

import regard
from regard.bundle import load_bundle, save_bundle
from regard.cli import main
from regard.config import DecodingConfig, TaskConfig
from regard.errors import BundleError, ConfigError
from regard.exchange.onnx import export as to_onnx
from regard.exchange.onnx.export import exported, write_onnx
from regard.exchange.onnx.graphs import ClassifierGraph
from regard.exchange.onnx.ports import interfaces
from regard.exchange.onnx.running import onnx_log_probs
from regard.exchange.verification import compared, log_probs, probe
from regard.model.build import build
from regard.packing import pack
from regard.text.vocabularies.imported import TokenizerVocabulary, tokenizer_model
from regard.text.vocabularies.subwords import Subwords, learn_subwords
from tests.architecture.sources import ROOT
from tests.exchange.folders import torch_greedy
from tests.model.small import small_config, small_model, stirred

TEXT = "the cat sat on the mat, and so did the dog"
LABELS = ["fine", "so-so", "bad", "odd", "none"]
SETTINGS: dict[str, dict[str, Any]] = {
    "encoder-decoder": {
        "decoder_layers": 2,
        "positions": "rotary",
        "norm_position": "pre",
        "norm": "rms",
        "feed_forward": "swiglu",
    },
    "decoder": {
        "positions": "learned",
        "feed_forward": "gelu-tanh",
        "similarity": "additive",
        "output_bias": True,
    },
    "encoder": {"attention_bias": True, "similarity": "cosine", "embedding_norm": True, "label_head": "tanh"},
}

pytestmark = pytest.mark.slow


def written(folder, architecture, subwords, *, task=None, **changes):
    """A model folder, and the ONNX folder that `regard export` makes of it."""
    sizes = {"vocab_size": subwords.vocab_size, "max_length": 61, "encoder_layers": 1, "decoder_layers": 1}
    torch.manual_seed(1)
    model = stirred(build(small_config(architecture=architecture, **sizes | changes)))
    about: dict[str, Any] = {"task": task} | ({"labels": LABELS} if architecture == "encoder" else {})
    decoding = DecodingConfig(extra_length=9)
    save_bundle(folder / "model", model, subwords=subwords.model, decoding=decoding, **about)
    with redirect_stdout(StringIO()) as out, pytest.raises(SystemExit) as ended:
        main(["export", str(folder / "model"), str(folder / "onnx"), "--to", "onnx"])
    assert not ended.value.code
    assert float(re.search(r"verified by onnxruntime: .* differ by (\S+) at most", out.getvalue())[1]) < 1e-4
    return folder / "model", folder / "onnx"


# One test for all that is asked of a folder: to write one takes seconds.
@pytest.mark.parametrize("architecture", SETTINGS)
def test_what_is_written_says_what_the_model_says(architecture, tmp_path):
    subwords = Subwords(learn_subwords([TEXT] * 4, vocab_size=300, tags=("en", "zh")))
    folder, onnx = written(tmp_path, architecture, subwords, **SETTINGS[architecture])
    assert_ports_are_as_told(onnx)
    assert not any(str(ROOT).encode() in graph.read_bytes() for graph in onnx.glob("*.onnx"))
    assert_another_model_is_found_out(folder, onnx)
    assert_example_agrees(folder, onnx, subwords)


def assert_ports_are_as_told(onnx):
    """Names, types and sizes of all that goes in and comes out are those of `config.json`."""
    config = json.loads((onnx / "config.json").read_text(encoding="utf-8"))
    types = {"tensor(int64)": "int64", "tensor(float)": "float32"}
    for name, told in config["graphs"].items():
        session = InferenceSession(onnx / f"{name}.onnx")
        for ports, side in ((session.get_inputs(), told["inputs"]), (session.get_outputs(), told["outputs"])):
            found = [(port.name, types[port.type]) for port in ports]
            assert found == [(key, each["dtype"]) for key, each in side.items()]
            for port in ports:
                for size, expected in zip(port.shape, side[port.name]["shape"], strict=True):
                    assert size == expected or (isinstance(size, str) and isinstance(expected, str))


def assert_another_model_is_found_out(folder, onnx):
    """Verification does not pass what a slightly different model would say."""
    bundle = load_bundle(folder)
    with torch.no_grad():
        bundle.model.output_probabilities.weight[3] += 0.1
    given, ends = probe(bundle.config), {"bos": 1, "eos": 2}
    theirs = onnx_log_probs(onnx, bundle.config, given, **ends)
    with pytest.raises(BundleError, match="computes something else"):
        compared("onnxruntime", given, log_probs(bundle.model, given, **ends), theirs, exact=True)


def run_example(folder, *words):
    """What the folder's program prints where there is neither torch nor regard."""
    alone = "import runpy, sys; del sys.argv[0]; sys.modules |= {'torch': None, 'regard': None}"
    code = f"{alone}; runpy.run_path(sys.argv[0], run_name='__main__')"
    command = [sys.executable, "-c", code, str(folder / "example.py"), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.rstrip("\n")


def assert_example_agrees(folder, onnx, subwords):
    """The folder's program, which is also in its README, says what the model says."""
    program = (onnx / "example.py").read_text(encoding="utf-8")
    assert f"```python\n{program}```" in (onnx / "README.md").read_text(encoding="utf-8")
    bundle = load_bundle(folder)
    ids = subwords.encode_one("the mat").tolist()
    match bundle.config.architecture:
        case "encoder-decoder":
            read = (subwords.tag_id("zh"), *ids)
            (walked,) = torch_greedy(folder, [read], [len(read) + 9])
            assert run_example(onnx, "the mat", "zh") == subwords.decode(walked.ids)
        case "decoder":
            continuation = regard.load(folder).generate("the mat", max_tokens=50, temperature=0)
            assert run_example(onnx, "the mat") == "the mat" + continuation.text
        case "encoder":
            expected = regard.load(folder).classify("the mat").probabilities
            found = ast.literal_eval(run_example(onnx, "the mat"))
            assert [*found] == [*expected]
            assert [*found.values()] == pytest.approx([*expected.values()], abs=1e-5)


def test_labels_that_do_not_shut_each_other_out_have_probabilities_of_their_own(tmp_path):
    subwords = Subwords(learn_subwords([TEXT] * 4, vocab_size=300))
    folder, onnx = written(tmp_path, "encoder", subwords, task=TaskConfig(label_separator="|"))
    assert_example_agrees(folder, onnx, subwords)


def test_a_vocabulary_from_elsewhere_goes_along_without_an_example(tmp_path):
    pieces = ["[UNK]", "[CLS]", "[SEP]", "the", "mat"]
    tokenizer = Tokenizer(WordPiece(dict(zip(pieces, range(5), strict=True)), unk_token="[UNK]"))
    ends = {"bos": 1, "eos": 2, "cls": 1, "closing": (2,)}
    vocabulary = TokenizerVocabulary(tokenizer_model("wordpiece", tokenizer.to_str(), vocab_size=5, **ends))
    _, onnx = written(tmp_path, "encoder", vocabulary)
    config = json.loads((onnx / "config.json").read_text(encoding="utf-8"))
    assert (config["cls_id"], config["closing_ids"], config["labels"]) == (1, [2], LABELS)
    assert (onnx / config["subwords"]).read_bytes() == vocabulary.model
    assert "from elsewhere" in (onnx / "README.md").read_text(encoding="utf-8")
    assert not (onnx / "example.py").exists()


def test_many_weights_lie_beside_their_graph(monkeypatch, tmp_path):
    monkeypatch.setattr(to_onnx, "ONE_FILE", 0)
    model = small_model(architecture="encoder", encoder_layers=1, dtype=torch.float32)
    files = exported(ClassifierGraph(model).eval(), "classifier", interfaces(model.config)["classifier"])
    assert [*files] == ["classifier.onnx", "classifier.onnx.data"]
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    read = {"input_ids": np.array([[3, 1, 4, 1, 5]]), "attention_mask": np.ones((1, 5), np.int64)}
    (logits,) = InferenceSession(tmp_path / "classifier.onnx").run(None, read)
    with torch.no_grad():
        np.testing.assert_allclose(logits, model(pack([[3, 1, 4, 1, 5]])), atol=1e-5)


def test_a_model_without_subwords_is_refused(tmp_path):
    folder = save_bundle(tmp_path / "model", build(small_config()))
    with pytest.raises(BundleError, match=r"has no subwords\.model"):
        write_onnx(folder, tmp_path / "onnx")
    assert not (tmp_path / "onnx").exists()


def test_what_is_in_the_way_stays_and_is_named_before_any_work(tmp_path):
    (tmp_path / "onnx").mkdir()
    (tmp_path / "onnx" / "poem.txt").write_text("Über allen Gipfeln", encoding="utf-8")
    with pytest.raises(BundleError, match=r"it holds poem\.txt"):
        write_onnx(tmp_path / "nowhere", tmp_path / "onnx")


def test_weights_are_not_made_coarser(tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["export", str(tmp_path), str(tmp_path / "onnx"), "--to", "onnx", "--quantisation", "int8"])
    assert "ONNX is written in float32, not in int8" in capsys.readouterr().err


def test_a_library_that_is_missing_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(to_onnx, "find_spec", lambda name: None if name == "onnxruntime" else name)
    with pytest.raises(ConfigError, match=r"onnxruntime is needed.*pip install 'regard\[exchange\]'"):
        write_onnx(tmp_path, tmp_path / "onnx")
