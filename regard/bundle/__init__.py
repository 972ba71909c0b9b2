"""The model folder: everything needed to run a model, and nothing executable.

    model.safetensors   the weights; a shared one once, under its first name; matrices optionally in 8 bits
    config.toml         the sections [model], [decoding] and [task], as `--config` reads them
    subwords.model      optional: the subword model
    labels.json         optional: the labels of a classifier, in the order of its outputs
    metrics.json        optional: measurements
    alignment.json      optional: which heads of cross-attention align words
    shortlist.safetensors  optional: the output tokens that each input token may become
    card.md             the model card, for people
    manifest.json       the format number, and size and sha256 of every other file

A folder is written beside its place and renamed into place, so it is complete or absent. On loading, every
file must match the manifest and every weight the configuration; all problems are reported together.

The format number grows when older versions could not read what is written. A new kind of file does not make
it grow: a version checks files that it does not know, and ignores them.

A folder can be described without torch, which is imported only to make tensors of the weights.
"""

from regard.bundle.bundle import Bundle, Description, compact, describe_bundle, load_bundle, save_bundle
from regard.bundle.weights import weights_hash

__all__ = [
    "Bundle",
    "Description",
    "compact",
    "describe_bundle",
    "load_bundle",
    "save_bundle",
    "weights_hash",
]
