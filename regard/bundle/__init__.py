"""The model folder: all that is needed to run a model, and nothing that can execute.

    model.safetensors   every weight once; one that several boxes share, under the first of its names;
                        matrices perhaps in 8 bits, with a scale for each row
    config.toml         the sections [model], [decoding] and [task], as `--config` reads them
    subwords.model      the subword model, where there is one
    metrics.json        what was measured, where anything was
    alignment.json      which heads of cross-attention align words, where that was measured
    card.md             what the model is, for people
    manifest.json       the number of this format, and size and sha256 of every other file

A folder is written beside its place and renamed into it, so it is there whole or not at all. On loading,
every file must be what the manifest says, and every weight what the configuration asks for; all that is wrong
is told at once.

The number of the format grows when older versions could no longer read what is written. One more file does
not make it grow: a file that a version does not know is checked and left alone.

A folder can be described without torch, which is imported only where weights become tensors.
"""

from regard.bundle.bundle import Bundle, Description, describe_bundle, load_bundle, save_bundle
from regard.bundle.compact import compact
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
