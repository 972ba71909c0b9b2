"""A converted model is the same model: whatever its configuration, CTranslate2 says what torch says."""

import json
import re
import subprocess
import sys

import ctranslate2
import numpy as np
import pytest
import torch

from regard import bundled
from regard.bundle import save_bundle
from regard.bundle.weights import float32_weights
from regard.config import DecodingConfig, ModelConfig, TaskConfig
from regard.config.checking import types_of
from regard.errors import BundleError, ConfigError
from regard.exchange.ctranslate2.convert import export_ctranslate2, inexpressible, write_ctranslate2
from regard.exchange.huggingface import import_model
from regard.model.build import build
from regard.text import Subwords, learn_subwords
from tests.exchange.folders import BOS, EOS, SIZES, sequences, small_folder, torch_greedy, torch_scores
from tests.exchange.foreign import bart, marian
from tests.refusals import refused

EXPRESSIBLE = {
    "the paper's": {},
    "pre-norm": {"norm_position": "pre"},
    "RMSNorm": {"norm": "rms"},
    "pre-norm, RMSNorm": {"norm": "rms", "norm_position": "pre"},
    "GELU": {"feed_forward": "gelu"},
    "GELU by tanh": {"feed_forward": "gelu-tanh"},
    "Swish": {"feed_forward": "swish"},
    "SwiGLU": {"feed_forward": "swiglu"},
    "GeGLU": {"feed_forward": "geglu"},
    "learned positions": {"positions": "learned"},
    "rotary positions": {"positions": "rotary"},
    "no positions": {"positions": "none"},
    "dot": {"similarity": "dot"},
    "bilinear": {"similarity": "bilinear", "attention_bias": True},
    "two-way": {"shared_embeddings": "two-way"},
    "unshared": {"shared_embeddings": "none"},
    "embeddings as they are": {"scale_embeddings": False},
    "biases in attention": {"attention_bias": True},
    "a bias at the output": {"output_bias": True},
    "a norm on embeddings": {"embedding_norm": True},
    "another epsilon": {"norm_epsilon": 1e-2},
    "other heads": {"d_k": 6, "d_v": 6},
    "other heads, rotary": {"d_k": 10, "d_v": 10, "positions": "rotary"},
    "a deep decoder": {"encoder_layers": 1, "decoder_layers": 3},
}
REFUSED = {
    "architecture": ({"architecture": "decoder"}, ["model.architecture"]),
    "widths": ({"d_k": 5, "d_v": 7}, ["model.d_k = 5 and model.d_v = 7"]),
    "width of values": ({"d_v": 7}, ["model.d_k = 8 and model.d_v = 7"]),
    "cosine": ({"similarity": "cosine"}, ['model.similarity = "cosine"']),
    "bilinear, rotary": ({"similarity": "bilinear", "positions": "rotary"}, ['model.positions = "rotary"']),
    "all": (
        {"architecture": "encoder", "n_labels": 3, "label_head": "tanh", "d_v": 5, "similarity": "additive"},
        ["model.architecture", "model.d_v = 5", 'model.similarity = "additive"'],
    ),
}


def loaded(folder, compute_type="float32"):
    return ctranslate2.Translator(str(folder), compute_type=compute_type, intra_threads=1)


def spelt(sequences):
    return [[str(i) for i in ids] for ids in sequences]


@pytest.mark.parametrize("changes", EXPRESSIBLE.values(), ids=EXPRESSIBLE)
def test_every_setting_that_can_be_expressed_is(tmp_path, changes):
    model = small_folder(tmp_path, **changes)
    translator = loaded(export_ctranslate2(model, tmp_path / "theirs", bos=BOS, eos=EOS))
    sources, targets = sequences(31, 19), sequences(31, 23, seed=2)
    scored = translator.score_batch(spelt(sources), spelt(targets))
    for theirs, ours in zip(scored, torch_scores(model, sources, targets), strict=True):
        assert theirs.log_probs == pytest.approx(ours, abs=1e-4)
    written = translator.translate_batch(
        spelt(sources), beam_size=1, max_decoding_length=29, min_decoding_length=0
    )
    expected = torch_greedy(model, sources, [29] * len(sources))
    assert [each.hypotheses[0] for each in written] == spelt(each.ids for each in expected)


@pytest.mark.parametrize(("changes", "named"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_expressed_is_refused_by_name_and_all_at_once(tmp_path, changes, named):
    model = small_folder(tmp_path, **changes)
    with refused("inexpressible_setting", str(model), error=ConfigError) as caught:
        export_ctranslate2(model, tmp_path / "theirs", bos=BOS, eos=EOS)
    assert len(caught.value.problems) == len(named)
    assert all(name in problem for name, problem in zip(named, caught.value.problems, strict=True))
    assert not (tmp_path / "theirs").exists()


def test_every_setting_of_a_model_was_thought_of():
    """A new setting must be expressed or refused: it cannot be forgotten in silence."""
    tried = {name for changes in EXPRESSIBLE.values() for name in changes}
    tried |= {name for changes, _ in REFUSED.values() for name in changes}
    assert set(types_of(ModelConfig)) - tried - set(SIZES) == {"dropout"}
    assert inexpressible(ModelConfig()) == []


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_weights_of_every_dtype_are_read(tmp_path, dtype):
    torch.manual_seed(3)
    model = build(ModelConfig(**SIZES)).to(dtype)
    folder = save_bundle(tmp_path / "model", model)
    found = float32_weights((folder / "model.safetensors").read_bytes())
    expected = {name: weight.detach().float().numpy() for name, weight in model.named_parameters()}
    assert found.keys() == expected.keys()
    assert all(np.array_equal(found[name], expected[name]) for name in found)


def test_a_damaged_model_folder_is_not_converted(tmp_path):
    model = small_folder(tmp_path)
    weights = bytearray((model / "model.safetensors").read_bytes())
    weights[-1] ^= 1
    (model / "model.safetensors").write_bytes(weights)
    with refused("damaged_model_folder", "model.safetensors", error=BundleError):
        export_ctranslate2(model, tmp_path / "theirs", bos=BOS, eos=EOS)


def test_nothing_is_overwritten(tmp_path):
    model = small_folder(tmp_path)
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "notes.txt").write_text("dear")
    with refused("folder_exists", str(tmp_path / "theirs"), error=BundleError):
        export_ctranslate2(model, tmp_path / "theirs", bos=BOS, eos=EOS)
    assert [path.name for path in (tmp_path / "theirs").iterdir()] == ["notes.txt"]


@pytest.fixture(scope="module")
def subwords():
    lines = [f"the cat sat on {i} mats while two dogs ran" for i in range(40)]
    return Subwords(learn_subwords(lines, 300, threads=1))


def test_others_can_run_it_with_the_pieces_of_the_subword_model(tmp_path, subwords):
    torch.manual_seed(5)
    model = build(ModelConfig(**SIZES | {"vocab_size": subwords.vocab_size})).eval()
    folder = save_bundle(tmp_path / "model", model, subwords=subwords.model)
    theirs = export_ctranslate2(folder, tmp_path / "theirs", bos=subwords.bos_id, eos=subwords.eos_id)
    tokens = json.loads((theirs / "shared_vocabulary.json").read_text())
    assert tokens == subwords.pieces(range(subwords.vocab_size))
    source = subwords.encode_one("the dogs sat").tolist()
    (result,) = loaded(theirs).translate_batch([subwords.pieces(source)], beam_size=1, max_decoding_length=9)
    (expected,) = torch_greedy(folder, [tuple(source)], [9])
    assert result.hypotheses[0] == subwords.pieces(expected.ids)


def test_a_subword_model_of_another_size_is_refused(tmp_path, subwords):
    folder = save_bundle(tmp_path / "model", build(ModelConfig(**SIZES)), subwords=subwords.model)
    with refused("vocabulary_mismatch", f"{subwords.vocab_size} pieces", "97", error=BundleError):
        export_ctranslate2(folder, tmp_path / "theirs", bos=BOS, eos=EOS)


# --- what others need to run it ---------------------------------------------------------------------------

ALONE = """
import sys
for name in ("torch", "transformers", "regard"):
    sys.modules[name] = None  # an import fails
exec(sys.stdin.read())
"""


def readme_code(folder):
    return (folder / "README.md").read_text(encoding="utf-8").split("```python\n")[1].split("```")[0]


def run_alone(folder, code):
    """What code prints in a process of its own, in that folder, without torch, transformers and regard."""
    found = subprocess.run(
        [sys.executable, "-X", "utf8", "-c", ALONE],
        input=code, cwd=folder, capture_output=True, text=True, check=False, encoding="utf-8",
    )  # fmt: skip
    assert found.returncode == 0, found.stderr
    return found.stdout.rstrip("\n")


def test_the_readme_of_a_two_way_model_translates(tmp_path):
    text = "The weather is nice today."
    vocabulary = Subwords(learn_subwords([text, "Das Wetter ist heute schön."] * 9, 290, tags=["en", "de"]))
    torch.manual_seed(5)
    model = build(ModelConfig(**SIZES | {"vocab_size": vocabulary.vocab_size})).eval()
    task, decoding = TaskConfig(source="en", target="de", both_directions=True), DecodingConfig(beam_size=3)
    folder = save_bundle(tmp_path / "model", model, subwords=vocabulary.model, task=task, decoding=decoding)
    write_ctranslate2(folder, tmp_path / "theirs", "int8")
    code = readme_code(tmp_path / "theirs")
    assert len(code.splitlines()) == 5
    ids = [vocabulary.tag_id("de"), *vocabulary.encode_one(text).tolist()]
    (found,) = loaded(tmp_path / "theirs", "int8").translate_batch(
        [vocabulary.pieces(ids)], beam_size=3, length_penalty=0.5, max_decoding_length=SIZES["max_length"] - 1
    )
    expected = vocabulary.decode(
        [vocabulary.pieces(range(vocabulary.vocab_size)).index(piece) for piece in found.hypotheses[0]]
    )
    assert run_alone(tmp_path / "theirs", code) == expected
    assert {"<2en>", "<2de>"} <= {
        *re.findall(r"<2..>", (tmp_path / "theirs" / "README.md").read_text("utf-8"))
    }


@pytest.mark.parametrize(("make", "library"), [(marian, "sentencepiece"), (bart, "tokenizers")])
def test_the_readme_of_an_imported_model_runs(tmp_path, make, library):
    make(tmp_path / "theirs")
    folder = import_model(tmp_path / "theirs", tmp_path / "ours")
    write_ctranslate2(folder, tmp_path / "out", "float32")
    readme = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert f"pip install ctranslate2 {library}" in readme
    assert "SEARCH" not in readme
    run_alone(tmp_path / "out", readme_code(tmp_path / "out"))


@pytest.mark.slow
def test_the_readme_of_the_bundled_translator_translates(tmp_path):
    write_ctranslate2(bundled.folder(), tmp_path / "theirs", "int8")
    found = run_alone(tmp_path / "theirs", readme_code(tmp_path / "theirs"))
    assert {"weather", "today"} <= {*re.findall(r"\w+", found.lower())}
