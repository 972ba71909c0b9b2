"""Write one small model folder of each architecture, and what it answers, into `tests/golden/`.

They are written once for a format and then kept: a test loads them for ever after, and must get the same
numbers. Nothing here replaces a folder that exists. To add some for a new format, raise `FORMAT` in
`regard/bundle/manifest.py` first; to add some for new settings, add them to `MODELS` under a new name.
"""

import json
from pathlib import Path

import torch

from regard.bundle import save_bundle
from regard.bundle.manifest import FORMAT
from regard.config import DecodingConfig, ModelConfig
from regard.model.build import build
from regard.packing import pack

FOLDER = Path(__file__).parents[1] / "tests" / "golden"

SIZES = {"vocab_size": 19, "d_model": 8, "n_heads": 2, "d_ff": 11, "max_length": 13}

MODELS = {
    # The paper's choices …
    "encoder-decoder": ModelConfig(**SIZES, encoder_layers=2, decoder_layers=1),
    # … and, between these two, one of every other sort of weight.
    "decoder": ModelConfig(
        **SIZES,
        architecture="decoder",
        decoder_layers=2,
        d_k=4,
        d_v=3,
        norm_position="pre",
        norm="rms",
        feed_forward="swiglu",
        positions="rotary",
        similarity="bilinear",
        shared_embeddings="none",
    ),
    "encoder": ModelConfig(
        **SIZES,
        architecture="encoder",
        encoder_layers=1,
        n_labels=3,
        d_k=5,
        feed_forward="geglu",
        positions="learned",
        similarity="additive",
        attention_bias=True,
    ),
}

INPUTS = [[3, 1, 18, 7], [5], [2, 2, 11, 13, 17]]
OUTPUTS = [[0, 4], [0, 9, 16], [0]]
READS = {"encoder-decoder": (INPUTS, OUTPUTS), "decoder": (OUTPUTS,), "encoder": (INPUTS,)}


def write(name: str, config: ModelConfig) -> Path:
    """One folder, and beside it what the model reads and the log-probabilities that it answers with."""
    place = FOLDER / f"v{FORMAT}-{name}"
    model = build(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            # Trained weights are not all ones and zeros: a gain or a bias that is lost must show.
            parameter.add_(torch.randn_like(parameter), alpha=0.1)
        reads = READS[config.architecture]
        log_probs = torch.log_softmax(model(*map(pack, reads)), dim=-1)
    save_bundle(
        place,
        model,
        subwords=b"not a real subword model\n",
        metrics={"bleu": 31.5},
        decoding=DecodingConfig(beam_size=3),
        notes="A stored folder: it must keep loading, and keep giving the same answers.",
    )
    rows = [[round(value, 7) for value in row] for row in log_probs.tolist()]
    text = json.dumps({"reads": reads, "log_probs": rows})
    place.with_suffix(".json").write_text(text.replace("], [", "],\n [") + "\n", encoding="utf-8")
    return place


if __name__ == "__main__":
    torch.manual_seed(20170612)
    for name, config in MODELS.items():
        print(write(name, config))
