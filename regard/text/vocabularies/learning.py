"""How a vocabulary of subwords is learned from text, and how large it is made."""

from __future__ import annotations

import io
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import ceil

from sentencepiece import SentencePieceTrainer

from regard.errors import ConfigError, CorpusError
from regard.text.normalisation import composed

CLS = "[CLS]"

MOST_LINES, MOST_CHARACTERS = 1_000_000, 20_000_000
"""How much is learned from at most; of more, a random part. SentencePiece takes some 25 bytes a character."""

LARGEST = 32_000
"""Subwords at most, when the size is chosen from the data."""

COVERAGE = 0.9995
"""The share of the text whose characters get a subword of their own; the rarest are spelt in bytes."""

_BYTES, _FIRST_IDS = 256, 3
_LONGEST_LINE = 2_000
_THREADS = 16


def tag(language: str) -> str:
    """The token that asks for a language."""
    return f"<2{language}>"


def learn_subwords(
    lines: Iterable[str],
    vocab_size: int | None = None,
    *,
    tags: Iterable[str] = (),
    coverage: float = COVERAGE,
    seed: int = 1,
    threads: int = _THREADS,
) -> bytes:
    """Learn a vocabulary from raw text; the result is the model for `Subwords`.

    Args:
        lines: the text, all languages together: one vocabulary serves inputs and outputs. Read once, and
            never held whole.
        vocab_size: how many subwords, special tokens included; by default `fitting_size` chooses. A text that
            has not that many different pieces gives fewer.
        tags: languages to have a tag for, such as `en`.
        coverage: the share of the text whose characters get a subword of their own.
        seed: which part of a large text is learned from.
        threads: how many SentencePiece starts. The sums of a round are added up thread by thread, so another
            number can give slightly other pieces; the default is the same on every machine.

    Raises:
        CorpusError: there is no text.
        ConfigError: `vocab_size` is too small to hold the characters of the text.
    """
    special = [CLS, *(tag(language) for language in tags)]
    sample = draw_sample(lines, seed)
    if not sample.texts:
        raise CorpusError("there is no text to learn subwords from: every line is empty")
    least = _BYTES + _FIRST_IDS + len(special) + len(common_characters(sample.texts, coverage)) + 1
    size = fitting_size(sample.characters, least) if vocab_size is None else vocab_size
    model = io.BytesIO()
    try:
        SentencePieceTrainer.train(
            sentence_iterator=_cut(sample.texts),
            model_writer=model,
            model_type="unigram",
            vocab_size=size,
            hard_vocab_limit=False,  # fewer pieces where the text has no more
            byte_fallback=True,
            character_coverage=coverage,
            normalization_rule_name="identity",
            remove_extra_whitespaces=False,
            split_digits=True,
            control_symbols=special,
            max_sentence_length=8 * _LONGEST_LINE,
            num_threads=threads,
            minloglevel=2,
        )
    except RuntimeError as error:
        raise ConfigError(_too_small(error, size)) from error
    return model.getvalue()


def fitting_size(characters: int, least: int) -> int:
    """How many subwords fit a text: 50 times the cube root of its length, and the characters themselves.

    At 3.6 million characters (Multi30k) this gives 8,000, at 100 million of Chinese and English some 28,000.
    More text shows more rare words often enough to be learned whole, but ever more slowly. In thousands
    (which suits the hardware), 32,000 at most unless the characters alone need more.
    """
    size = least + 50 * characters ** (1 / 3)
    return max(1000, min(LARGEST, round(size / 1000) * 1000), ceil(least / 1000) * 1000)


@dataclass(frozen=True, slots=True)
class Sample:
    """A random part of a text."""

    texts: list[str]
    characters: int
    """Of the whole text."""


def draw_sample(
    lines: Iterable[str], seed: int, most_lines: int = MOST_LINES, most_characters: int = MOST_CHARACTERS
) -> Sample:
    """A random part of a text that is no larger than asked for: all of it, or a half, a quarter, an eighth…

    Each line draws a number and stays while that is below the share; whenever too much has gathered, the
    share is halved. So one pass is enough, and memory is bounded by the sample. Lines come in the order of
    their numbers: SentencePiece takes hours over a stretch of many lines that is there twice.
    """
    draw = random.Random(seed).random
    share, total, held = 1.0, 0, 0
    drawn: list[tuple[float, str]] = []
    for line in lines:
        total += len(line)
        number = draw()
        if number >= share or not line:
            continue
        drawn.append((number, line))
        held += len(line)
        while held > most_characters or len(drawn) > most_lines:
            share /= 2
            drawn = [(number, text) for number, text in drawn if number < share]
            held = sum(len(text) for _, text in drawn)
    return Sample([text for _, text in sorted(drawn)], total)


def common_characters(texts: Iterable[str], coverage: float = COVERAGE) -> set[str]:
    """The characters that make up a share of a text, as SentencePiece counts them."""
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(text)
    wanted, covered = coverage * counts.total(), 0
    common = set()
    for character, count in counts.most_common():
        if covered >= wanted:
            break
        common.add(character)
        covered += count
    return common


def _cut(texts: Iterable[str]) -> Iterator[str]:
    """The texts, composed; long ones in parts, because SentencePiece leaves out what is too long for it."""
    for text in texts:
        for start in range(0, len(text), _LONGEST_LINE):
            yield composed(text[start : start + _LONGEST_LINE])


def _too_small(error: RuntimeError, size: int) -> str:
    """What SentencePiece's refusal means for the setting."""
    found = re.search(r"smaller than required_chars\. (\d+) vs (\d+)", str(error))
    if found is None:
        raise error
    needs = "the bytes, the special tokens and the characters of the text"
    return f"model.vocab_size = {size} is too small: {needs} need at least {found[2]}"
