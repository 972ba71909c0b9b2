"""Search settings in the terms of other libraries, in both directions.

Other libraries divide a log-probability by length ** penalty, regard by the paper's
((5 + length) / 6) ** alpha (6.1). No power equals that at all lengths. Which of two outputs wins depends on
how fast the divisor grows: relative to the length, by alpha · n / (n + 5) and by the penalty. So the two are
converted for one length n, that of a typical output, or fitted to the outputs of given texts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from regard.config import DecodingConfig, ModelConfig

TYPICAL = 25.0
"""Tokens of a typical output, the end included, where nothing is known of the outputs."""
OFFSET = 5
"""The paper's constant in the length penalty."""
AROUND = [step / 100 for step in range(-15, 16)]
"""Differences from the converted penalty that a fit tries."""

Candidates = Sequence[tuple[float, int]]
"""Outputs for one text, the best first: the log-probability, and the number of tokens with the end."""


def their_penalty(alpha: float, outputs: Sequence[Candidates] = ()) -> float:
    """The power of the length that ranks outputs as our penalty alpha does, as well as a power can.

    Args:
        alpha: our penalty.
        outputs: the candidates for each of several texts; the fit keeps the winners of most texts, and is
            otherwise close to the conversion for their mean length.
    """
    lengths = [candidates[0][1] for candidates in outputs if candidates]
    n = sum(lengths) / len(lengths) if lengths else TYPICAL
    converted = alpha * n / (n + OFFSET)
    if not alpha or not lengths:
        return round(converted, 4)

    powers = [converted + each for each in AROUND if converted + each > 0]
    kept = [sum(_keeps_winner(each, power) for each in outputs) for power in powers]
    best = [power for power, n_kept in zip(powers, kept, strict=True) if n_kept == max(kept)]
    closest: float = min(best, key=lambda power: abs(power - converted))
    return round(closest, 4)


def _keeps_winner(candidates: Candidates, power: float) -> bool:
    scores = [total / n**power for total, n in candidates]
    return not scores or scores[0] == max(scores)


def our_penalty(power: float) -> float:
    """The penalty alpha that ranks outputs of a typical length as a power of the length does."""
    return round(max(0.0, power) * (TYPICAL + OFFSET) / TYPICAL, 4)


def generation_settings(
    settings: Mapping[str, Any],
    config: ModelConfig,
    decoding: DecodingConfig,
    *,
    forbidden: Sequence[int] = (),
    outputs: Sequence[Candidates] = (),
) -> dict[str, Any]:
    """The content of `generation_config.json`; empty for a model that generates nothing.

    Args:
        settings: the content of `config.json`.
        config: the model.
        decoding: how regard searches.
        forbidden: tokens that are never generated.
        outputs: the candidates for each of several texts, if they are known.
    """
    if config.architecture == "encoder":
        return {}
    names = ("bos_token_id", "eos_token_id", "pad_token_id", "decoder_start_token_id")
    generation: dict[str, Any] = {name: settings[name] for name in names if name in settings}
    # Their length counts the token that starts an output or the prompt; ours is one position less.
    generation |= {"do_sample": False, "max_length": config.max_length}
    if forbidden:
        generation["bad_words_ids"] = [[token] for token in forbidden]
    if config.architecture == "decoder":
        # Without padding, a batch of prompts could not be generated from.
        return generation | {"num_beams": 1, "pad_token_id": generation["eos_token_id"]}
    generation |= {"num_beams": decoding.beam_size, "forced_eos_token_id": None}
    if decoding.beam_size > 1:
        generation |= {
            "length_penalty": their_penalty(decoding.length_penalty, outputs),
            # False: the search goes on while an unfinished output could still win at its present length.
            "early_stopping": False,
        }
    return generation
