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
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

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


def bert(folder: Path, kind: str, *, old: bool = False, **changes: Any) -> Any:
    """A BERT and its folder; `old` has a `vocab.txt` alone."""
    trained = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    trained.normalizer = normalizers.BertNormalizer(lowercase=True)
    trained.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    lines = [*sentences(ENGLISH), *sentences(GERMAN)]
    trained.train_from_iterator(lines, trainers.WordPieceTrainer(vocab_size=150, special_tokens=special))
    words = trained.get_vocab()
    folder.mkdir(parents=True)
    if old:
        (folder / "vocab.txt").write_text("\n".join(sorted(words, key=words.__getitem__)), encoding="utf-8")
    else:
        transformers.BertTokenizer(vocab=words).save_pretrained(folder)
    sizes = {
        "vocab_size": len(words), "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3,
        "intermediate_size": 37, "max_position_embeddings": 41, "type_vocab_size": 2,
        "id2label": {0: "bad", 1: "fine", 2: "good"}, "label2id": {"bad": 0, "fine": 1, "good": 2},
    }  # fmt: skip
    return saved(stirred(getattr(transformers, kind)(transformers.BertConfig(**sizes | changes))), folder)


def byte_pairs(special: list[str]) -> tuple[dict[str, int], list[tuple[str, str]]]:
    trained = Tokenizer(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=330, special_tokens=special, initial_alphabet=alphabet)
    trained.train_from_iterator([*sentences(ENGLISH), *sentences(GERMAN)], trainer)
    table = json.loads(trained.to_str())["model"]
    return table["vocab"], [tuple(pair) for pair in table["merges"]]


def gpt2(folder: Path, *, old: bool = False, **changes: Any) -> Any:
    """A GPT-2 and its folder; `old` has `vocab.json` and `merges.txt` alone, and nameless weights."""
    numbers, merges = byte_pairs(["<|endoftext|>"])
    folder.mkdir(parents=True)
    if old:
        (folder / "vocab.json").write_text(json.dumps(numbers), encoding="utf-8")
        lines = ["#version: 0.2", *map(" ".join, merges)]
        (folder / "merges.txt").write_text("\n".join(lines), encoding="utf-8")
    else:
        transformers.GPT2Tokenizer(vocab=numbers, merges=merges).save_pretrained(folder)
    sizes = {
        "vocab_size": len(numbers), "n_embd": 24, "n_layer": 2, "n_head": 3, "n_positions": 41,
        "bos_token_id": 0, "eos_token_id": 0,
    }  # fmt: skip
    model = saved(stirred(transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes | changes))), folder)
    if old:
        (folder / "model.safetensors").unlink()
        masks = {"h.0.attn.bias": torch.ones(1, 1, 41, 41), "h.0.attn.masked_bias": torch.tensor(-1e4)}
        torch.save(model.transformer.state_dict() | masks, folder / "pytorch_model.bin")
    return model


def bart(folder: Path, **changes: Any) -> Any:
    """A BART and its folder."""
    numbers, merges = byte_pairs(["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
    folder.mkdir(parents=True)
    transformers.BartTokenizer(vocab=numbers, merges=merges).save_pretrained(folder)
    sizes = {
        "vocab_size": len(numbers), "d_model": 24, "encoder_layers": 2, "decoder_layers": 1,
        "encoder_attention_heads": 3, "decoder_attention_heads": 3, "encoder_ffn_dim": 37,
        "decoder_ffn_dim": 37, "max_position_embeddings": 41,
    }  # fmt: skip
    config = transformers.BartConfig(**sizes | changes)
    return saved(stirred(transformers.BartForConditionalGeneration(config)), folder)


def pegasus(folder: Path, **changes: Any) -> Any:
    """A Pegasus and its folder; its first pieces are special, like those of the published ones."""
    trained = Tokenizer(models.Unigram())
    trained.pre_tokenizer = pre_tokenizers.Metaspace()
    special = ["<pad>", "</s>", "<mask_1>", "<mask_2>", *(f"<unk_{i}>" for i in range(2, 5)), "<unk>"]
    trainer = trainers.UnigramTrainer(vocab_size=130, special_tokens=special, unk_token="<unk>")
    trained.train_from_iterator([*sentences(ENGLISH), *sentences(GERMAN)], trainer)
    pieces = [(piece, score) for piece, score in json.loads(trained.to_str())["model"]["vocab"]]
    folder.mkdir(parents=True)
    transformers.PegasusTokenizer(vocab=pieces, offset=5).save_pretrained(folder)
    sizes = {
        "vocab_size": len(pieces), "d_model": 24, "encoder_layers": 2, "decoder_layers": 1,
        "encoder_attention_heads": 3, "decoder_attention_heads": 3, "encoder_ffn_dim": 37,
        "decoder_ffn_dim": 37, "max_position_embeddings": 61, "activation_function": "relu",
        "scale_embedding": True, "pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0,
    }  # fmt: skip
    model = stirred(
        transformers.PegasusForConditionalGeneration(transformers.PegasusConfig(**sizes | changes))
    )
    model.generation_config.num_beams = 3
    model.generation_config.length_penalty = 0.5
    return saved(model, folder)
