"""Small folders as `transformers` writes them: real classes, random weights, tokenizers learned here."""

from __future__ import annotations

import io
import json
import os
import random
from pathlib import Path
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
import transformers
from sentencepiece import SentencePieceTrainer

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()

ENGLISH, GERMAN = (
    text.split()
    for text in (
        "the cat sat on a mat while two dogs ran after three birds and nobody saw them again",
        "die Katze saß auf der Matte während zwei Hunde drei Vögeln nachliefen niemand sah sie wieder",
    )
)


def sentences(words: list[str], count: int = 300, seed: int = 1) -> list[str]:
    draw = random.Random(seed)
    return [" ".join(draw.choices(words, k=draw.randint(2, 8))).capitalize() + "." for _ in range(count)]


def stirred(model: Any) -> Any:
    """Noise on everything, so that no bias is 0 and no gain 1; biases that are kept as buffers too."""
    torch.manual_seed(3)
    with torch.no_grad():
        for name, weight in model.state_dict(keep_vars=True).items():
            if weight.requires_grad or name.endswith("_bias"):
                weight.add_(0.2 * torch.randn_like(weight))
    return model.eval()


def spm(lines: list[str], vocab_size: int, **options: Any) -> bytes:
    model = io.BytesIO()
    SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=model, vocab_size=vocab_size, hard_vocab_limit=False,
        minloglevel=2, **options,
    )  # fmt: skip
    return model.getvalue()


def pieces_of(model: bytes) -> list[str]:
    from sentencepiece import SentencePieceProcessor

    processor = SentencePieceProcessor(model_proto=model)
    return [processor.id_to_piece(i) for i in range(3, processor.vocab_size())]


def marian(folder: Path, *, pickled: bool = False, forbidden: float | None = None, **changes: Any) -> Any:
    """An OPUS-MT folder and its model. `forbidden` is the bias of padding, which no search takes anyway."""
    folder.mkdir(parents=True)
    models = {
        "source.spm": spm(sentences(ENGLISH), 70),
        "target.spm": spm(sentences(GERMAN), 90, model_type="bpe"),
    }
    # A piece that the table lacks becomes <unk>, and the order is nobody's.
    shared = sorted(
        {piece for model in models.values() for piece in pieces_of(model)} - {"▁mat"}, key=str.swapcase
    )
    named = ["</s>", "<unk>", ">>deu<<", *shared, "<pad>"]
    for name, model in models.items():
        (folder / name).write_bytes(model)
    (folder / "vocab.json").write_text(
        json.dumps({piece: i for i, piece in enumerate(named)}), encoding="utf-8"
    )
    tokenizer = {"source_lang": "eng", "target_lang": "deu", "tokenizer_class": "MarianTokenizer"}
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer))
    sizes = {
        "vocab_size": len(named), "d_model": 24, "encoder_layers": 2, "decoder_layers": 1,
        "encoder_attention_heads": 3, "decoder_attention_heads": 3, "encoder_ffn_dim": 37,
        "decoder_ffn_dim": 37, "max_position_embeddings": 61, "activation_function": "swish",
        "pad_token_id": len(named) - 1, "decoder_start_token_id": len(named) - 1, "scale_embedding": True,
    }  # fmt: skip
    model = stirred(transformers.MarianMTModel(transformers.MarianConfig(**sizes | changes)))
    model.generation_config.num_beams = 3
    if forbidden is not None:
        model.final_logits_bias[0, -1] = forbidden
    return saved(model, folder, pickled=pickled)


def saved(model: Any, folder: Path, *, pickled: bool = False) -> Any:
    model.save_pretrained(folder)
    if pickled:
        (folder / "model.safetensors").unlink()
        torch.save(model.state_dict(), folder / "pytorch_model.bin")
    return model
