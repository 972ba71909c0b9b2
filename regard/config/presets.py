"""Presets: named functions that return a whole configuration, each as a difference from another.

`paper-*` are the published models, trained as the paper says: their vocabulary is not chosen from the data,
the last checkpoints are averaged as in Table 2, or not at all as in Table 3, and no model is chosen by its
validation loss. The others are ours: they keep the model with the lowest validation loss, and normalise
before each sub-layer, which trains stably at any depth without a long warm-up. Those for one task or corpus
(`numerals`, `rooms`, `generator`, `classifier`) have more changes.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from regard.config.checking import did_you_mean
from regard.config.run import RunConfig
from regard.errors import ConfigError

Preset = Callable[[], RunConfig]


def vary(base: RunConfig, **sections: dict[str, Any]) -> RunConfig:
    """`base` with some settings of some sections changed."""
    return replace(
        base, **{name: replace(getattr(base, name), **changes) for name, changes in sections.items()}
    )


def paper_base() -> RunConfig:
    """The paper's base model, 63 M parameters (the paper prints 65); the last 5 checkpoints are averaged."""
    # Every default is the paper's base, so that the settings and their documentation show it too.
    return RunConfig()


def paper_big() -> RunConfig:
    """The paper's big model, 214 M parameters (it prints 213); the last 20 checkpoints are averaged."""
    return vary(
        paper_base(),
        model={"d_model": 1024, "d_ff": 4096, "n_heads": 16, "dropout": 0.3},
        # A step of the big model took 1 s (5.2), so that checkpoints ten minutes apart are 600 steps apart.
        training={"max_steps": 300_000, "checkpoint_every": 600, "average_checkpoints": 20},
    )


def tiny() -> RunConfig:
    """2 + 2 layers of width 128, for tests and toy tasks on a CPU; pre-norm."""
    return vary(
        small(),
        model={"vocab_size": 8000, "d_model": 128, "d_ff": 512, "encoder_layers": 2, "decoder_layers": 2},
        training={"batch_tokens": 4096, "max_steps": 20_000, "warmup_steps": 250},
    )


def small() -> RunConfig:
    """3 + 3 layers of width 256, for a corpus of some hundred thousand sentences; pre-norm."""
    return vary(
        base(),
        model={
            "vocab_size": 16_000,
            "d_model": 256,
            "n_heads": 4,
            "d_ff": 1024,
            "encoder_layers": 3,
            "decoder_layers": 3,
        },
        training={"batch_tokens": 8192, "max_steps": 50_000, "warmup_steps": 500},
    )


def base() -> RunConfig:
    """6 + 6 layers of width 512, for millions of sentences; pre-norm."""
    return vary(
        paper_base(),
        model={"vocab_size": 32_000, "norm_position": "pre"},
        training={"checkpoint_every": 1000, "selection": "best"},
    )


def deep_shallow() -> RunConfig:
    """12 + 2 layers of width 512: only the decoder runs once per token, so decoding is faster; pre-norm."""
    return vary(base(), model={"encoder_layers": 12, "decoder_layers": 2})


def numerals() -> RunConfig:
    """For the built-in corpus (`--builtin numerals`): a minute or two on two cores; pre-norm, rotary."""
    return vary(
        tiny(),
        # Every sentence has one correct translation and none is seen twice, so nothing is regularised.
        model={"vocab_size": 1000, "positions": "rotary", "dropout": 0.0},
        training={
            "batch_tokens": 640,
            "max_steps": 1600,
            "schedule": "cosine",
            "learning_rate": 2.5e-3,
            "warmup_steps": 100,
            "label_smoothing": 0.0,
            "clip_norm": 1.0,
            "validate_every": 200,
            "checkpoint_every": 200,
            "precision": "float32",
        },
    )


def rooms() -> RunConfig:
    """For the built-in corpus of three tasks (`--builtin rooms`): less than a minute on two cores; rotary."""
    return vary(
        numerals(),
        model={"vocab_size": 400, "d_model": 64, "d_ff": 256},
        training={"batch_tokens": 1500, "max_steps": 500, "warmup_steps": 50, "validate_every": 100},
    )


def generator() -> RunConfig:
    """The decoder alone, 6 layers of width 384, for some megabytes of text (`--task generate`); rotary."""
    return vary(
        small(),
        model={
            "architecture": "decoder",
            "positions": "rotary",
            "d_model": 384,
            "n_heads": 6,
            "d_ff": 1536,
            "decoder_layers": 6,
            "max_length": 256,
            "dropout": 0.2,
        },
        training={
            "batch_tokens": 16_384,
            "max_steps": 5000,
            "schedule": "cosine",
            "learning_rate": 1e-3,
            "warmup_steps": 200,
            "label_smoothing": 0.0,
            "weight_decay": 0.1,
            "clip_norm": 1.0,
            "validate_every": 250,
            "checkpoint_every": 250,
        },
    )


def classifier() -> RunConfig:
    """The encoder alone, 4 layers of width 256, for some thousands of labelled texts (`--task classify`)."""
    return vary(
        small(),
        model={
            "architecture": "encoder",
            "n_labels": 2,
            "encoder_layers": 4,
            "max_length": 512,
            "dropout": 0.2,
        },
        training={
            "max_steps": 2000,
            "schedule": "cosine",
            "learning_rate": 5e-4,
            "warmup_steps": 100,
            "weight_decay": 0.05,
            "clip_norm": 1.0,
            "validate_every": 100,
            "checkpoint_every": 100,
            "patience": 8,
        },
    )


def _row(
    description: str, model: dict[str, Any] | None = None, training: dict[str, Any] | None = None
) -> Preset:
    """One row of the paper's Table 3: its base model with one thing changed, without averaging (6.2)."""

    def variation() -> RunConfig:
        return vary(paper_base(), model=model or {}, training={"average_checkpoints": 1, **(training or {})})

    variation.__doc__ = f"Table 3 {description}; no averaging."
    return variation


TABLE_3: dict[str, Preset] = {
    "heads-1": _row("(A): one head of width 512", {"n_heads": 1, "d_k": 512, "d_v": 512}),
    "heads-4": _row("(A): 4 heads of width 128", {"n_heads": 4, "d_k": 128, "d_v": 128}),
    "heads-16": _row("(A): 16 heads of width 32", {"n_heads": 16, "d_k": 32, "d_v": 32}),
    "heads-32": _row("(A): 32 heads of width 16", {"n_heads": 32, "d_k": 16, "d_v": 16}),
    "d_k-16": _row("(B): queries and keys of width 16", {"d_k": 16}),
    "d_k-32": _row("(B): queries and keys of width 32", {"d_k": 32}),
    "layers-2": _row("(C): 2 + 2 layers", {"encoder_layers": 2, "decoder_layers": 2}),
    "layers-4": _row("(C): 4 + 4 layers", {"encoder_layers": 4, "decoder_layers": 4}),
    "layers-8": _row("(C): 8 + 8 layers", {"encoder_layers": 8, "decoder_layers": 8}),
    "d_model-256": _row("(C): width 256, heads of 32", {"d_model": 256, "d_k": 32, "d_v": 32}),
    "d_model-1024": _row("(C): width 1024, heads of 128", {"d_model": 1024, "d_k": 128, "d_v": 128}),
    "d_ff-1024": _row("(C): feed-forward of width 1024", {"d_ff": 1024}),
    "d_ff-4096": _row("(C): feed-forward of width 4096", {"d_ff": 4096}),
    "dropout-0.0": _row("(D): no dropout", {"dropout": 0.0}),
    "dropout-0.2": _row("(D): dropout 0.2", {"dropout": 0.2}),
    "label-smoothing-0.0": _row("(D): no label smoothing", training={"label_smoothing": 0.0}),
    "label-smoothing-0.2": _row("(D): label smoothing 0.2", training={"label_smoothing": 0.2}),
    "learned-positions": _row("(E): learned positions", {"positions": "learned"}),
}

PRESETS: dict[str, Preset] = {
    "paper-base": paper_base,
    "paper-big": paper_big,
    **{f"paper-base-{name}": row for name, row in TABLE_3.items()},
    "tiny": tiny,
    "small": small,
    "base": base,
    "deep-shallow": deep_shallow,
    "numerals": numerals,
    "rooms": rooms,
    "generator": generator,
    "classifier": classifier,
}


def preset(name: str) -> RunConfig:
    """The configuration of that name; raises ConfigError if there is none."""
    if name not in PRESETS:
        advice = did_you_mean(name, list(PRESETS)) or "; `regard config --list` lists them"
        raise ConfigError(f"there is no preset {name}{advice}", code="unknown_preset")
    return PRESETS[name]()


def summary(name: str) -> str:
    """The description of a preset, in one line."""
    return (PRESETS[name].__doc__ or "").partition("\n")[0]
