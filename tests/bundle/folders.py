"""Small models of every kind, and ways to damage their folders."""

import json
from dataclasses import replace

import torch
from safetensors.torch import load_file, save_file

from regard.bundle import load_bundle
from regard.bundle.manifest import manifest_of
from regard.config import ModelConfig
from regard.packing import pack
from tests.refusals import refused

SMALL = ModelConfig(
    vocab_size=19,
    d_model=12,
    n_heads=3,
    d_k=5,
    d_v=7,
    d_ff=17,
    encoder_layers=2,
    decoder_layers=1,
    max_length=23,
)
ALONE = {"decoder": {"architecture": "decoder"}, "encoder": {"architecture": "encoder", "n_labels": 3}}
PRE = {"norm_position": "pre", "norm": "rms"}
KINDS = {
    "three-way": SMALL,
    "two-way": replace(SMALL, shared_embeddings="two-way", positions="learned", **PRE),
    "unshared": replace(SMALL, shared_embeddings="none", similarity="additive", attention_bias=True),
    "bilinear": replace(SMALL, positions="none", similarity="bilinear", feed_forward="gelu"),
    "decoder": replace(SMALL, **ALONE["decoder"]),
    "decoder-rotary": replace(
        SMALL, **ALONE["decoder"], **PRE, d_k=4, positions="rotary", feed_forward="swiglu"
    ),
    "decoder-unshared": replace(SMALL, **ALONE["decoder"], shared_embeddings="none"),
    "encoder": replace(SMALL, **ALONE["encoder"]),
    "encoder-learned": replace(SMALL, **ALONE["encoder"], positions="learned", feed_forward="geglu"),
}


def outputs_of(model):
    texts = pack([[3, 1, 18], [5, 2, 7, 11, 0]]), pack([[0, 4], [0, 9, 13]])
    with torch.no_grad():
        return model.eval()(*texts[: 2 if model.config.architecture == "encoder-decoder" else 1])


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def reseal(folder):
    """Make the manifest match the files again, as after a change on purpose."""
    files = contents(folder)
    files.pop("manifest.json", None)
    (folder / "manifest.json").write_bytes(manifest_of(files, "unchecked"))


def change_weights(folder, change):
    weights = load_file(folder / "model.safetensors")
    save_file(change(weights), folder / "model.safetensors")
    reseal(folder)


def change_manifest(folder, change):
    table = json.loads((folder / "manifest.json").read_text())
    change(table)
    (folder / "manifest.json").write_text(json.dumps(table))


def refusal(folder, code="damaged_model_folder"):
    """The problems with which loading a folder is refused."""
    with refused(code, str(folder)) as caught:
        load_bundle(folder)
    return list(caught.value.problems)


def places(problems):
    """The files or weights that problems begin with."""
    return [problem.removeprefix("weight ").split()[0].rstrip(":") for problem in problems]
