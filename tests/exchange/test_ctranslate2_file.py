"""The file of weights is, to the byte, what CTranslate2's own specifications would write."""

import numpy as np
import pytest
from ctranslate2.specs import transformer_spec as specs
from ctranslate2.specs.model_spec import index_spec

from regard.bundle import describe_bundle
from regard.bundle.weights import float32_weights
from regard.exchange.ctranslate2.convert import ACTIVATIONS, variables_of
from regard.exchange.ctranslate2.weights_file import quantised, to_bytes
from tests.exchange.folders import small_folder

KINDS = {
    "the paper's": {},
    "unlike it": {
        "norm": "rms", "norm_position": "pre", "feed_forward": "swiglu", "positions": "rotary",
        "shared_embeddings": "none", "attention_bias": True, "d_k": 10, "d_v": 10, "similarity": "dot",
    },
}  # fmt: skip

# Attributes that are written by them at their default values, and by us not at all.
DEFAULTS = (
    "alibi",
    "alibi_use_positive_positions",
    "alignment_heads",
    "alignment_layer",
    "scale_alibi",
    "start_from_zero_embedding",
)


def specification(config):
    """Their description of a model, with every weight still to be set."""
    settings = {
        "num_heads": config.n_heads,
        "pre_norm": config.norm_position == "pre",
        "activation": ACTIVATIONS[config.feed_forward],
        "ffn_glu": config.feed_forward in ("swiglu", "geglu"),
        "rms_norm": config.norm == "rms",
        "head_dim": config.key_width,
        "rotary_dim": 0 if config.positions == "rotary" else None,
    }
    decoder = specs.TransformerDecoderSpec(config.decoder_layers, **settings)
    for name in DEFAULTS:
        delattr(decoder, name)
    return specs.TransformerSpec(specs.TransformerEncoderSpec(config.encoder_layers, **settings), decoder)


@pytest.mark.parametrize("quantisation", ["float32", "int8", "int16", "float16", "bfloat16"])
@pytest.mark.parametrize("changes", KINDS.values(), ids=KINDS)
def test_it_is_what_their_own_specification_would_write(tmp_path, changes, quantisation):
    folder = small_folder(tmp_path, **changes)
    config = describe_bundle(folder).config
    variables = dict(variables_of(config, float32_weights((folder / "model.safetensors").read_bytes())))
    ours = to_bytes(quantised(variables, quantisation))
    theirs = specification(config)
    for name, value in variables.items():
        scope, _, attribute = name.rpartition("/")
        setattr(index_spec(theirs, scope), attribute, value.copy() if value.ndim else value[()])
    for vocabulary in theirs._vocabularies.values():
        vocabulary.append([str(i) for i in range(config.vocab_size)])
    theirs.validate()  # lists every weight that is still to be set
    theirs.optimize(quantisation)
    theirs.save(str(tmp_path))
    assert (tmp_path / "model.bin").read_bytes() == ours


@pytest.mark.parametrize("quantisation", ["int8", "int16"])
def test_rows_of_next_to_nothing_become_zeros(quantisation):
    matrix = np.array([[1e-38, -1e-39], [0, 0]], np.float32)
    found = quantised({"a/weight": matrix}, quantisation)
    assert not found["a/weight"].any()
    assert np.isfinite(found["a/weight_scale"]).all()


def test_quantised_weights_are_near_the_old_ones():
    matrix = np.random.default_rng(1).normal(size=(7, 101)).astype(np.float32)
    for quantisation, steps in (("int8", 127), ("int16", 1024)):
        found = quantised({"a/weight": matrix}, quantisation)
        back = found["a/weight"] / found["a/weight_scale"][..., None]
        assert np.abs(back - matrix).max() <= np.abs(matrix).max() / steps / 2 * 1.001
