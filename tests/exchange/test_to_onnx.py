"""The exported folder is run with onnxruntime, and computes what the model does."""

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
from regard.exchange.onnx.export import export_graph, onnx_log_probs, write_onnx
from regard.exchange.onnx.graphs import Interface, Port
from regard.exchange.verification import compare, draw_probe, log_probs
from regard.model.build import build
from regard.text.vocabularies.imported import TokenizerVocabulary, tokenizer_model
from regard.text.vocabularies.subwords import Subwords, learn_subwords
from tests.architecture.sources import ROOT
from tests.exchange.folders import torch_greedy
from tests.model.small import small_config, stirred
from tests.refusals import refused

TEXT = "the cat sat on the mat, and so did the dog"
LABELS = ["fine", "so-so", "bad", "odd", "none"]
# Every setting is exported once, and most of them in the models of few layers: exporting takes seconds.
SETTINGS: dict[str, dict[str, Any]] = {
    "encoder-decoder": {"decoder_layers": 2},
    "decoder": {
        "positions": "rotary",
        "norm_position": "pre",
        "norm": "rms",
        "feed_forward": "swiglu",
        "similarity": "cosine",
        "output_bias": True,
    },
    "encoder": {
        "positions": "learned",
        "feed_forward": "gelu-tanh",
        "attention_bias": True,
        "similarity": "additive",
        "embedding_norm": True,
        "label_head": "tanh",
    },
}

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def subwords():
    return Subwords(learn_subwords([TEXT] * 4, vocab_size=300, tags=("en", "zh")))


@pytest.fixture(scope="module")
def exported_before():
    return {}


@pytest.fixture(autouse=True)
def _export_equal_graphs_once(monkeypatch, exported_before):
    def export_once(graph, name, interface):
        weights = b"".join(weight.numpy().tobytes() for weight in graph.state_dict().values())
        key = (graph.model.config, hash(weights))
        if (key, name) not in exported_before:
            exported_before[key, name] = export_graph(graph, name, interface)
        return exported_before[key, name]

    monkeypatch.setattr(to_onnx, "export_graph", export_once)


def written(folder, architecture, vocabulary, *, task=None):
    """A model folder, and the ONNX folder that `regard export` makes of it."""
    sizes = {
        "vocab_size": vocabulary.vocab_size,
        "max_length": 61,
        "encoder_layers": 1,
        "decoder_layers": 1,
    }
    torch.manual_seed(1)
    model = stirred(build(small_config(architecture=architecture, **sizes | SETTINGS[architecture])))
    about: dict[str, Any] = {"task": task} | ({"labels": LABELS} if architecture == "encoder" else {})
    decoding = DecodingConfig(extra_length=9)
    save_bundle(folder / "model", model, subwords=vocabulary.model, decoding=decoding, **about)
    with redirect_stdout(StringIO()) as out, pytest.raises(SystemExit) as ended:
        main(["export", str(folder / "model"), str(folder / "onnx"), "--to", "onnx"])
    assert not ended.value.code
    assert float(re.search(r"onnxruntime: .* ([-+.e\d]+)$", out.getvalue(), re.MULTILINE)[1]) < 1e-4
    return folder / "model", folder / "onnx"


@pytest.mark.parametrize("architecture", SETTINGS)
def test_the_exported_model_computes_what_the_model_does(architecture, subwords, tmp_path):
    folder, onnx = written(tmp_path, architecture, subwords)
    assert_ports_are_as_described(onnx)
    assert not any(str(ROOT).encode() in graph.read_bytes() for graph in onnx.glob("*.onnx"))
    assert_another_model_is_refused(folder, onnx)
    assert_example_agrees(folder, onnx, subwords)


def assert_ports_are_as_described(onnx):
    """Names, types and sizes of all that goes in and comes out are those of `config.json`."""
    config = json.loads((onnx / "config.json").read_text(encoding="utf-8"))
    types = {"tensor(int64)": "int64", "tensor(float)": "float32"}
    for name, described in config["graphs"].items():
        session = InferenceSession(onnx / f"{name}.onnx")
        for ports, side in (
            (session.get_inputs(), described["inputs"]),
            (session.get_outputs(), described["outputs"]),
        ):
            found = [(port.name, types[port.type]) for port in ports]
            assert found == [(key, each["dtype"]) for key, each in side.items()]
            for port in ports:
                for size, expected in zip(port.shape, side[port.name]["shape"], strict=True):
                    assert size == expected or (isinstance(size, str) and isinstance(expected, str))


def assert_another_model_is_refused(folder, onnx):
    """Verification does not pass what a slightly different model would say."""
    bundle = load_bundle(folder)
    with torch.no_grad():
        bundle.model.output_probabilities.weight[3] += 0.1
    sequences, ends = draw_probe(bundle.config), {"bos": 1, "eos": 2}
    theirs = onnx_log_probs(onnx, bundle.config, sequences, **ends)
    with refused("wrong_export", "onnxruntime", error=BundleError):
        compare("onnxruntime", sequences, log_probs(bundle.model, sequences, **ends), theirs, exact=True)


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


def test_a_model_of_several_labels_has_a_probability_for_every_label(subwords, tmp_path):
    folder, onnx = written(tmp_path, "encoder", subwords, task=TaskConfig(label_separator="|"))
    assert_example_agrees(folder, onnx, subwords)


def test_an_imported_vocabulary_is_exported_without_an_example(subwords, tmp_path):
    n = subwords.vocab_size
    pieces = ["[UNK]", "[CLS]", "[SEP]", *(f"piece{i}" for i in range(3, n))]
    tokenizer = Tokenizer(WordPiece(dict(zip(pieces, range(n), strict=True)), unk_token="[UNK]"))
    ends = {"bos": 1, "eos": 2, "cls": 1, "closing": (2,)}
    vocabulary = TokenizerVocabulary(tokenizer_model("wordpiece", tokenizer.to_str(), vocab_size=n, **ends))
    _, onnx = written(tmp_path, "encoder", vocabulary)
    config = json.loads((onnx / "config.json").read_text(encoding="utf-8"))
    assert (config["cls_id"], config["closing_ids"], config["labels"]) == (1, [2], LABELS)
    assert (onnx / config["subwords"]).read_bytes() == vocabulary.model
    assert "imported vocabulary" in (onnx / "README.md").read_text(encoding="utf-8")
    assert not (onnx / "example.py").exists()


def test_large_weights_are_in_a_file_beside_their_graph(monkeypatch, tmp_path):
    monkeypatch.setattr(to_onnx, "ONE_FILE", 0)
    graph = torch.nn.Linear(3, 7).eval()
    ports = Interface((Port("x", ("batch", 3)),), (Port("y", ("batch", 7)),))
    files = export_graph(graph, "linear", ports)
    assert [*files] == ["linear.onnx", "linear.onnx.data"]
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    x = torch.randn(5, 3)
    (y,) = InferenceSession(tmp_path / "linear.onnx").run(None, {"x": x.numpy()})
    with torch.no_grad():
        np.testing.assert_allclose(y, graph(x), atol=1e-5)


def test_a_model_without_subwords_is_refused(tmp_path):
    folder = save_bundle(tmp_path / "model", build(small_config()))
    with refused("missing_file", str(folder), "subwords.model", error=BundleError):
        write_onnx(folder, tmp_path / "onnx")
    assert not (tmp_path / "onnx").exists()


def test_an_existing_folder_is_refused_before_any_work(tmp_path):
    (tmp_path / "onnx").mkdir()
    (tmp_path / "onnx" / "poem.txt").write_text("Über allen Gipfeln", encoding="utf-8")
    with refused("folder_exists", "poem.txt", error=BundleError):
        write_onnx(tmp_path / "nowhere", tmp_path / "onnx")


def test_onnx_is_not_quantised(tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["export", str(tmp_path), str(tmp_path / "onnx"), "--to", "onnx", "--quantisation", "int8"])
    assert "error[unknown_quantisation]: --quantisation int8" in capsys.readouterr().err


def test_a_missing_library_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(to_onnx, "find_spec", lambda name: None if name == "onnxruntime" else name)
    with refused("missing_library", "onnxruntime", "pip install 'regard[exchange]'", error=ConfigError):
        write_onnx(tmp_path, tmp_path / "onnx")


def test_positions_that_the_graphs_lack_are_refused(tmp_path):
    folder = save_bundle(tmp_path / "model", build(small_config(positions="alibi")), subwords=b"any")
    with refused("not_expressible", "model.positions", "alibi", "rotary", error=ConfigError):
        write_onnx(folder, tmp_path / "onnx")
    assert not (tmp_path / "onnx").exists()
